"""What a user might pick instead: the models that `svmosaic bench` compares, with their settings, as data."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

INSTALL = "pip install 'svmosaic[bench]'"


@dataclass(frozen=True)
class Setting:
    """What is the same for all models of a run.

    Attributes
    ----------
    n_jobs : int, threads
    seed : int
    budget : float, seconds for one fit
    quick : bool
    """

    n_jobs: int = 1
    seed: int = 0
    budget: float = 60.0
    quick: bool = False


@dataclass(frozen=True)
class Peer:
    """A model and how it is used.

    Attributes
    ----------
    key : str
        For `--models`.
    name : str
        For tables.
    build : Setting -> estimator
        Its defaults, but for what the command fixes for all (threads, seed).
    ours : bool
    scaled : bool
        Whether features are standardized in front of it, in the pipeline that is timed.
    needs : str or None
        A package that may not be installed.
    dense : bool
        Whether it takes no sparse rows.
    budgeted : bool
        Whether it keeps to the budget by itself.
    grid : parameter -> values
        For `--tune`: the default among them.
    regressor : (str, Setting -> estimator) or None
        The name and the build of what predicts values in the same way, if there is such a model.
    """

    key: str
    name: str
    build: Callable[[Setting], Any]
    ours: bool = False
    scaled: bool = True
    needs: str | None = None
    dense: bool = False
    budgeted: bool = False
    grid: dict[str, tuple] = field(default_factory=dict)
    regressor: tuple[str, Callable[[Setting], Any]] | None = None

    def for_values(self) -> "Peer | None":
        """The same for values instead of classes, or None."""
        if self.regressor is None:
            return None
        name, build = self.regressor
        inside = "regressor__" if build in _WRAPPED else ""
        return replace(self, name=name, build=build, grid={inside + key: values for key, values in self.grid.items()})

    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        if self.needs is None or find_spec(self.needs.split(".")[0]) is not None:
            return None
        return f"{self.needs.split('.')[0]} is not installed ({INSTALL})"


def _ours(name, *, tiles=None, few=None):
    """One of our estimators at its defaults; with `few` instead of its many tiles in a quick run."""

    def build(setting):
        import svmosaic

        less = {tiles: few} if setting.quick and tiles is not None else {}
        return getattr(svmosaic, name)(n_jobs=setting.n_jobs, random_state=setting.seed, **less)

    return build


def _auto(name):
    def build(setting):
        import svmosaic

        kind = getattr(svmosaic, name)
        return kind(time_budget=setting.budget, n_jobs=setting.n_jobs, random_state=setting.seed)

    return build


def _linear(setting):
    from sklearn.svm import LinearSVC

    return LinearSVC(random_state=setting.seed)


def _kernel(setting):
    from sklearn.svm import SVC

    return SVC(random_state=setting.seed)


def _intel(setting):
    from daal4py import daalinit
    from sklearnex.svm import SVC

    daalinit(setting.n_jobs)
    return SVC(random_state=setting.seed)


def _nystroem(setting):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    sampled = Nystroem(n_components=100 if setting.quick else 300, random_state=setting.seed)
    return make_pipeline(sampled, LinearSVC(random_state=setting.seed))


def _histogram(setting):
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=20 if setting.quick else 100, random_state=setting.seed)


def _lightgbm(setting):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=20 if setting.quick else 100, n_jobs=setting.n_jobs, random_state=setting.seed, verbose=-1
    )


def _neighbours(setting):
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(n_jobs=setting.n_jobs)


def _network(setting):
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((64,), max_iter=30 if setting.quick else 200, random_state=setting.seed)


def _liblinear_values(setting):
    from sklearn.svm import LinearSVR

    return _normalized(LinearSVR(random_state=setting.seed))


def _kernel_values(setting):
    from sklearn.svm import SVR

    return _normalized(SVR())


_WRAPPED = (_liblinear_values, _kernel_values)


def _normalized(model):
    """With y centered and scaled, without which its C and epsilon would mean nothing."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(model, transformer=StandardScaler())


def _histogram_values(setting):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=20 if setting.quick else 100, random_state=setting.seed)


def _lightgbm_values(setting):
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        n_estimators=20 if setting.quick else 100, n_jobs=setting.n_jobs, random_state=setting.seed, verbose=-1
    )


def _neighbors_values(setting):
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(n_jobs=setting.n_jobs)


_C = {"C": (0.1, 1.0, 10.0, 100.0)}
PEERS = [
    Peer(
        "linear", "svmosaic LinearSVC", _ours("LinearSVC"), ours=True, grid=_C,
        regressor=("svmosaic LinearSVR", _ours("LinearSVR")),
    ),
    Peer(
        "clustered", "svmosaic ClusteredSVC", _ours("ClusteredSVC"), ours=True, grid=_C,
        regressor=("svmosaic ClusteredSVR", _ours("ClusteredSVR")),
    ),
    Peer(
        "local", "svmosaic LocallyLinearSVC", _ours("LocallyLinearSVC", tiles="n_anchors", few=30), ours=True, grid=_C,
        regressor=("svmosaic LocallyLinearSVR", _ours("LocallyLinearSVR", tiles="n_anchors", few=30)),
    ),
    Peer(
        "learned", "svmosaic LearnedGateSVC", _ours("LearnedGateSVC", tiles="n_tiles", few=16), ours=True,
        regressor=("svmosaic LearnedGateSVR", _ours("LearnedGateSVR", tiles="n_tiles", few=16)),
    ),
    Peer("mixture", "svmosaic MixtureSVC", _ours("MixtureSVC", tiles="n_experts", few=4), ours=True, grid=_C),
    Peer(
        "auto", "svmosaic MosaicClassifier", _auto("MosaicClassifier"), ours=True, scaled=False, budgeted=True,
        regressor=("svmosaic MosaicRegressor", _auto("MosaicRegressor")),
    ),
    Peer("sk-linear", "LinearSVC", _linear, grid=_C, regressor=("LinearSVR", _liblinear_values)),
    Peer("svc", "SVC (RBF)", _kernel, grid=_C, regressor=("SVR (RBF)", _kernel_values)),
    Peer("intel-svc", "SVC (RBF), intelex", _intel, needs="sklearnex", grid=_C),
    Peer("nystroem", "Nystroem + LinearSVC", _nystroem, grid={"linearsvc__C": _C["C"]}),
    Peer(
        "hgb", "HistGradientBoosting", _histogram, scaled=False, dense=True, grid={"learning_rate": (0.03, 0.1, 0.3)},
        regressor=("HistGradientBoosting", _histogram_values),
    ),
    Peer(
        "lightgbm", "LightGBM", _lightgbm, scaled=False, needs="lightgbm", grid={"learning_rate": (0.03, 0.1, 0.3)},
        regressor=("LightGBM", _lightgbm_values),
    ),
    Peer(
        "knn", "k nearest neighbours", _neighbours, grid={"n_neighbors": (1, 5, 15)},
        regressor=("k nearest neighbors", _neighbors_values),
    ),
    Peer("mlp", "MLP, 64 units", _network, grid={"alpha": (1e-4, 1e-2, 1.0)}),
]  # fmt: skip


def choose(keys=None):
    """The peers of the keys, all by default; ValueError for one that is not known."""
    if not keys:
        return list(PEERS)
    known = {peer.key: peer for peer in PEERS}
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise ValueError(f"no model is called {unknown[0]!r}; choose among {', '.join(known)}")
    return [known[key] for key in dict.fromkeys(keys)]
