"""The README's figures are those of the stored results, and its Python runs."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_tables_are_those_of_the_stored_results():
    spec = importlib.util.spec_from_file_location("readme", ROOT / "benchmarks" / "readme.py")
    readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme)
    assert readme.current() == readme.tables()


def test_python_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[0]) > 0.95
