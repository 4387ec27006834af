"""Pages with measured numbers: they are those of the stored runs."""

import pytest
from pages import script

PAGES = script("pages")
IMAGES = PAGES.DOCS / "images"


@pytest.mark.parametrize("page", PAGES.PLACES)
def test_numbers_are_those_of_the_stored_run(page):
    text = (PAGES.DOCS / f"{page}.md").read_text()
    assert PAGES.made(page) == text, f"run `python benchmarks/pages.py {page}`"
    assert text.count("<!-- measured") == 2 * len(PAGES.PLACES[page]), "a measured place that nobody fills"


def test_every_place_is_filled_from_its_own_results(monkeypatch):
    monkeypatch.setattr(PAGES, "stored", lambda name: {"a": 1, "b": 2})
    for name, number in (("a", 1), ("b", 2)):
        place = PAGES.Place("page.md", name, ("run",), lambda run, name=name: [f"{name} is {run[name]}"])
        marks = f"<!-- {name}: begin -->\n{{}}<!-- {name}: end -->\n"
        assert place.filled("before\n" + marks.format("old\n")) == "before\n" + marks.format(
            f"\n{name} is {number}\n\n"
        )
        with pytest.raises(ValueError, match="values to unpack"):
            place.filled("a page without the marks")


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("{rows:,}", "12,345"),
        ("{share:.1p}", "12.3"),
        ("{rows:,.1k} kB", "12.3 kB"),
        ("{rows:2r}", "12,000"),
        ("{none:.1f}", ""),
        ("{absent:.1f?}", "–"),
        (lambda r: r["rows"] // 5, "2469"),
    ],
)
def test_cells_are_templates_or_functions_of_a_record(cell, text):
    assert PAGES.shown(cell, {"rows": 12345, "share": 0.1234, "none": None}) == text


def test_pictures_are_drawn_from_the_stored_results():
    for name in PAGES.curves_of(PAGES.stored("learned")):
        assert (IMAGES / PAGES.picture(name)).exists()
    drawn = (IMAGES / PAGES.picture("gpu")).read_text()
    for record in PAGES.stored("gpu")["scaling"]["records"]:
        assert f">{record['epoch_seconds']:g} s<" in drawn, "run `python benchmarks/figures.py`"


def test_only_models_that_exist_are_on_the_page_of_learned_gates():
    bench = script("bench_learned")
    for part, found in PAGES.stored("learned").items():
        name, task, trials = bench.PARTS[part]
        known = {trial.key for trial in trials(task, name)}
        assert {(r["model"], r["tiles"], r["seed"]) for r in found["records"]} <= known
