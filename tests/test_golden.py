"""Golden results: every estimator gives what was stored in `files/golden.json`, within the tolerance of each case.

After a change that is meant to move results, write them anew with `python tests/golden.py --write
tests/files/golden.json`, and say why in the commit.
"""

import copy
import json
from pathlib import Path

import golden
import pytest
from everything import EXPORTED

STORE = Path(__file__).parent / "files" / "golden.json"
STORED = json.loads(STORE.read_text())["cases"]


@pytest.mark.parametrize("name", golden.CASES)
def test_results_are_the_stored_ones(name):
    case = golden.CASES[name]
    assert golden.disagreements(case, golden.result(case), STORED[name]) == []


def test_every_case_is_stored():
    assert list(golden.CASES) == list(STORED)


def test_everything_exported_has_a_case():
    covered = {name.split("/")[0].split("-")[0] for name in golden.CASES}
    assert covered == {thing.__name__ for thing in EXPORTED} - {"load"}


def spoil(found, name):
    """The same results, but for one."""
    spoiled = copy.deepcopy(found)
    if name == "labels":
        spoiled["labels"] = spoiled["labels"].replace("1", "0")
    elif name == "file":
        spoiled["file"] = "other"
    elif name == "gap":
        spoiled["gap"][0] = 2 * spoiled["gap_limit"]
    else:
        spoiled[name][0] *= 1.001
    return spoiled


@pytest.mark.parametrize("name", ["scores", "labels", "objective", "gap", "file"])
def test_a_difference_is_noticed(name):
    case = golden.CASES["LinearSVC-hinge-dual/two"]
    stored = STORED[case.name]
    assert golden.disagreements(case, stored, stored) == []
    (said,) = golden.disagreements(case, spoil(stored, name), stored)
    assert name in said
    assert golden.changed(spoil(stored, name), stored) == [name]


def test_results_are_reproducible_and_compared_by_their_bits(tmp_path, capsys, monkeypatch):
    name, other = "ClusteredSVC/many-weights", "LinearSVC/two"
    monkeypatch.setattr(golden, "CASES", {key: golden.CASES[key] for key in (name, other)})
    store = tmp_path / "golden.json"
    assert golden.main(["--write", str(store)]) == 0
    assert golden.main(["--compare", str(store)]) == 0
    assert capsys.readouterr().out == "2 cases, 2 equal bit for bit\n"
    stored = json.loads(store.read_text())
    stored["cases"][name]["scores"][0][0] *= 1 + 1e-12
    stored["cases"][other]["objective"][0] *= 2
    store.write_text(json.dumps(stored))
    assert golden.main(["--compare", str(store), "--match", "ClusteredSVC"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2:] == ["yes", "scores"]
    assert golden.main(["--compare", str(store)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].split()[2:] == ["no", "objective"]
    assert printed[-1] == "2 cases, 0 equal bit for bit"
