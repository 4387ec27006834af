"""Numbers, text and names as C."""

import re

import numpy as np


class CExportError(ValueError):
    """The model cannot be written as C.

    See Also
    --------
    svmosaic.export.c.to_c : Raises it.
    """


def array(name, values, ctype="float", *, missing=False):
    """A constant table of a numpy array, with enough digits to restore the numbers; NaN only if allowed."""
    with np.errstate(over="ignore"):  # reported below
        flat = np.asarray(values, dtype={"float": np.float32, "double": np.float64, "int": np.int64}[ctype]).ravel()
    if not (np.isfinite(flat) | (missing & np.isnan(flat))).all():
        raise CExportError(f"{name} has values beyond the range of {ctype}")
    # str of a numpy number is the shortest decimal that reads back as it.
    words = [str(v) if ctype == "int" else number(str(v)) + ("f" if ctype == "float" else "") for v in flat]
    words = ["NAN" if word.startswith("nan") else word for word in words]
    lines = ["  " + ", ".join(words[i : i + 8]) for i in range(0, len(words), 8)]
    return f"static const {ctype} {name}[{len(words)}] = {{\n" + ",\n".join(lines) + "\n};\n"


def c_string(text) -> str:
    """A text as C writes it, in UTF-8."""
    # Everything but plain characters as three octal digits: no escape can run into what follows it.
    plain = set(range(32, 127)) - set(b'"\\?@')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in str(text).encode()) + '"'


# Macros, constants and functions, types.
_DEFINED = (r"^#define (\w+)", r"^static [\w *]*?(\w+)[\[(]", r"^} (\w+);$")


def inside(text, suffix, *more):
    """Text inside another, such as a gate inside a gate, with a suffix at every name that it defines."""
    names = [name for kind in _DEFINED for name in re.findall(kind, text, re.M)]
    return re.sub(rf"\b({'|'.join({*names, *more})})\b", rf"\1_{suffix}", text)


def number(text):
    """With a point or an exponent, so that C takes it for a floating number."""
    return text if re.search(r"[.e]", text) else text + ".0"
