"""The README's figures are those of the stored results, and its Python runs."""

import re

from pages import ROOT, script


def test_tables_are_those_of_the_stored_results():
    readme = script("readme")
    assert readme.current() == readme.tables()


def test_python_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[0]) > 0.95
