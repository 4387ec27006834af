"""`svmosaic demo`: the estimators next to scikit-learn's on bundled data."""

import pickle
from time import perf_counter

# Seconds that a search may take.
BUDGET = 8.0
NEXT = """MosaicClassifier and MosaicRegressor choose among the others by themselves, here within {budget:g} s.
Next, with a table of your own:
  svmosaic train data.csv --label COLUMN -o my.model      fit, and compare with a linear SVM
  svmosaic predict my.model new.csv -o out.csv            predict classes or values
  svmosaic inspect my.model --html report.html            see the regions
  svmosaic export my.model --format c -o my_model.c       run it anywhere"""


def add_arguments(parser):
    """The demo takes none."""


def run(options):
    """Train every model on every set, and print accuracy, cost and size; then a regression, and what to try next."""
    import sklearn.svm
    from sklearn.datasets import load_diabetes, load_digits

    import svmosaic
    from svmosaic.datasets import make_xor

    digits = load_digits()
    classifiers = {
        "scikit-learn LinearSVC": sklearn.svm.LinearSVC(random_state=0),
        "scikit-learn SVC (RBF)": sklearn.svm.SVC(),
        "svmosaic LinearSVC": svmosaic.LinearSVC(random_state=0),
        "svmosaic KMeansSVC": svmosaic.KMeansSVC(random_state=0),
        "svmosaic ClusteredSVC": svmosaic.ClusteredSVC(random_state=0),
        "svmosaic MixtureSVC": svmosaic.MixtureSVC(8, random_state=0),
        "svmosaic LocallyLinearSVC": svmosaic.LocallyLinearSVC(n_anchors=50, random_state=0),
        "svmosaic LearnedGateSVC": svmosaic.LearnedGateSVC(n_tiles=16, random_state=0),
        "svmosaic MosaicClassifier": svmosaic.MosaicClassifier(time_budget=BUDGET, random_state=0),
    }
    regressors = {
        "scikit-learn SVR (RBF)": sklearn.svm.SVR(C=100.0),
        "svmosaic LinearSVR": svmosaic.LinearSVR(random_state=0),
        "svmosaic LocallyLinearSVR": svmosaic.LocallyLinearSVR(n_anchors=20, C=0.1, random_state=0),
        "svmosaic TreeSVR": svmosaic.TreeSVR(random_state=0),
        "svmosaic MosaicRegressor": svmosaic.MosaicRegressor(time_budget=BUDGET, random_state=0),
    }
    for title, (X, y), models in (
        ("digits, 10 classes, 64 features", (digits.data, digits.target), classifiers),
        ("XOR, 2 classes, 2 features", make_xor(2000, random_state=0), classifiers),
        ("diabetes, regression, 10 features", load_diabetes(return_X_y=True), regressors),
    ):
        measure, form = ("R2", ".3f") if models is regressors else ("accuracy", ".2%")
        print(f"{title}: {len(y)} rows, 30 % held out")
        print(f"  {'model':<28}{measure:>9}{'fit s':>9}{'us/row':>9}{'model kB':>10}")
        for name, model in models.items():
            score, fit_seconds, row_microseconds, size = _measure(model, X, y)
            print(f"  {name:<28}{score:>9{form}}{fit_seconds:>9.3f}{row_microseconds:>9.1f}{size / 1e3:>10.1f}")
        print()
    print(NEXT.format(budget=BUDGET))


def _measure(estimator, X, y):
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    stratify = y if is_classifier(estimator) else None
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=stratify)
    model = make_pipeline(StandardScaler(), estimator)
    # Warms up caches and imports before the clock starts; a search needs no more than a moment for that.
    warm_up = {"time_budget": 0.5} if "time_budget" in estimator.get_params() else {}
    make_pipeline(StandardScaler(), clone(estimator).set_params(**warm_up)).fit(X_train[:200], y_train[:200])
    start = perf_counter()
    model.fit(X_train, y_train)
    fit_seconds = perf_counter() - start
    start = perf_counter()
    score = model.score(X_test, y_test)
    row_microseconds = 1e6 * (perf_counter() - start) / len(y_test)
    # What predicts: of our models, their packed form.
    size = len(pickle.dumps(estimator.predictor() if hasattr(estimator, "predictor") else estimator))
    return score, fit_seconds, row_microseconds, size
