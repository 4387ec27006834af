"""`svmosaic demo` prints its table."""

import re

from svmosaic import cli
from svmosaic.cli import demo


def test_demo_prints_one_table_a_set(capsys, monkeypatch):
    monkeypatch.setattr(demo, "BUDGET", 1.0)  # what is printed does not depend on it
    cli.main(["demo"])
    out = capsys.readouterr().out
    line = re.compile(r"^  (\S.*?)\s+([\d.]+)%\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)$", re.M)
    rows = line.findall(out)
    for title in ("digits", "XOR"):
        assert re.search(f"^{title}.* rows", out, re.M)
    names = [row[0] for row in rows]
    assert names[: len(names) // 2] == names[len(names) // 2 :]
    for name in ("scikit-learn LinearSVC", "scikit-learn SVC (RBF)", "svmosaic LinearSVC", "svmosaic ClusteredSVC"):
        assert name in names
    for heading, count in {"accuracy": 2, "fit s": 3, "us/row": 3, "model kB": 3}.items():
        assert out.count(heading) == count
    values = dict(re.findall(r"^  (\S.*?)\s+(0\.\d{3})\s+[\d.]+\s+[\d.]+\s+[\d.]+$", out, re.M))
    assert float(values["svmosaic MosaicRegressor"]) > 0.3
    assert {"scikit-learn SVR (RBF)", "svmosaic LinearSVR", "svmosaic LocallyLinearSVR"} <= set(values)
    assert "within 1 s" in out
    xor = {name: float(accuracy) for name, accuracy, *_ in rows[len(rows) // 2 :]}
    assert xor["svmosaic ClusteredSVC"] > 97 > 85 > xor["svmosaic LinearSVC"]
