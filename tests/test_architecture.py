"""Each rule once: winners, numbers of outputs, signs, biases and losses stand in one file, and nowhere else.

Python is scanned as a syntax tree, by names that this code base gives to scores and margins; C++ and what is written in
other languages line by line. What a scan cannot decide is listed in ALLOWED, with the reason.
"""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from recipes import PAGE

import svmosaic

SOURCE = Path(svmosaic.__file__).parent
CORE = Path(__file__).parent.parent / "core"
# What a class is chosen by, and what a loss is a function of.
SCORES = re.compile(r"(.*_)?(scores?|decision|decision_function|margins?|probabilit(y|ies)|proba|joint|votes?)")
LOSSY = re.compile(r"(.*_)?(margins?|scores?|threshold|epsilon|residuals?|errors?|excess)|f")


def names_in(node):
    """Every name and attribute of an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def mentions(node, pattern):
    return any(pattern.fullmatch(name) for name in names_in(node))


def called(node):
    """The last name of what is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""


def number(node):
    """The value of a number, with its sign; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return node.value if is_number else None


def is_operation(node, kind):
    return isinstance(node, ast.BinOp) and isinstance(node.op, kind)


def picks_a_winner(node):
    """scores > 0, the argmax of scores row by row, classes[an argmax]."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], (ast.Gt, ast.GtE)) and number(node.comparators[0]) == 0 and mentions(
            node.left, SCORES
        )  # fmt: skip
    if isinstance(node, ast.Subscript):
        return mentions(node.value, re.compile(r"(.*_)?classes_?")) and any(
            called(part) == "argmax" for part in ast.walk(node.slice)
        )
    by_row = isinstance(node, ast.Call) and any(keyword.arg == "axis" for keyword in node.keywords)
    return called(node) == "argmax" and by_row and mentions(node, SCORES)


def counts_outputs(node):
    """1 if n == 2 else n, and the inverse."""
    if not (
        isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.Eq)
    ):
        return False
    both = number(node.body), number(node.test.comparators[0])
    return both in ((1, 2), (2, 1)) and ast.unparse(node.orelse) == ast.unparse(node.test.left)


def makes_signs(node):
    """where(..., 1, -1), 1 if ... else -1, 2 * y - 1."""
    if called(node) == "where" and len(node.args) == 3:
        either = node.args[1:]
    elif isinstance(node, ast.IfExp):
        either = [node.body, node.orelse]
    elif is_operation(node, ast.Sub) and is_operation(node.left, ast.Mult):
        return (number(node.left.left), number(node.right)) == (2, 1)
    else:
        return False
    one, other = map(number, either)
    return one is not None and other is not None and one == -other != 0


def settles_the_bias(node):
    """A branch by fit_intercept, and a bias times the last weights."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return "fit_intercept" in names_in(node.test)
    if not is_operation(node, ast.Mult):
        return False
    sides = {ast.unparse(node.left), ast.unparse(node.right)}
    return any(side.endswith(", -1]") for side in sides) and mentions(node, re.compile("bias"))


def pays_a_hinge(node):
    """max(0, 1 - m) and its kin, also around |f - y| - epsilon."""
    if called(node) not in ("maximum", "fmax", "max", "clip", "relu"):
        return False
    takes = [node.func.value, *node.args] if isinstance(node.func, ast.Attribute) else node.args
    from_zero = called(node) == "relu" or any(number(argument) == 0 for argument in takes)
    return from_zero and any(
        (number(one.left) == 1 or called(one.left) == "abs" or mentions(one, LOSSY))
        if is_operation(one, ast.Sub)
        else getattr(one, "id", "") == "slack"
        for one in takes
    )


def pays_a_quantile(node):
    """max(q r, (q - 1) r), and the share 1 - q of the other side."""
    if is_operation(node, ast.Sub):
        return number(node.left) == 1 and getattr(node.right, "id", "") in ("q", "quantile", "parameter")
    if called(node) not in ("maximum", "fmax") or not all(is_operation(a, ast.Mult) for a in node.args[:2]):
        return False
    one, other = (set(names_in(argument)) for argument in node.args[:2])
    return len((one & other) - {"np", "jnp"}) >= 2


def pays_a_log_loss(node):
    """log(1 + exp(-m)), in any of its forms."""
    if called(node) == "logaddexp":
        return any(number(argument) == 0 for argument in node.args)
    return called(node) == "softplus" or (called(node) == "log1p" and called(node.args[0]) == "exp")


# The rule, what finds it in Python, and its one home.
PYTHON = {
    "winner": (picks_a_winner, "heads.py"),
    "number of outputs": (counts_outputs, "heads.py"),
    "signs": (makes_signs, "heads.py"),
    "bias": (settles_the_bias, "rows.py"),
    "hinge": (pays_a_hinge, "losses.py"),
    "quantile": (pays_a_quantile, "losses.py"),
    "log loss": (pays_a_log_loss, "losses.py"),
}
# The same in the core, by lines without comments.
CPP = {
    "winner": (r"scores?\[0\] > 0|max_element\(scores", "bind_score.cpp"),
    "signs": (r"\? 1 : -1", "learner_losses.hpp"),
    "hinge": (r"max\w*\(0(\.0)?f?, 1(\.0)? [-+]|< threshold \? threshold -", "loss.hpp"),
    "log loss": (r"\blog1p\(", "learner_losses.hpp"),
}
# What is written for other languages repeats the formulas there, and may do so: every line of it that a scan finds.
TEXT = {
    "winner": r"\[0\] > 0( \?|;)|\"ArgMax\"|> (p|scores)\[best\]",
    "hinge": r"max[fl]?\(0(\.0)?f?, 1(\.0)?f? [-+]|s < 1 \? \(float\)|relu\(graph\.add\(\"(Sub|Add)\", one",
}
# What else may look like a rule: (file, rule): (how often, why).
ALLOWED = {
    ("datasets/toys.py", "signs"): (2, "a set is drawn: y moves the points"),
    ("display/tradeoff.py", "winner"): (1, "whether an axis begins at zero"),
    ("export/onnx/gates.py", "signs"): (1, "on which side of a split a leaf lies"),
    ("gates/projected.py", "signs"): (1, "components point to where their largest entry is positive"),
    ("interpretation/words.py", "winner"): (2, "scores of rules, of which one is chosen"),
    ("learner/jax_step.py", "signs"): (1, "compiled by JAX; agrees with the core's learner in a test"),
    ("learner/jax_step.py", "hinge"): (2, "as above"),
    ("learner/jax_step.py", "quantile"): (3, "as above"),
    ("learner/jax_step.py", "log loss"): (1, "as above"),
    ("losses.py", "winner"): (1, "on which side of its kink a row is"),
    ("solvers/crammer_singer.py", "winner"): (1, "the class that a row pays most for, part of that loss"),
    ("kernel_sums.hpp", "log loss"): (1, "a sum of densities, by their logarithms"),
    ("neighbors.hpp", "signs"): (1, "one against the rest of the classes among the neighbors of a query"),
    ("newton.hpp", "hinge"): (1, "slack, loss and dual of a row in one vectorized pass"),
}
# Exporters and pages write the formulas in their own language.
WRITTEN = {
    ("display/playground.js", "hinge"): (1, "the playground fits in the browser"),
    ("export/c/calibrations.py", "winner"): (1, "C, with probabilities"),
    ("export/c/target.py", "winner"): (2, "C, for two classes and for more"),
    ("export/c/target.py", "hinge"): (2, "C, the votes of the mixtures"),
    ("export/javascript/runtime.js", "winner"): (1, "JavaScript"),
    ("export/javascript/runtime.js", "hinge"): (3, "JavaScript, the votes of the mixtures"),
    ("export/onnx/target.py", "winner"): (2, "ONNX, with probabilities and without"),
    ("export/onnx/target.py", "hinge"): (2, "ONNX, the votes of the mixtures"),
}


def rules_in_python(text):
    """How often each rule stands in a module."""
    return Counter(rule for node in ast.walk(ast.parse(text)) for rule, (finds, _) in PYTHON.items() if finds(node))


def rules_in_lines(text, patterns):
    """How often each rule stands in a text whose comments begin with two slashes."""
    lines = [line.split("//")[0] for line in text.splitlines()]
    return Counter(rule for line in lines for rule, pattern in patterns.items() if re.search(pattern, line))


def found_in(paths, root, count):
    """(file, rule): how often, over files."""
    return {
        (path.relative_to(root).as_posix(), rule): n for path in paths for rule, n in count(path.read_text()).items()
    }


def elsewhere(found, homes):
    """What stands outside of its home; a rule that is not at home is a mistake of the scan."""
    assert {(home, rule) for rule, home in homes.items()} <= set(found)
    return {place: n for place, n in found.items() if homes[place[1]] != place[0]}


def allowed(allowance, in_core):
    return {place: n for place, (n, _) in allowance.items() if place[0].endswith("pp") == in_core}


def test_each_rule_stands_once_in_python():
    found = found_in(sorted(SOURCE.rglob("*.py")), SOURCE, rules_in_python)
    assert elsewhere(found, {rule: home for rule, (_, home) in PYTHON.items()}) == allowed(ALLOWED, in_core=False)


def test_each_rule_stands_once_in_the_core():
    patterns = {rule: pattern for rule, (pattern, _) in CPP.items()}
    found = found_in(sorted(CORE.glob("*.[hc]pp")), CORE, lambda text: rules_in_lines(text, patterns))
    assert elsewhere(found, {rule: home for rule, (_, home) in CPP.items()}) == allowed(ALLOWED, in_core=True)


def test_formulas_in_other_languages_are_listed():
    paths = [*SOURCE.glob("display/*.js"), *SOURCE.glob("export/**/*.js"), *SOURCE.glob("export/**/*.py")]
    found = found_in(sorted(paths), SOURCE, lambda text: rules_in_lines(text, TEXT))
    assert found == {place: n for place, (n, _) in WRITTEN.items()}


@pytest.mark.parametrize(
    ("rule", "planted"),
    [
        ("winner", "label = classes[np.argmax(probability, axis=1)]"),
        ("winner", "found = model.decision_function(X) > 0"),
        ("winner", "found = self.classes_[total.argmax(1)]"),
        ("number of outputs", "n = 1 if len(classes) == 2 else len(classes)"),
        ("number of outputs", "n = 2 if coef.shape[1] == 1 else coef.shape[1]"),
        ("signs", "y = np.where(label == 1, 1.0, -1.0)"),
        ("signs", "y = 2 * label - 1"),
        ("bias", "bias = self.intercept_scaling if self.fit_intercept else 0.0"),
        ("bias", "intercept = weights[..., -1] * rows.bias"),
        ("hinge", "loss = np.maximum(0, 1 - y * f) ** 2"),
        ("hinge", "loss = (threshold - margin).clip(0)"),
        ("hinge", "loss = max(0.0, abs(y - f) - epsilon)"),
        ("quantile", "loss = np.maximum(q * (y - f), (q - 1) * (y - f))"),
        ("quantile", "loss = np.where(y > f, quantile, 1 - quantile) * abs(y - f)"),
        ("log loss", "loss = np.log1p(np.exp(-margin))"),
        ("log loss", "loss = np.logaddexp(0, -y * f)"),
    ],
)
def test_a_second_copy_is_found_in_python(rule, planted):
    assert rules_in_python(planted)[rule] >= 1


@pytest.mark.parametrize(
    ("rule", "planted"),
    [
        ("winner", "return std::max_element(scores, scores + n) - scores;"),
        ("signs", "const double y = label[i] == c ? 1 : -1;"),
        ("hinge", "loss += cost * std::max(0.0, 1 - margin);"),
        ("hinge", "const double slack = margin < threshold ? threshold - margin : 0;"),
        ("log loss", "loss += std::log1p(std::exp(-margin));  // stable"),
    ],
)
def test_a_second_copy_is_found_in_the_core(rule, planted):
    patterns = {name: pattern for name, (pattern, _) in CPP.items()}
    assert rules_in_lines(planted, patterns)[rule] == 1
    assert not rules_in_lines(f"// {planted}", patterns)


def test_every_recipe_is_followed():
    """Each section of CONTRIBUTING with Python is executed by a test of its own."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.M)
    recipes = {title for title, text in zip(parts[1::2], parts[2::2], strict=True) if "```python" in text}
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_recipe_*.py"))
    assert recipes == set(re.findall(r"(?:followed|blocks)\(\"(.+?)\"", tests))
