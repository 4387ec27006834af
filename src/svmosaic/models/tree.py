"""Regions that are rules: tiles in the leaves of shallow trees, tied to one global tile."""

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import check_choice, check_real
from svmosaic.explain import Table
from svmosaic.gates import SeveralGates, SingleCell, TreeGate
from svmosaic.gates.trees import describe_rule, grow_trees
from svmosaic.heads import head_of
from svmosaic.models._composed import ComposedClassifier
from svmosaic.solvers import Sight

TILES = {"constant": "bias", "linear": "straight"}
# Trees are grown on at most this many rows: their splits hardly move with more.
GROWING_ROWS = 200_000


class TreeSVC(ComposedClassifier):
    r"""A global tile, and a tile in each leaf of one or several shallow trees.

    .. math:: f(x) = \langle w, \phi(x) \rangle
              + \frac{1}{\sqrt M} \sum_m \langle v_{m, \text{leaf}_m(x)}, (1, x) \rangle

    The trees are grown first, as scikit-learn grows them; then all tiles minimize together, for each output,

    .. math:: \tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac12 \sum_{m,l} \lVert v_{ml} \rVert^2
              + C \sum_i s_i \, \text{loss}(y_i f(x_i)) ,

    one convex problem with a certificate. :math:`\phi` are the `pieces`, so that the global tile is an additive model;
    the leaves add what depends on several columns at once. With one tree, a region is a rule that can be read: see
    `rules_` and `export_text`.

    Parameters
    ----------
    n_trees : int, default=32
        1 gives the model that can be read. A single tree is grown on all rows, several on bootstrap samples of them.
    max_leaves : int, default=32
        Leaves per tree at most. 1 leaves the global tile alone.
    tiles : {"constant", "linear"}, default="constant"
        What a leaf adds: a number, or a linear function of the columns.
    global_reg : float, default=1.0
        The :math:`\lambda` of the objective: the larger, the more the leaves count; very large values leave the leaves
        alone.
    pieces : int, sequence of arrays or None, default=16
        Knots per column of the curves of the global tile; see `LinearSVC`. None: the global tile is linear.
    C : float, default=0.1
        Weight of the losses.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
    min_rows_per_leaf : int, default=20
        Rows that a leaf must hold when a tree is grown. Small leaves overfit.
    trees : None, fitted tree or forest of scikit-learn, or sequence of fitted trees, default=None
        Trees to use instead of growing some.
    solver : {"auto", "dual"}, default="auto"
        Dual coordinate descent.
    tol : float, default=1e-3
        Stop when the duality gap is below `tol` times the objective at zero, C times the sum of sample weights.
    max_iter : int, default=1000
        Largest number of epochs.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        The constant appended to each row for the biases, which are penalized like the other weights.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` turns scores into probabilities, fitted to scores of rows held out in five folds with the
        trees kept; see `LinearSVC`. None: no `predict_proba`.
    n_jobs : int or None, default=None
        Threads, over trees and classes. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the bootstrap samples, the columns that a forest tries, and the order of the coordinates.
    verbose : int, default=0
        1 prints the objective and the gap of each output.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far, and a warning that reports their gap.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    mosaic_ : Mosaic
        The fitted form: tile 0 is the global one, then come the leaves, tree by tree from left to right.
    global_coef_ : ndarray of shape (1 or n_classes, n_features that the tiles see)
    global_intercept_ : ndarray of shape (1 or n_classes,)
    rules_ : Table
        One line per leaf: tree, tile, rule, rows, shares of the classes, accuracy, and the number that it adds.
    calibration_ : Temperature, Sigmoid, Isotonic or None
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile, on the training data.
    objective_, dual_gap_ : ndarray of shape (1 or n_classes,)
        The certificate: no weights have an objective lower by more than the gap.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had names

    Examples
    --------
    >>> from svmosaic import TreeSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = TreeSVC(n_trees=1, max_leaves=4, tiles="linear", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _solvers = ("auto", "dual")

    def __init__(
        self,
        n_trees=32,
        *,
        max_leaves=32,
        tiles="constant",
        global_reg=1.0,
        pieces=16,
        C=0.1,
        loss="squared_hinge",
        min_rows_per_leaf=20,
        trees=None,
        solver="auto",
        tol=1e-3,
        max_iter=1000,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        calibration=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_time=None,
    ):
        self.n_trees = n_trees
        self.max_leaves = max_leaves
        self.tiles = tiles
        self.global_reg = global_reg
        self.pieces = pieces
        self.C = C
        self.loss = loss
        self.min_rows_per_leaf = min_rows_per_leaf
        self.trees = trees
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time

    @property
    def global_coef_(self):
        return self._global_factor * self.mosaic_.coef[0]

    @property
    def global_intercept_(self):
        return self._global_factor * self.mosaic_.intercept[0]

    @property
    def _global_factor(self) -> float:
        gate = self.mosaic_.gate
        return float(gate.factors[0]) if isinstance(gate, SeveralGates) else 1.0

    @property
    def rules_(self) -> Table:
        """Each leaf as a rule in the columns of X, with its training rows."""
        check_is_fitted(self)
        regions, gate = self.regions_, self.mosaic_.gate
        columns = {name: values[1:] for name, values in regions.columns.items() if name not in ("gate", "tile")}
        columns.pop("strongest features")
        rules: list[str] = []
        trees = np.zeros(0, dtype=np.intp)
        if isinstance(gate, SeveralGates):
            leaves = gate.gates[1]
            rules = [describe_rule(rule, self._column_names()) for rule in leaves.rules()]
            trees = leaves.tree_of_tile
        adds = self.mosaic_.intercept[1:] * (gate.factors[1] if len(rules) else 1.0)
        return Table(
            {
                "tree": trees,
                "tile": np.arange(1, len(rules) + 1),
                "rule": np.array(rules, dtype=object),
                **columns,
                **{f"adds to {name}": adds[:, c] for c, name in enumerate(head_of(self).output_names)},
            }
        )

    def export_text(self) -> str:
        """The rules as lines of text, those with the most rows first.

        Returns
        -------
        str
        """
        rules = self.rules_
        lines = []
        for k in np.argsort(-rules["rows"], kind="stable"):
            shown = ", ".join(f"{name} {values[k]:+.3g}" for name, values in rules.columns.items() if "adds" in name)
            lines.append(
                f"if {rules['rule'][k]}: {rules['rows'][k]} rows, mostly {rules['majority'][k]} "
                f"(accuracy {rules['accuracy'][k]:.1%}); {shown}"
            )
        return "\n".join(lines)

    def _column_names(self):
        names = getattr(self, "feature_names_in_", None)
        return [f"x{f}" for f in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _fit_gate(self, rows, rng):
        trees = self._given_trees(rows.n_features)
        if trees is None:
            X, truth, weight = rows.labeled_sample(GROWING_ROWS, rng)
            trees = grow_trees(
                X, truth, n_trees=self.n_trees, max_leaves=self.max_leaves, min_rows_per_leaf=self.min_rows_per_leaf,
                sample_weight=weight, rng=rng, n_jobs=self.n_jobs,
            )  # fmt: skip
        if not trees:
            return SingleCell()
        leaves = TreeGate.from_trees(trees, rows.n_features)
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
                    f"trees must be a fitted tree or forest of scikit-learn, or a sequence of trees, got {tree!r}"
                )
            if tree.n_features_in_ != n_features:
                raise ValueError(f"trees were fitted to {tree.n_features_in_} features, but X has {n_features}")
        return [tree for tree in given if tree.tree_.node_count > 1]

    def _options(self):
        return replace(super()._options(), sight=Sight(1, TILES[self.tiles]))

    def _check_parameters(self):
        super()._check_parameters()
        check_real("n_trees", self.n_trees, at_least=1, integer=True)
        check_real("max_leaves", self.max_leaves, at_least=1, integer=True)
        check_real("min_rows_per_leaf", self.min_rows_per_leaf, at_least=1, integer=True)
        check_real("global_reg", self.global_reg, above=0)
        check_choice("tiles", self.tiles, tuple(TILES))
