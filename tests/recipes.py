"""The code blocks of a section of CONTRIBUTING.md, as a module."""

import re
import sys
import textwrap
from importlib import import_module, invalidate_caches
from pathlib import Path

PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"


def blocks(section):
    """The Python blocks of a section, as they stand."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.M)
    text = dict(zip(parts[1::2], parts[2::2], strict=True))[section]
    found = re.findall(r"^( *)```python\n(.*?)^ *```$", text, flags=re.M | re.S)
    assert found, f"the section {section!r} has no code"
    return [textwrap.dedent(code) for _, code in found]


def followed(section, name, folder, monkeypatch):
    """A module of all blocks of a section, in order, under a name by which model files can find its classes."""
    (folder / f"{name}.py").write_text("\n\n".join(blocks(section)))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(sys.modules, name, None)  # so that it is forgotten at the end of the test
    del sys.modules[name]
    invalidate_caches()
    return import_module(name)
