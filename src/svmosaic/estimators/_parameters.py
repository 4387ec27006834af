"""Parameters of estimators: each is declared and described once, in the class that uses it."""

import json
import re
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, partial
from inspect import cleandoc
from types import UnionType
from typing import Annotated, Any, Literal, Union, dataclass_transform, get_args, get_origin

import numpy as np

from svmosaic._validation import check_choice, check_pieces, check_real, plain

# Types of parameters that say what is allowed; with "| None", "| bool" or "| Literal[...]", that too.
Count = Annotated[int, partial(check_real, at_least=1, integer=True)]
Positive = Annotated[float, partial(check_real, above=0)]
NotNegative = Annotated[float, partial(check_real, at_least=0)]
Fraction = Annotated[float, partial(check_real, above=0, at_most=0.9)]
Knots = Annotated[Any, check_pieces]


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def parameters(cls):
    """Annotated attributes of the class are parameters of the estimators that inherit it; `__init__` only stores."""
    cls = dataclass(cls, eq=False, repr=False, kw_only=True)
    cls.__init__.__annotations__ = {}  # types are in the docstring, in words
    return cls


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def estimator(cls):
    """The same for an estimator, whose docstring then also describes what it inherits, the most specific first."""
    cls = parameters(cls)
    defaults = {f.name: f.default for f in fields(cls) if f.init}
    by_position = {f.name for f in fields(cls) if not f.kw_only}
    text, sections = cleandoc(cls.__doc__ or "") + "\n", ""
    for title in ("Parameters", "Attributes"):
        described: dict[str, str] = {}
        for base in cls.__mro__:
            for name, entry in _entries(base, title):
                if title == "Attributes" or name in defaults:
                    described.setdefault(name, _with_default(entry, defaults.get(name, MISSING)))
        entries = [described[name] for name in sorted(described, key=lambda name: name not in by_position)]
        sections += f"{title}\n----------\n{''.join(entries)}\n"
        text = _section(title).sub("", text)
    cls.__doc__ = re.sub(r"(?m)(?=^.+\n---)", lambda _: sections, text, count=1)  # in front of the other sections
    return cls


def positional(default):
    """The default of a parameter that may be given without its name."""
    return field(default=default, kw_only=False)


def check_parameters(estimator):
    """Raise ValueError if a parameter does not match its type."""
    for name, texts, checks, optional, may_be_bool in _allowed(type(estimator)):
        value = getattr(estimator, name)
        if (isinstance(value, str) and value in texts) or (may_be_bool and isinstance(value, (bool, np.bool_))):
            continue
        if checks:
            checks[0](name, value, optional=optional)
        elif may_be_bool and not texts:
            raise ValueError(f"{name} must be True or False, got {plain(value)!r}")
        elif texts and not (optional and value is None):
            check_choice(name, value, texts)


@cache
def _allowed(cls):
    """The types of the parameters of a class: name, texts, checks, whether None and whether a bool is allowed."""
    found = []
    for one in fields(cls):
        kinds = get_args(one.type) if get_origin(one.type) in (Union, UnionType) else (one.type,)
        texts = [text for kind in kinds if get_origin(kind) is Literal for text in get_args(kind)]
        checks = [kind.__metadata__[0] for kind in kinds if get_origin(kind) is Annotated]
        if texts or checks or one.type is bool:
            found.append((one.name, texts, checks, type(None) in kinds, bool in kinds))
    return found


def _section(title):
    """A section of a docstring, its lines up to the next blank one as a group."""
    return re.compile(rf"(?m)^{title}\n-+\n((?:.+\n)*)\n?")


def _entries(cls, title):
    """Name and text of each entry that the class itself has in a section of its docstring."""
    if not cls.__module__.startswith("sklearn."):
        found = _section(title).search(cleandoc(vars(cls).get("__doc__") or "") + "\n")
        for entry in re.findall(r"\S.*\n(?: .*\n)*", found[1] if found else ""):
            yield entry.split(" : ")[0], entry


def _with_default(entry, default) -> str:
    """The entry with the default that the parameter has in this class."""
    if default is MISSING:
        return entry
    text = json.dumps(default) if isinstance(default, str) else repr(default)
    return re.sub(r"default=.*", lambda _: f"default={text}", entry, count=1)
