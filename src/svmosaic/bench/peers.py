"""What a user might pick instead: the models that `svmosaic bench` compares, with their settings, as data."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from svmosaic._lazy import find_type

# Packages that are named otherwise than what is imported of them.
PACKAGES = {"sklearnex": "scikit-learn-intelex"}


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
    normalized : bool
        Whether that needs y centered and scaled.
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
    normalized: bool = False

    def for_values(self) -> "Peer | None":
        """The same for values instead of classes, or None."""
        if self.regressor is None:
            return None
        name, build = self.regressor
        if not self.normalized:
            return replace(self, name=name, build=build)
        grid = {f"regressor__{key}": values for key, values in self.grid.items()}
        return replace(self, name=name, build=_normalized(build), grid=grid)

    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        module = (self.needs or "").split(".")[0]
        if not module or find_spec(module) is not None:
            return None
        return f"{module} is not installed (pip install {PACKAGES.get(module, module)})"


def _model(path, *, threads=True, seeded=True, effort=None, **fixed):
    """A function that builds the estimator of this path for a setting, at its defaults but for what is `fixed`.

    `effort` is the parameter that a quick run lowers, its value there, and that of other runs (None: the default).
    """

    def build(setting):
        given = dict(fixed)
        if effort is not None:
            name, few, many = effort
            given |= {name: few} if setting.quick else {name: many} if many is not None else {}
        if threads:
            given["n_jobs"] = setting.n_jobs
        if seeded:
            given["random_state"] = setting.seed
        return find_type(path)(**given)

    return build


def _ours(name, tiles=None, few=None):
    """One of our estimators; with `few` instead of its many tiles in a quick run."""
    return _model(f"svmosaic.{name}", effort=None if tiles is None else (tiles, few, None))


def _auto(name):
    return lambda setting: _ours(name)(setting).set_params(time_budget=setting.budget)


def _intel(setting):
    from daal4py import daalinit

    daalinit(setting.n_jobs)
    return _model("sklearnex.svm.SVC", threads=False)(setting)


def _nystroem(setting):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    sampled = Nystroem(n_components=100 if setting.quick else 300, random_state=setting.seed)
    return make_pipeline(sampled, LinearSVC(random_state=setting.seed))


def _normalized(build):
    """With y centered and scaled, without which C and epsilon of the model would mean nothing."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return lambda setting: TransformedTargetRegressor(build(setting), transformer=StandardScaler())


def _histograms(kind):
    return _model(f"sklearn.ensemble.HistGradientBoosting{kind}", threads=False, effort=("max_iter", 20, 100))


def _lightgbm(kind):
    return _model(f"lightgbm.LGBM{kind}", effort=("n_estimators", 20, 100), verbose=-1)


def _neighbors(kind):
    return _model(f"sklearn.neighbors.KNeighbors{kind}", seeded=False)


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
        "local", "svmosaic LocallyLinearSVC", _ours("LocallyLinearSVC", "n_anchors", 30), ours=True, grid=_C,
        regressor=("svmosaic LocallyLinearSVR", _ours("LocallyLinearSVR", "n_anchors", 30)),
    ),
    Peer(
        "learned", "svmosaic LearnedGateSVC", _ours("LearnedGateSVC", "n_tiles", 16), ours=True,
        regressor=("svmosaic LearnedGateSVR", _ours("LearnedGateSVR", "n_tiles", 16)),
    ),
    Peer("mixture", "svmosaic MixtureSVC", _ours("MixtureSVC", "n_experts", 4), ours=True, grid=_C),
    Peer(
        "auto", "svmosaic MosaicClassifier", _auto("MosaicClassifier"), ours=True, scaled=False, budgeted=True,
        regressor=("svmosaic MosaicRegressor", _auto("MosaicRegressor")),
    ),
    Peer(
        "sk-linear", "LinearSVC", _model("sklearn.svm.LinearSVC", threads=False), grid=_C, normalized=True,
        regressor=("LinearSVR", _model("sklearn.svm.LinearSVR", threads=False)),
    ),
    Peer(
        "svc", "SVC (RBF)", _model("sklearn.svm.SVC", threads=False), grid=_C, normalized=True,
        regressor=("SVR (RBF)", _model("sklearn.svm.SVR", threads=False, seeded=False)),
    ),
    Peer("intel-svc", "SVC (RBF), intelex", _intel, needs="sklearnex", grid=_C),
    Peer("nystroem", "Nystroem + LinearSVC", _nystroem, grid={"linearsvc__C": _C["C"]}),
    Peer(
        "hgb", "HistGradientBoosting", _histograms("Classifier"), scaled=False, dense=True,
        grid={"learning_rate": (0.03, 0.1, 0.3)}, regressor=("HistGradientBoosting", _histograms("Regressor")),
    ),
    Peer(
        "lightgbm", "LightGBM", _lightgbm("Classifier"), scaled=False, needs="lightgbm",
        grid={"learning_rate": (0.03, 0.1, 0.3)}, regressor=("LightGBM", _lightgbm("Regressor")),
    ),
    Peer(
        "knn", "k nearest neighbors", _neighbors("Classifier"), grid={"n_neighbors": (1, 5, 15)},
        regressor=("k nearest neighbors", _neighbors("Regressor")),
    ),
    Peer(
        "mlp", "MLP, 64 units",
        _model("sklearn.neural_network.MLPClassifier", threads=False, effort=("max_iter", 30, 200),
               hidden_layer_sizes=(64,)),
        grid={"alpha": (1e-4, 1e-2, 1.0)},
    ),
]  # fmt: skip


def choose(keys=None):
    """The peers with these keys, all by default; ValueError for an unknown key."""
    if not keys:
        return list(PEERS)
    known = {peer.key: peer for peer in PEERS}
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise ValueError(f"there is no model called {unknown[0]!r}; choose among {', '.join(known)}")
    return [known[key] for key in dict.fromkeys(keys)]
