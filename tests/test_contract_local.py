"""scikit-learn's contract for the other ways to train `LocallyLinearSVC`; `test_common` has the defaults."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from svmosaic import LocallyLinearSVC

WEIGHT_CHECKS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def expected_failures(estimator):
    # k-means++ draws a weighted row and copies of it with other numbers, and then the codes differ.
    reason = "anchors come from k-means++, whose draws differ between a weighted row and copies of it"
    if estimator.solver == "sgd":
        reason = "one step on a row of weight k is not k steps on copies of it"
    return dict.fromkeys(WEIGHT_CHECKS, reason)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        LocallyLinearSVC(8, n_neighbors=4, solver="sgd", max_iter=20),
        LocallyLinearSVC(8, n_neighbors=4, multi_class="crammer_singer"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
