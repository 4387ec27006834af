"""The pages of the documentation, and the scripts that write their tables."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def examples_of(name):
    """The lines of Python on a page that follow a prompt: what they print is there too."""
    return re.findall(r"^>>> .*", (DOCS / name).read_text(), re.M)


def blocks_of(name):
    """The blocks of Python on a page that have no prompts."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(), re.M | re.S)
    return [block for block in blocks if ">>>" not in block]


def run_blocks(name):
    """Run a page's blocks, one after the other."""
    names = {}
    for block in blocks_of(name):
        exec(compile(block, name, "exec"), names)


def script(name):
    """A script of benchmarks/, as a module; it finds the others there as it does when it is run."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            patch.setenv(variable, "1")  # as the benchmarks set them; put back
        patch.delitem(sys.modules, "pages", raising=False)  # benchmarks/ has one of that name
        spec.loader.exec_module(module)
    return module
