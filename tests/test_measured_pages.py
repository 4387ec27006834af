"""Pages with measured numbers: they are those of the stored runs."""

import pytest
from pages import script

NAMES = (
    "auto_page",
    "dask_page",
    "kernel_page",
    "fusion_page",
    "latency_page",
    "learned_page",
    "local_page",
    "mixtures_page",
    "performance_page",
    "pieces_page",
    "predict_page",
    "regression_page",
    "solver_page",
    "stream_page",
    "trees_page",
    "trust_page",
)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_the_stored_run(name):
    page = script(name).PAGE
    text = page.path.read_text()
    assert page.made() == text, f"run `python benchmarks/{name}.py`"
    assert text.count("<!-- measured") == 2 * len(page.places), "a marked place that nobody fills"


def test_every_place_is_filled_from_its_own_results(tmp_path, monkeypatch):
    measured = script("measured")
    (tmp_path / "docs").mkdir()
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    monkeypatch.setattr(measured, "HERE", tmp_path / "benchmarks")
    (tmp_path / "benchmarks" / "results" / "run.json").write_text('{"a": 1, "b": 2}')
    places = "".join(f"text\n<!-- measured {name}: begin -->\nold\n<!-- measured {name}: end -->\n" for name in "ab")
    page = measured.Page(
        "page.md", ("run",), {name: lambda run, name=name: [f"{name} is {run[name]}"] for name in "ba"}
    )
    page.path.write_text(places)
    page.write()
    for name, value in (("a", 1), ("b", 2)):
        assert (
            f"text\n<!-- measured {name}: begin -->\n\n{name} is {value}\n\n<!-- measured {name}: end -->\n"
            in page.made()
        )
    assert page.made() == page.path.read_text()
    assert "old" not in page.made()
    page.path.write_text(places.replace("measured a: end", "measured: end"))
    with pytest.raises(ValueError, match="values to unpack"):
        page.made()


def test_curves_are_drawn():
    page = script("learned_page")
    for part in page.curves_of(page.stored("learned")):
        assert (page.IMAGES / page.picture(part.removesuffix(" curve"))).exists()


def test_scaling_on_an_accelerator_is_drawn_with_the_stored_seconds():
    page = script("learned_page")
    drawn = (page.IMAGES / page.picture("gpu")).read_text()
    records = page.stored("gpu")["scaling"]["records"]
    assert (records[0]["rows"], records[-1]["rows"]) == (100_000, 50_000_000)
    for record in records:
        assert f">{record['epoch_seconds']:g} s<" in drawn, "run `python benchmarks/learned_page.py`"


def test_only_models_that_exist_are_on_the_page_of_learned_gates(monkeypatch):
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")  # benchmarks set them; they are put back
    bench = script("bench_learned")
    for part, found in script("learned_page").stored("learned").items():
        name, task, trials = bench.PARTS[part]
        known = {trial.key for trial in trials(task, name)}
        assert {(r["model"], r["tiles"], r["seed"]) for r in found["records"]} <= known


def test_runs_that_kept_no_polished_tiles_are_not_called_polished():
    page = script("learned_page")
    report = page.stored("learned")
    text = "\n".join(page.parts(report))
    kept = [
        r["kept_polished"] for part in report.values() for r in part["records"] if r["model"] == "learned, polished"
    ]
    assert f"they were kept in {sum(kept)} of {len(kept)} runs" in text
    assert ", polished" not in text
    assert "covtype, class 2 against the rest" in text
