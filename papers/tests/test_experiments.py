"""Experiments: descriptions that say what they mean, a store that loses nothing, a runner that does each thing once."""

import json
from dataclasses import replace

import needs
import numpy as np
import pytest
from pages import run_blocks
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score

from papers import EXPERIMENTS, PAPERS, Cell, Experiment, Method, Store, Task, run
from papers.describe import fingerprint, select
from papers.measure import build, fit_and_score, grid_of, measure, size_of, tune
from papers.pictures import unpacked
from papers.quick import shrink
from papers.runner import WorkerDiedError, Workers, plan
from papers.tasks import BUNDLED, draw, generated_scene, gradient_histograms, image_set, one_hot_heart, rows_of

DIGITS = Task("digits", "digits", "odd or even", train_rows=200, cost=0.1)
LINEAR = Method("linear", "LinearSVC", grid={"C": (0.1, 1.0)}, repeats=1)
CELLS = Method("cells", "KMeansSVC", {"n_clusters": 2}, {"C": (0.1, 1.0)})
SMALL = Experiment("small-table", "CSVM", "Small", "table", (DIGITS,), (LINEAR, CELLS), repeats=2)


# Descriptions


def test_descriptions_can_be_carried_out():
    assert len({e.id for e in EXPERIMENTS}) == len(EXPERIMENTS)
    assert {e.paper for e in EXPERIMENTS} == set(PAPERS)
    for experiment in EXPERIMENTS:
        names = [m.name for m in experiment.methods]
        assert len(set(names)) == len(names)
        for method in experiment.methods:
            if not method.model.startswith("picture"):
                # Every setting of the grid gives an estimator.
                for setting in grid_of(method.tuned_by or method):
                    build(method, setting, 0)
                    build(method, setting, 0, tuning=True)
        if experiment.kind == "curve":
            assert set(experiment.lines) == set(names)
        assert {method for method, _ in experiment.notes} <= set(names)
        assert {task for _, task in experiment.notes} <= {None, *(t.name for t in experiment.tasks)}


def test_printed_numbers_are_those_of_the_papers():
    tables = {e.id: e for e in EXPERIMENTS}
    assert tables["csvm-table2"].published["CSVM", "MNIST 3v8"] == (99.41, 0.18)
    assert tables["llsvm-table1"].published["LL-SVM", "MNIST"] == 1.85
    assert tables["mlsvm-table1"].published["MLSVM", "all"] == 95.20
    assert tables["mlsvm-table3"].published["MLSVM", "10,000 rows"] == (77.34, 0.18)
    assert tables["lsvm-mtl-table1"].published["LSVM-MTL", "pendigits < 5"] == (98.28, 0.23)
    assert tables["fusion-table3"].published["Fused 32", "Heart"] == 18.5


def test_fingerprints_follow_the_meaning():
    print_of = fingerprint(DIGITS, LINEAR)
    assert print_of == fingerprint(replace(DIGITS, name="other", cost=9.0), replace(LINEAR, name="x", own=True))
    assert print_of != fingerprint(replace(DIGITS, train_rows=201), LINEAR)
    assert print_of != fingerprint(DIGITS, replace(LINEAR, grid={"C": (0.1, 2.0)}))
    tuned = replace(CELLS, tuned_by=LINEAR)
    assert fingerprint(DIGITS, tuned) != fingerprint(DIGITS, replace(CELLS, tuned_by=replace(LINEAR, tune_rows=10)))


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="prepare"):
        Task("x", "digits", prepare="whiten")
    with pytest.raises(ValueError, match="measure"):
        replace(SMALL, measure="beauty")
    with pytest.raises(ValueError, match="not run"):
        replace(SMALL, published={("magic", "digits"): 100.0})
    assert len(list(replace(SMALL, tasks=(replace(DIGITS, repeats=1),)).cells())) == len(list(SMALL.cells(1))) == 2
    with pytest.raises(ValueError, match="no experiment matches 'csmv-\\*'"):
        select(["csmv-*"], EXPERIMENTS)
    assert [e.id for e in select(["csvm-table?"], EXPERIMENTS)] == ["csvm-table2", "csvm-table3"]


def test_quick_versions_need_no_data():
    small = [shrink(e) for e in EXPERIMENTS]
    assert [e.id for e in small] == [e.id for e in EXPERIMENTS]
    for experiment in small:
        assert all(task.source.split(" ")[0] in BUNDLED for task in experiment.tasks)
        assert not experiment.published
        if experiment.kind == "curve":
            assert set(experiment.lines) == {m.name for m in experiment.methods}


# Tasks


def test_training_rows_are_redrawn_and_never_tested():
    first, second = rows_of(DIGITS, 0), rows_of(DIGITS, 1)
    assert len(first.y_train) == 200
    assert not np.array_equal(first.X_train, second.X_train)
    np.testing.assert_array_equal(first.X_test, second.X_test)
    tested = {row.tobytes() for row in first.X_test}
    assert not any(row.tobytes() in tested for row in np.vstack([first.X_train, second.X_train]))
    np.testing.assert_allclose(np.linalg.norm(first.X_train, axis=1), 1, rtol=1e-5)
    assert set(np.unique(first.y_train)) == {0, 1}
    task = Task("breast cancer", "breast_cancer", prepare="standardise", split=0.2)
    first, second = rows_of(task, 0), rows_of(task, 1)
    assert len(first.y_test) == round(0.2 * 569)
    assert not np.array_equal(first.y_test, second.y_test)
    np.testing.assert_allclose(first.X_train.mean(axis=0), 0, atol=1e-3)
    y = np.array([0] * 100 + [1] * 3)
    chosen = draw(y, 10, seed=0)
    assert (y[chosen] == 1).sum() >= 2
    assert len(np.unique(chosen)) == len(chosen)


def test_heart_gets_its_25_columns():
    # Levels as in the set: cp 4, restecg 3, slope 3, ca 4, thal 3.
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(50, 13)).astype(np.float32)
    for column, levels in zip((2, 6, 10, 11, 12), (4, 3, 3, 4, 3), strict=True):
        X[:, column] = np.arange(50) % levels
    wide = one_hot_heart(X)
    assert wide.shape == (50, 25)
    np.testing.assert_array_equal(wide[:, 8:12].sum(axis=1), 1)


# Images


def test_gradient_histograms_see_directions():
    upright = np.tile(np.arange(16.0), (16, 1))  # brighter to the right: gradients point along the rows
    found = gradient_histograms(np.stack([upright, upright.T, np.zeros((16, 16))]), pyramid=(1, 2), n_orientations=4)
    assert found.shape == (3, 4 * 5)
    assert found[0, :4].argmax() == 0
    assert found[1, :4].argmax() == 2
    np.testing.assert_allclose(found[0].reshape(5, 4).sum(axis=1), [1, 0.25, 0.25, 0.25, 0.25], rtol=1e-5)
    assert not found[2].any()


def test_images_come_from_a_folder_or_a_file(tmp_path):
    digits = load_digits()
    for k in range(20):
        place = tmp_path / "pictures" / f"class {digits.target[k]}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray((digits.images[k] * 16).astype(np.uint8)).save(place / f"{k}.png")
    X, y = image_set(str(tmp_path / "pictures"))
    assert X.shape == (20, 9 * 21)
    assert sorted(y) == sorted(f"class {c}" for c in digits.target[:20])
    np.savez(tmp_path / "features.npz", X=X, y=y)
    np.testing.assert_array_equal(image_set(str(tmp_path / "features.npz"))[0], X)
    np.savez(tmp_path / "bad.npz", X=X)
    with pytest.raises(ValueError, match="no array y"):
        image_set(str(tmp_path / "bad.npz"))
    with pytest.raises(FileNotFoundError, match="neither a folder"):
        image_set(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="one per class"):
        image_set(str(tmp_path / "empty"))


# Cells


def test_tuning_counts_right_answers_over_the_folds():
    tuning = Cell(DIGITS, CELLS, 0).tuning
    found = tune(tuning)
    assert found["setting"] in grid_of(CELLS)
    assert found["accuracy"] == max(found["scores"]) == found["best"]
    assert found["folds"] == 5
    # By hand: a plain fit a fold and setting, without path or shared gate.
    data = rows_of(DIGITS, 0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    plain = [
        100 * cross_val_score(build(CELLS, s, 0), data.X_train, data.y_train, cv=folds).mean() for s in grid_of(CELLS)
    ]
    np.testing.assert_allclose(found["scores"], plain, atol=0.51)  # one row of 200


def test_the_simplest_setting_within_an_error_wins():
    method = replace(LINEAR, grid={"C": (1.0, 1.0001, 100.0)}, choose="simplest")
    found = tune(Cell(DIGITS, method, 0).tuning)
    assert found["setting"] == {"C": 1.0}
    assert found["accuracy"] <= found["best"]


def test_a_run_says_what_it_measured():
    record = measure(Cell(DIGITS, CELLS, 1), {"C": 1.0})
    data = rows_of(DIGITS, 1)
    model = build(CELLS, {"C": 1.0}, 1).fit(data.X_train, data.y_train)
    assert record["accuracy"] == 100 * model.score(data.X_test, data.y_test)
    assert (record["size"], record["train_rows"], record["test_rows"]) == (2, 200, len(data.y_test))
    assert record["fit_seconds"] > 0
    kernel = build(Method("k", "one-vs-rest kernel SVM", {"gamma": 1.0}), {}, 0).fit(data.X_train, data.y_train)
    assert size_of(kernel) == len(kernel.estimators_[0].support_)
    json.dumps(record, allow_nan=False)


def test_a_scene_keeps_its_map():
    task = Task("scene", "scene", "labelled pixels", "standardise", split=0.5, scene=True)
    found = fit_and_score(Cell(task, Method("l", "LinearSVC"), 0), {})
    truth, predicted = (unpacked(found["map"][key], (30, 40)) for key in ("truth", "predicted"))
    np.testing.assert_array_equal(truth.ravel(), generated_scene()[1])
    known = truth > 0
    assert not predicted[~known].any()
    # On all labeled pixels as good as on the test pixels, which are half of them.
    assert abs(100 * np.mean(predicted[known] == truth[known]) - found["accuracy"]) < 5
    assert "map" not in fit_and_score(Cell(task, Method("l", "LinearSVC"), 1), {})


# The store


def record_of(k, value=1):
    return {"key": f"key {k}", "repeat": 0, "value": value}


def test_records_come_back_whoever_wrote_them(tmp_path):
    path = tmp_path / "deep" / "store.jsonl"
    late = Store(path)
    with Store(path) as store:
        store.add(record_of(1))
        assert ("key 1", 0) in store
    with late:
        late.add(record_of(2))
    again = Store(path)
    assert again.records == {("key 1", 0): record_of(1), ("key 2", 0): record_of(2)}
    with pytest.raises(RuntimeError, match="reading only"):
        again.add(record_of(3))
    path.write_text('{"key": "a", "repeat": 0}\nrubbish\n{"key": "b", "repeat": 0}\n')
    with pytest.raises(ValueError, match="line 2"):
        Store(path)


@needs.posix
def test_two_runs_cannot_write_at_once(tmp_path):
    path = tmp_path / "store.jsonl"
    with Store(path), pytest.raises(RuntimeError, match="another run"):
        Store(path).__enter__()


@pytest.mark.parametrize("torn", [b'{"key": "key 3", "rep', b'{"key": "key 3", "repeat": 0}', b"\0\0\0\n", b"{}\n"])
def test_a_torn_last_line_is_ignored_and_cut(tmp_path, torn):
    path = tmp_path / "store.jsonl"
    with Store(path) as store:
        store.add(record_of(1))
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert list(Store(path).records) == [("key 1", 0)]
    assert path.read_bytes() == whole + torn  # reading changes nothing
    with Store(path) as store:
        store.add(record_of(4))
    assert path.read_bytes().startswith(whole)
    assert list(Store(path).records) == [("key 1", 0), ("key 4", 0)]


# The runner


def test_a_run_does_everything_once(tmp_path):
    path = tmp_path / "store.jsonl"
    seen = []
    with Store(path) as store:
        outcome = run([SMALL, SMALL], store, report=lambda *a: seen.append(a))
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert sorted(kinds) == ["run"] * 3 + ["tuning"] * 2
    assert outcome.done == len(seen) == 5
    assert seen[-1][2] == pytest.approx(0.1 * (3 + 2 * 2))
    with Store(path) as store:
        assert run([SMALL], store).done == 0
        # A new description asks for a new run; the linear SVM's stays.
        other = replace(SMALL, methods=(LINEAR, replace(CELLS, settings={"n_clusters": 3})))
        assert run([other], store).done == 3


def test_settings_come_before_runs_and_cheap_before_dear():
    dear = replace(DIGITS, name="dear", train_rows=300, cost=100.0)
    borrowed = replace(CELLS, name="borrowed", tuned_by=replace(CELLS, cost=5.0), cost=0.1)
    experiment = replace(SMALL, tasks=(dear, DIGITS), methods=(borrowed, LINEAR, replace(CELLS, cost=5.0)))
    works, skipped = plan([experiment], {})
    place = {work.key: k for k, work in enumerate(works)}
    for work in works:
        if isinstance(work, Cell):
            assert place[work.tuning.key] < place[work.key]
    assert works[0].task.name == "digits"
    assert works[-1].task.name == "dear"
    assert skipped == []


def test_jobs_change_nothing_and_a_bad_cell_does_not_end_the_run(tmp_path):
    broken = Method("broken", "KMeansSVC", {"n_clusters": -1}, {"C": (1.0,)}, repeats=1)
    future = Method("future", "QuantumSVC")
    found = []
    for jobs in (1, 2):
        with Store(tmp_path / f"{jobs}.jsonl") as store:
            outcome = run([replace(SMALL, methods=(broken, future, LINEAR, CELLS))], store, jobs=jobs)
        assert outcome.done == 5
        assert len(outcome.failed) == 2  # its tuning, and the run that would have followed
        assert "n_clusters" in outcome.failed[0][1]
        assert outcome.skipped == [("future", "this version of the package has no QuantumSVC")]
        found.append({key: (r["setting"], r["accuracy"]) for key, r in store.records.items()})
    assert found[0] == found[1]


def test_workers_are_ended_and_replaced():
    cell = Cell(Task("xor", "xor", prepare="none"), Method("linear", "LinearSVC"), 0)
    with Workers(1) as workers:
        first = workers._processes[0]
        first.kill()
        first.wait()
        workers.submit(cell)
        work, result = workers.take()
        assert work == cell
        assert isinstance(result, WorkerDiedError)
        workers.submit(cell)
        assert workers.take()[1]["accuracy"] > 40
        second = workers._processes[0]
    assert second.poll() is not None
    assert [process for process in workers._processes if process.poll() is None] == []


def test_the_page_on_experiments_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("reproduce.md")
    assert "The store holds 3 of 3 runs" in capsys.readouterr().out


@pytest.mark.data
@pytest.mark.slow
@needs.data
@pytest.mark.parametrize(("task", "printed"), [("svmguide1", 79.13), ("USPS odd/even", 93.72)])
def test_the_linear_rows_are_the_printed_ones(tmp_path, task, printed):
    (table,) = select(["csvm-table2"], EXPERIMENTS)
    chosen = tuple(t for t in table.tasks if t.name == task)
    linear = replace(table, tasks=chosen, methods=table.methods[:1], published={})
    with Store(tmp_path / "store.jsonl") as store:
        run([linear], store)
    (found,) = (r["accuracy"] for r in store.records.values() if r["kind"] == "run")
    assert found == pytest.approx(printed, abs=0.3)
