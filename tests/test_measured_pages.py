"""Pages with measured numbers: they are those of the stored runs."""

import pytest
from pages import script


@pytest.mark.parametrize("name", ["predict_page", "auto_page", "learned_page", "mixtures_page"])
def test_numbers_are_those_of_the_stored_run(name):
    page = script(name).PAGE
    assert page.made() == page.path.read_text()


def test_curves_are_drawn():
    page = script("learned_page")
    for part in page.curves_of(page.stored("learned")):
        assert (page.IMAGES / page.picture(part.removesuffix(" curve"))).exists()


def test_targets_are_judged_by_the_mean():
    page = script("learned_page")
    record = {"model": "learnt", "tiles": 32, "train_rows": 1, "fit_seconds": 1, "row_microseconds": 1}
    records = [record | {"accuracy": accuracy} for accuracy in (98.5, 98.9)]
    first, second, *_ = page.targets({"ijcnn1": {"records": records}})
    assert first.endswith("learnt 98.70 (reached)")
    assert second.endswith("no run stored")
    records[1]["accuracy"] = 98.6
    assert next(iter(page.targets({"ijcnn1": {"records": records}}))).endswith("learnt 98.55 (not reached)")
