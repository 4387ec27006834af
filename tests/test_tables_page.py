"""docs/tables.md: its examples run, one after another, and say what the page says."""

import re

from pages import DOCS


def test_examples_run(capsys):
    text, names = (DOCS / "tables.md").read_text(), {}
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(code, "tables.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "'age', 'age is missing'" in printed
    assert "'job_(missing)', 'job_clerk'" in printed
    assert "'since: days', 'since: month'" in printed
    assert "'code_3', 'code_7', 'code_9'" in printed
    assert "X lacks the columns 'age'" in printed
    assert list(names["model"].preparation_.columns) == ["age", "job", "size", "since", "code"]
