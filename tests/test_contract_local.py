"""scikit-learn's contract, for the estimators around local codes."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from svmosaic import LocalCodingSVC, LocallyLinearSVC, NeighborsSVC

SMALL = dict(n_anchors=8, n_neighbors=4)
# k-means++ draws rows with a probability that weights and copies do not share alike, and then the codes differ.
ANCHORS_BY_SAMPLING = {
    check: "anchors come from k-means++, whose draws differ between a weighted row and copies of it"
    for check in (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
}
STOCHASTIC = {check: "one step on a row of weight k is not k steps on copies of it" for check in ANCHORS_BY_SAMPLING}
NEIGHBOURS = {check: "copies of a row take the places of other neighbours" for check in ANCHORS_BY_SAMPLING} | {
    "check_non_transformer_estimators_n_iter": "fit does not iterate: max_iter is for the SVM of each query"
}


def expected_failures(estimator):
    if isinstance(estimator, NeighborsSVC):
        return NEIGHBOURS
    return STOCHASTIC if estimator.solver == "sgd" else ANCHORS_BY_SAMPLING


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        LocallyLinearSVC(**SMALL),
        LocallyLinearSVC(**SMALL, solver="sgd", max_iter=20),
        LocallyLinearSVC(**SMALL, multi_class="crammer_singer"),
        LocalCodingSVC(**SMALL),
        NeighborsSVC(n_neighbors=10),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
