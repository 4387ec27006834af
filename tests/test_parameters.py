"""Parameters are declared, described and checked by the class that uses them."""

import inspect
import pickle
from typing import Literal

import pytest
from sklearn.base import BaseEstimator, clone

import svmosaic
from svmosaic.estimators._parameters import Count, Positive, check_parameters, estimator, parameters, positional

ESTIMATORS = [
    kind
    for kind in (getattr(svmosaic, name) for name in svmosaic.__all__)
    if inspect.isclass(kind) and issubclass(kind, BaseEstimator)
]


@parameters
class Solved:
    """How it is solved.

    Parameters
    ----------
    tol : float, default=0.1
        When to stop.
    scale : "auto" or float, default="auto"
    """

    tol: Positive = 0.1
    scale: Positive | Literal["auto"] = "auto"

    _steps = 3


@estimator
class Model(Solved, BaseEstimator):
    """A model.

    Parameters
    ----------
    how : {"fast", "slow"} or None, default="fast"
        As it says.

    Examples
    --------
    >>> 1 + 1
    2
    """

    n_parts: Count = positional(2)
    tol: Positive = 0.5
    how: Literal["fast", "slow"] | None = "fast"
    stops: bool | Literal["auto"] = "auto"


def test_parameters_are_inherited():
    model = Model(4, scale=2.0)
    assert model.get_params() == {"n_parts": 4, "tol": 0.5, "scale": 2.0, "how": "fast", "stops": "auto"}
    assert clone(model).get_params() == pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
    with pytest.raises(TypeError, match="positional"):
        Model(4, 0.5)


def test_descriptions_are_inherited_with_the_defaults_of_the_class():
    doc = inspect.getdoc(Model)
    start = doc.index("Parameters")
    assert doc[start : doc.index("Attributes")] == (
        'Parameters\n----------\nhow : {"fast", "slow"} or None, default="fast"\n    As it says.\n'
        'tol : float, default=0.5\n    When to stop.\nscale : "auto" or float, default="auto"\n\n'
    )
    assert doc.startswith("A model.\n\n")
    assert doc.endswith(">>> 1 + 1\n2")


@pytest.mark.parametrize(
    "good",
    [{"n_parts": 1}, {"tol": 1e-9}, {"scale": 3}, {"how": None}, {"how": "slow"}, {"stops": True}, {"stops": "auto"}],
)
def test_what_types_allow(good):
    check_parameters(Model(**good))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_parts": 0}, "n_parts must be an integer, at least 1, got 0"),
        ({"n_parts": 1.5}, "n_parts must be an integer"),
        ({"tol": 0.0}, "tol must be a finite number, above 0, got 0.0"),
        ({"tol": None}, "tol must be a finite number"),
        ({"scale": "large"}, "scale must be a finite number, above 0, got 'large'"),
        ({"how": "soon"}, "how must be one of 'fast', 'slow', got 'soon'"),
        ({"stops": "never"}, "stops must be one of 'auto', got 'never'"),
        ({"stops": 3}, "stops must be one of 'auto', got 3"),
    ],
)
def test_what_types_refuse(bad, message):
    with pytest.raises(ValueError, match=message):
        check_parameters(Model(**bad))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_docstrings_name_the_defaults_of_the_signature(kind):
    lines = inspect.getdoc(kind).splitlines()
    for name, parameter in inspect.signature(kind).parameters.items():
        described = next(line for line in lines if line.startswith(f"{name} : "))
        if "default=" in described:
            assert described.split("default=")[1].strip('"') == str(parameter.default)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_attributes_are_described_once(kind):
    attributes = inspect.getdoc(kind).split("Attributes\n----------\n")[1].split("\n\n")[0]
    names = [line.split(" : ")[0] for line in attributes.splitlines() if not line.startswith(" ")]
    assert len(names) == len(set(names))
    assert "n_features_in_" in names
