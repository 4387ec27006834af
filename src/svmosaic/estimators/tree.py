"""Regions that are rules: tiles in the leaves of shallow trees, tied to one global tile."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmosaic.estimators._parameters import Count, Knots, Positive, estimator, parameters, positional
from svmosaic.estimators.base import ClassLoss, ComposedClassifier, ComposedRegressor, ValueLoss
from svmosaic.explain.contributions import Table
from svmosaic.gates import SeveralGates, SingleCell, TreeGate
from svmosaic.gates.tree_growth import Growth, grow_trees
from svmosaic.gates.trees import describe_rule
from svmosaic.maps.protocol import column_names
from svmosaic.model.heads import Regress, flattened, head_of
from svmosaic.solvers import Sight

TILES = {"constant": "bias", "linear": "straight"}
# Trees are grown on at most this many rows: their splits hardly move with more.
GROWING_ROWS = 200_000
# Share of `max_time` after which no more of them are grown.
GROWING_SHARE = 0.5


@parameters
class TreesMixin:
    r"""A global tile and a tile in each leaf of some trees, for a `ComposedModel`.

    Parameters
    ----------
    n_trees : int, default=32
        Number of trees. One tree gives readable rules, many trees are more accurate. A single tree is grown on all
        rows, several on bootstrap samples.
    max_leaves : int, default=32
        Maximum number of leaves per tree. With 1, only the global tile is left.
    tiles : {"linear", "constant"}, default="linear"
        What a leaf contributes: a linear function of the columns, or a number. Numbers are easier to read, faster, and
        often sufficient if most columns are categories.
    global_reg : float, default=1.0
        The :math:`\lambda` of the objective: larger values give the leaves more influence; with very large values,
        there is no global tile.
    pieces : int, sequence of arrays or None, default=16
        Knots per column of the curves of the global tile; see `LinearSVC`. None: the global tile is linear.
    min_rows_per_leaf : int, default=20
        Minimum number of rows per leaf when a tree is grown. Small leaves overfit.
    growth : {"forest", "extra"}, default="forest"
        How trees are grown: on bootstrap samples, as in a random forest; or on all rows with random thresholds, which
        suits noisy numeric columns. For boosted trees, see `BoostedTreesClassifier`.
    trees : None, fitted tree or forest of scikit-learn, or sequence of fitted trees, default=None
        Trees to use instead of growing them. If the model is cloned, as in a search, wrap them in a `FrozenEstimator`.
    solver : {"auto", "dual"}, default="auto"
        Dual coordinate descent.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far and a warning that reports their gap. No
        more trees are grown after half of this time.

    Attributes
    ----------
    mosaic_ : Mosaic
        The fitted form: tile 0 is the global tile, followed by the leaves, tree by tree from left to right.
    global_coef_ : ndarray of shape (n_outputs, n_features of the feature map)
        For regressors, in units of y.
    global_intercept_ : ndarray of shape (n_outputs,)
        For regressors, in units of y and including the mean of y.
    rules_ : Table
        One line per leaf: tree, tile, rule, number of rows, the columns of `regions_`, and the contribution of the
        leaf.
    """

    n_trees: Count = positional(32)
    max_leaves: Count = 32
    tiles: Literal["constant", "linear"] = "linear"
    global_reg: Positive = 1.0
    pieces: Knots | None = 16
    C: Positive = 0.1
    min_rows_per_leaf: Count = 20
    growth: Growth = "forest"
    trees: Any = None
    tol: Positive = 1e-3

    @property
    def global_coef_(self):
        return self._global_factor * head_of(self).slopes(self.mosaic_.coef)[0]

    @property
    def global_intercept_(self):
        return head_of(self).values(self._global_factor * self.mosaic_.intercept)[0]

    @property
    def _global_factor(self):
        gate = self.mosaic_.gate
        return float(gate.factors[0]) if isinstance(gate, SeveralGates) else 1.0

    @property
    def rules_(self):
        """Each leaf as a rule in the columns of X, with its training rows."""
        return self.rules()

    def rules(self, preparation=None):
        """Return each leaf as a rule, with its training rows.

        Parameters
        ----------
        preparation : fitted transformer or pipeline of some, optional
            The transformer that made the columns of X, such as ``pipeline[:-1]``. Rules then refer to the columns
            that it was fitted to: "marital_status is Married" instead of "marital_status_Married > 0.5", and numbers in
            their original units. None: rules refer to the columns of X.

        Returns
        -------
        Table
        """
        check_is_fitted(self)
        regions, gate = self.regions_, self.mosaic_.gate
        left_out = ("gate", "tile", "strongest features", "rule", "covers", "pure")
        columns = {name: values[1:] for name, values in regions.columns.items() if name not in left_out}
        rules = self._rules_of_leaves(preparation)
        trees = gate.gates[1].tree_of_tile if rules else np.zeros(0, dtype=np.intp)
        head = head_of(self)
        adds = head.factor * self.mosaic_.intercept[1:] * (gate.factors[1] if len(rules) else 1.0)
        return Table(
            {
                "tree": trees,
                "tile": np.arange(1, len(rules) + 1),
                "rule": np.array(rules, dtype=object),
                **columns,
                **{f"adds to {name}": adds[:, c] for c, name in enumerate(head.output_names)},
            }
        )

    def _rules_of_leaves(self, preparation):
        gate = self.mosaic_.gate
        if not isinstance(gate, SeveralGates):
            return []
        if preparation is None:
            names = column_names(getattr(self, "feature_names_in_", None), self.n_features_in_)
            return [describe_rule(rule, names) for rule in gate.gates[1].rules()]
        from svmosaic.explain.words import wording  # here: it takes a while to import

        words = wording(self, preparation)
        return [words(rule) for rule in gate.gates[1].rules()]

    def _keep_region_sample(self, sample):
        super()._keep_region_sample(None)  # the rules are those of the trees

    def _region_words(self):
        rules = np.array(["all rows", *self._rules_of_leaves(None)])
        return {"rule": rules, "covers": np.ones(len(rules)), "pure": np.ones(len(rules))}

    def export_text(self, preparation=None) -> str:
        """Return the rules as lines of text, those with the most rows first.

        Parameters
        ----------
        preparation : fitted transformer or pipeline of some, optional
            The transformer that made the columns of X; see `rules`.

        Returns
        -------
        str
        """
        rules = self.rules(preparation)
        lines = []
        for k in np.argsort(-rules["rows"], kind="stable"):
            line = {name: values[k] for name, values in rules.columns.items()}
            adds = ", ".join(f"{name} {value:+.3g}" for name, value in line.items() if "adds" in name)
            lines.append(f"if {line['rule']}: {line['rows']} rows, {head_of(self).describe_region(line)}; {adds}")
        return "\n".join(lines)

    def _gate(self, data, rng):
        trees = self._given_trees(data.n_features)
        if trees is None:
            X, target = data.sample(GROWING_ROWS, rng)
            truth, regression = target.truth, isinstance(target.head, Regress)
            if regression:  # normalized: a tree for several targets should not follow that of the largest numbers
                truth = flattened(target.learned)
            trees = grow_trees(
                X, truth, n_trees=self.n_trees, max_leaves=self.max_leaves, min_rows_per_leaf=self.min_rows_per_leaf,
                sample_weight=target.weight, rng=rng, growth=self.growth, regression=regression, n_jobs=self.n_jobs,
                max_time=None if self.max_time is None else GROWING_SHARE * self.max_time,
            )  # fmt: skip
        if not trees:
            return SingleCell()
        leaves = TreeGate.from_trees(trees, data.n_features)
        return SeveralGates((SingleCell(), leaves), np.array([self.global_reg**-0.5, len(trees) ** -0.5]))

    def _given_trees(self, n_features):
        """The trees that were handed over, those that split something; None if there are none."""
        if self.trees is None:
            return None
        given = getattr(self.trees, "estimators_", self.trees)
        given = [given] if hasattr(given, "tree_") else list(np.ravel(np.asarray(given, dtype=object)))
        for tree in given:
            if not hasattr(tree, "tree_"):
                raise ValueError(
                    f"trees must be a fitted tree or forest of scikit-learn, or a sequence of trees, got {tree!r}; if "
                    "the model is cloned, as in a search or by outofcore.fit, sklearn.frozen.FrozenEstimator keeps "
                    "them fitted"
                )
            if tree.n_features_in_ != n_features:
                raise ValueError(f"trees were fitted to {tree.n_features_in_} features, but X has {n_features}")
        return [tree for tree in given if tree.tree_.node_count > 1]

    def _options(self):
        return replace(super()._options(), sight=Sight(1, TILES[self.tiles], self.n_features_in_))


@estimator
class TreeSVC(TreesMixin, ComposedClassifier):
    r"""A global tile, and a tile in each leaf of one or several shallow trees.

    .. math:: f(x) = \langle w, \phi(x) \rangle
              + \frac{1}{\sqrt M} \sum_m \langle v_{m, \text{leaf}_m(x)}, (1, x) \rangle

    The trees are grown first, by scikit-learn; then all tiles jointly minimize, for each output,

    .. math:: \tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac12 \sum_{m,l} \lVert v_{ml} \rVert^2
              + C \sum_i s_i \, \text{loss}(y_i f(x_i)) ,

    one convex problem with a certificate. :math:`\phi` are the `pieces`, so the global tile is an additive model;
    the leaves add interactions between columns. With one tree, each region is a readable rule: see
    `rules_` and `export_text`.

    Parameters
    ----------
    n_trees : int, default=32
        Number of trees. One tree gives readable rules, many trees are usually more accurate. A single tree is grown
        on all rows, several on bootstrap samples.

    See Also
    --------
    TreeSVR : The same for regression.
    ClusteredSVC : Regions by distance instead of rules.
    svmosaic.explain.describe_regions : Rules for the regions of any model.

    Examples
    --------
    >>> from svmosaic import TreeSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = TreeSVC(n_trees=1, max_leaves=4, tiles="linear", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    loss: ClassLoss = "squared_hinge"
    solver: Literal["auto", "dual"] = "auto"


@estimator
class TreeSVR(TreesMixin, ComposedRegressor):
    r"""A global tile, and a tile in each leaf of one or several shallow regression trees.

    .. math:: f(x) = \langle w, \phi(x) \rangle
              + \frac{1}{\sqrt M} \sum_m \langle v_{m, \text{leaf}_m(x)}, (1, x) \rangle

    The trees are grown first, by scikit-learn; then all tiles jointly minimize, for each target,

    .. math:: \tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac12 \sum_{m,l} \lVert v_{ml} \rVert^2
              + C \sum_i s_i \, \text{loss}(y_i - f(x_i)) ,

    one convex problem with a certificate. :math:`\phi` are the `pieces`, so the global tile is an additive model;
    the leaves add interactions between columns. With one tree, each region is a readable rule: see
    `rules_` and `export_text`.

    See Also
    --------
    TreeSVC : The same for classification.
    ClusteredSVR : Regions by distance instead of rules.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import TreeSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 1])
    >>> model = TreeSVR(n_trees=1, max_leaves=4, tiles="linear", C=1.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    loss: ValueLoss = "squared_epsilon_insensitive"
    solver: Literal["auto", "dual"] = "auto"
