"""Models as C: compiled, and compared with the engine."""

import ctypes
import re
import shutil
import subprocess
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from exported import (
    Fitted,
    check_agreement,
    check_densities,
    choice_is_clear,
    densities,
    estimators,
    rows_for,
    synthetic,
    training_set,
)
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from svmosaic import LinearSVC, LocallyLinearSVC, MosaicClassifier, NeighborsSVC
from svmosaic.export.c import CExportError, to_c
from svmosaic.export.c.tables import RUNTIME
from svmosaic.model.mosaic import Mosaic

SYNTHETIC = synthetic()
ESTIMATORS = estimators()
DENSITIES = densities()
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-overlength-strings"]


class Compiled:
    """The functions of a C file, called on arrays."""

    def __init__(self, source, n_classes):
        library = source.with_suffix(".so")
        compiler = shutil.which("cc")
        subprocess.run([compiler, *STRICT, "-fPIC", "-shared", str(source), "-o", str(library), "-lm"], check=True)
        self.library, self.name, self.n_classes = ctypes.CDLL(str(library)), source.stem, n_classes

    def table(self, function, X, n):
        out = np.empty((len(X), n), dtype=np.float32)
        call = getattr(self.library, f"{self.name}_{function}")
        for x, o in zip(X, out, strict=True):
            call(x.ctypes.data_as(ctypes.c_void_p), o.ctypes.data_as(ctypes.c_void_p))
        return out

    def scores(self, X):
        return self.table("scores", X, 1 if self.n_classes == 2 else self.n_classes)

    def probabilities(self, X):
        return self.table("probabilities", X, self.n_classes)

    def explain(self, X):
        """Contributions (n_rows, n_outputs, n_features) and intercepts (n_rows, n_outputs)."""
        n_outputs = 1 if self.n_classes == 2 else self.n_classes
        contributions, intercept = np.empty((len(X), n_outputs, X.shape[1])), np.empty((len(X), n_outputs))
        call = getattr(self.library, f"{self.name}_explain")
        for row in zip(X, contributions, intercept, strict=True):
            call(*(part.ctypes.data_as(ctypes.c_void_p) for part in row))
        return contributions, intercept

    def places(self, X):
        call = getattr(self.library, f"{self.name}_predict")
        return np.array([call(x.ctypes.data_as(ctypes.c_void_p)) for x in X])

    def names(self):
        table = (ctypes.c_char_p * self.n_classes).in_dll(self.library, f"{self.name}_classes")
        return [name.decode() for name in table]


def check(model, folder):
    source, _ = to_c(model, folder / "model.c")
    compiled = Compiled(source, len(model.classes_))
    for kind, X in rows_for(model).items():
        check_agreement(model, X, model.classes_[compiled.places(X)], compiled.scores(X), kind=kind)
    return compiled


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_coding_and_link_agrees_with_the_engine(name, tmp_path):
    check(SYNTHETIC[name], tmp_path)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_agrees_with_the_engine(name, tmp_path):
    X, y = training_set(3)
    model = ESTIMATORS[name].fit(X, y)
    compiled = check(model, tmp_path)
    assert compiled.names() == list(model.classes_)
    if model.calibration is not None:
        assert_allclose(compiled.probabilities(X), model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_contributions_add_up_to_the_scores(name, n_classes, tmp_path):
    X, y = training_set(n_classes)
    model = ESTIMATORS[name].fit(X, y)
    source, header = to_c(model, tmp_path / "model.c")
    if model.mosaic_.link != "identity":
        assert "model_explain" not in source.read_text() + header.read_text()
        assert "There is no explain: with the link" in header.read_text()
        return
    rows = np.random.default_rng(0).standard_normal((1000, X.shape[1])).astype(np.float32)
    compiled = Compiled(source, n_classes)
    contributions, intercept = compiled.explain(rows)
    assert_allclose(contributions.sum(axis=2) + intercept, compiled.scores(rows), rtol=1e-9, atol=1e-9)
    clear = choice_is_clear(model, rows)
    expected = model.explain(rows[clear])
    assert_allclose(contributions[clear], expected.contributions, rtol=1e-3, atol=1e-4)
    assert_allclose(intercept[clear], expected.intercept, rtol=1e-3, atol=1e-4)


def test_a_pipeline_takes_columns_as_they_are(tmp_path):
    X, y = training_set(3)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    swapped = make_column_transformer((scaled, [3, 1]), ("passthrough", [6]), remainder="drop")
    plain = [SimpleImputer(strategy="median"), StandardScaler()]
    for name, steps in {"plain": plain, "swapped": [swapped, SimpleImputer(), MaxAbsScaler()]}.items():
        model = make_pipeline(*steps, LocallyLinearSVC(6, n_neighbors=3, tol=1e-2, random_state=0)).fit(X, y)
        compiled = Compiled(to_c(model, tmp_path / f"{name}.c")[0], 3)
        expected = model.decision_function(X)
        near = np.abs(compiled.scores(X) - expected).max(axis=1) < 1e-4 * np.abs(expected).max()
        assert near.mean() > 0.99
        contributions, intercept = compiled.explain(X)
        assert_allclose(contributions.sum(axis=2) + intercept, compiled.scores(X), rtol=1e-9, atol=1e-9)
    assert (contributions[:, :, [0, 2, 4, 5]] == 0).all()
    densities = make_pipeline(SimpleImputer(), DENSITIES["diag"]).fit(X, y)
    compiled = Compiled(to_c(densities, tmp_path / "densities.c")[0], 3)
    assert_allclose(compiled.probabilities(X), densities.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [name for name in DENSITIES if not name.startswith("fused")])
def test_models_of_densities_agree_with_their_own_scores(name, n_classes, tmp_path):
    X, y = training_set(n_classes)
    model = DENSITIES[name].fit(X, y)
    compiled = Compiled(model.to_c(tmp_path / "model.c")[0], n_classes)
    for kind, rows in rows_for(model).items():
        check_densities(model, rows, model.classes_[compiled.places(rows)], compiled.scores(rows), kind=kind)
    assert_allclose(compiled.probabilities(X), model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("method", ["temperature", "sigmoid", "isotonic"])
def test_probabilities_of_two_classes(method, tmp_path):
    X, y = training_set(2)
    model = LinearSVC(calibration=method, random_state=0).fit(X, y)
    assert_allclose(check(model, tmp_path).probabilities(X), model.predict_proba(X), atol=1e-5)


def test_the_file_needs_no_memory_and_little_of_libm(tmp_path):
    for name in ("softmax-vote-3", "llc-identity-2"):
        source, header = to_c(SYNTHETIC[name], tmp_path / "model.c", name="m")
        text = source.read_text()
        assert re.findall(r"#include (\S+)", text) == ['"model.h"', "<math.h>", "<stddef.h>"]
        subprocess.run([shutil.which("cc"), *STRICT, "-c", str(source), "-o", str(tmp_path / "m.o")], check=True)
        done = subprocess.run(["nm", "-u", str(tmp_path / "m.o")], capture_output=True, text=True, check=True)
        needed = set(done.stdout.split()) - {"U", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
        assert needed <= {"expf", "sqrtf", "memset", "memcpy"}
        assert "m_predict" in header.read_text()


@pytest.mark.parametrize("what", [[], ["-DHAS_CLASSES=0"], ["-DHAS_CLASSES=0", "-DHAS_ONE_VALUE=0"]])
def test_the_runtime_compiles_by_itself(what, tmp_path):
    subprocess.run([shutil.which("cc"), *STRICT, *what, "-c", str(RUNTIME), "-o", str(tmp_path / "r.o")], check=True)


@pytest.mark.skipif(shutil.which("clang-tidy") is None, reason="needs clang-tidy")
def test_clang_tidy_finds_nothing_in_the_runtime():
    command = ["clang-tidy", "--quiet", "--warnings-as-errors=*", str(RUNTIME), "--", "-std=c99"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_missing_or_endless_date_is_no_whole_number(tmp_path):
    """Casting it to one has no meaning, which the compiler's sanitizer says at run time."""
    rng = np.random.default_rng(0)
    days = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 60), unit="D"))
    model = MosaicClassifier(time_budget=None, max_tiles=2, families=("linear",), calibration=None, random_state=0)
    model.fit(pd.DataFrame({"day": days.where(days.index > 5), "x": rng.normal(size=60)}), days.dt.month > 6)
    source, _ = model.to_c(tmp_path / "m.c")
    assert "part_of_date" in source.read_text()
    (tmp_path / "main.c").write_text(
        '#include "m.h"\n#include <math.h>\nint main(void) {\n  const float days[3] = {NAN, 1e30F, 18000.5F};\n'
        "  for (int k = 0; k < 3; ++k) {\n    const float x[2] = {days[k], 0};\n    float score;\n"
        "    m_scores(x, &score);\n    if (k != 1 && score != score) return 1;\n  }\n  return 0;\n}\n"
    )
    checked = ["-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
    program = [shutil.which("cc"), "-std=c99", *checked, str(source), str(tmp_path / "main.c"), "-lm", "-o"]
    subprocess.run([*program, str(tmp_path / "main")], check=True)
    subprocess.run([str(tmp_path / "main")], check=True)


def test_what_cannot_be_written_is_named(tmp_path):
    X, y = training_set(2)
    mapped = LocallyLinearSVC(5, feature_map=Nystroem(n_components=5), tol=1e-1, random_state=0).fit(X, y)
    with pytest.raises(CExportError, match="feature map Nystroem"):
        mapped.to_c(tmp_path / "model.c")

    @dataclass
    class OtherGate:
        n_tiles: int = 1

    other = Fitted(Mosaic(OtherGate(), np.ones((1, 1, 2)), np.ones((1, 1))), np.arange(2))
    with pytest.raises(CExportError, match="gate OtherGate cannot be written as C; known are SingleCell, DistanceGate"):
        to_c(other, tmp_path / "model.c")
    with pytest.raises(CExportError, match=r"NeighborsSVC cannot be written as C: .* solves an SVM for each query"):
        NeighborsSVC(5).fit(X, y).to_c(tmp_path / "model.c")
    with pytest.raises(CExportError, match=r"FusedSVC cannot be written as C: .* beyond the range of float"):
        DENSITIES["fused"].fit(X, y).to_c(tmp_path / "model.c")
    with pytest.raises(CExportError, match=r"must end in \.c, after letters, .* only, got .*model\.h"):
        to_c(mapped, tmp_path / "model.h")
    with pytest.raises(CExportError, match="identifier"):
        to_c(LinearSVC(random_state=0).fit(X, y), tmp_path / "model.c", name="two words")
    assert list(tmp_path.iterdir()) == []
