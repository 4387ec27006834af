"""Targets of the fuzzer that take tables: frames of Polars and others, and rows on their way to JavaScript."""

import contextlib
import json
import shutil
import subprocess
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
from sklearn.base import clone

HOSTILE_TEXTS = ["", " ", "?", "NA", "nan", "north ", "\0", "é\u0301", "\U0001f600", "1", "1.0", "True", "x" * 5000,
                 "2026-01-31", "-0", "(missing)", "__proto__", "constructor", '"', "\\", "\u2028"]  # fmt: skip
ODD_NUMBERS = [0.0, -0.0, 1.0, -1.5, 1e-320, 1e21, 1e16, 1e-7, 123456789.125, np.nan, np.inf, -np.inf, 1e149, 1e151,
               1.7976931348623157e308]  # fmt: skip
COLUMNS = ("number", "text", "day", "truth", "many", "gaps")


def columns(n_rows=60):
    """Columns of every kind, as lists, and labels."""
    rng = np.random.default_rng(0)
    number = rng.standard_normal(n_rows)
    text = [["north", "south", "east", None][k] for k in rng.integers(4, size=n_rows)]
    data = {
        "number": number.tolist(),
        "text": text,
        "day": [date(2026, 1, 1) + timedelta(days=int(k)) for k in rng.integers(200, size=n_rows)],
        "truth": (rng.random(n_rows) < 0.5).tolist(),
        "many": [f"t{k}" for k in rng.integers(5, size=n_rows)],
        "gaps": [None if k % 7 == 0 else float(k) for k in range(n_rows)],
    }
    return data, np.where((number > 0) ^ np.array([t == "north" for t in text]), "yes", "no")


def fitted_model():
    """A small model of such a table, linear in each of two cells."""
    import polars

    from svmosaic import MosaicClassifier

    data, y = columns()
    return MosaicClassifier(
        None, families=["clustered"], max_tiles=2, blend=False, n_jobs=1, random_state=0
    ).fit(polars.DataFrame(data), y)  # fmt: skip


def hostile_models(names) -> list:
    """Models of tables whose columns and categories have such names."""
    import polars

    from svmosaic import MosaicClassifier

    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((40, len(names)))
    y = np.where(numbers[:, 0] > 0, "yes", "no")
    texts = {name: [names[(j + k) % len(names)] for k in rng.integers(3, size=40)] for j, name in enumerate(names)}
    mixed = {name: numbers[:, j].tolist() if j % 2 else texts[name] for j, name in enumerate(names)}
    model = MosaicClassifier(None, families=["clustered"], max_tiles=2, blend=False, n_jobs=1, random_state=0)
    return [clone(model).fit(polars.DataFrame(table), y) for table in (texts, mixed)]


class Frames:
    """Frames of Polars, pandas and PyArrow with odd types and values, to prepare or to predict from.

    What comes out is finite; and the predictor, which reads a row as a dict, says of a row what the model says.
    """

    def __init__(self, folder):
        import polars

        from svmosaic.table.formats import TableError
        from svmosaic.table.table_preparation import TablePreparation

        self.polars, self.prepare_anew = polars, TablePreparation
        self.refusals = (TableError,)
        self.model = fitted_model()
        self.predictor = self.model.predictor()
        self.data, self.y = columns(20)
        self.types = [
            polars.Int8, polars.UInt64, polars.Int64, polars.Float32, polars.Float64, polars.Boolean, polars.String,
            polars.Categorical, polars.Enum(["north", "south", "east"]), polars.Date, polars.Datetime("ns", "UTC"),
            polars.Datetime("ms"), polars.Duration("us"), polars.Time, polars.Decimal(20, 3), polars.Binary,
            polars.List(polars.Float64), polars.Struct({"a": polars.Int8}), polars.Null, polars.Object, polars.Int128,
        ]  # fmt: skip
        # Modules are imported here, not while inputs are watched.
        for kind in self.types:
            for convert in range(3):
                frame = self._cast(polars.DataFrame(self.data), "number", kind)
                with contextlib.suppress(*self.refusals):
                    self.run((frame, convert, True))
                with contextlib.suppress(*self.refusals):
                    self.run((frame, convert, False))
        for convert in range(3):
            self.run((polars.DataFrame(self.data), convert, False))

    def _cast(self, frame, name, kind):
        with contextlib.suppress(self.polars.exceptions.PolarsError, TypeError):
            return frame.with_columns(self.polars.col(name).cast(kind, strict=False))
        with contextlib.suppress(self.polars.exceptions.PolarsError, TypeError, OverflowError, ValueError):
            values = [None if k % 5 == 0 else k for k in range(frame.height)]
            return frame.with_columns(self.polars.Series(name, values, dtype=kind, strict=False))
        return frame

    def make(self, rng):
        polars = self.polars
        data = {name: list(values) for name, values in self.data.items()}
        for _ in range(rng.integers(1, 4)):
            name = COLUMNS[rng.integers(len(COLUMNS))]
            at, kind = rng.integers(20), rng.integers(4)
            if kind == 0:
                data[name][at] = None
            elif kind == 1 and name in ("text", "many"):
                data[name][at] = HOSTILE_TEXTS[rng.integers(len(HOSTILE_TEXTS))]
            elif kind == 2 and name in ("number", "gaps"):
                data[name][at] = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
            elif kind == 3 and name == "day":
                data[name][at] = date(rng.integers(1, 9999), rng.integers(1, 13), rng.integers(1, 29))
        frame = polars.DataFrame(data)
        for _ in range(rng.integers(3)):
            name = COLUMNS[rng.integers(len(COLUMNS))]
            frame = self._cast(frame, name, self.types[rng.integers(len(self.types))])
        kind = rng.integers(12)
        if kind == 0:
            frame = frame.drop(COLUMNS[rng.integers(len(COLUMNS))])
        elif kind == 1:
            name = HOSTILE_TEXTS[rng.integers(len(HOSTILE_TEXTS))]
            if "\0" not in name:  # Polars itself panics when it is to convert such a frame
                frame = frame.rename({COLUMNS[rng.integers(len(COLUMNS))]: name})
        elif kind == 2:
            frame = frame.select(frame.columns[::-1])
        elif kind == 3:
            frame = frame.head(rng.integers(3))
        return frame, rng.integers(3), bool(rng.integers(3) == 0)

    def prepare(self, data):
        frame, convert, _ = data
        self.frame = frame
        # Types that the other libraries have no word for stay with Polars.
        with contextlib.suppress(Exception):
            self.frame = (lambda: frame, frame.to_pandas, frame.to_arrow)[convert]()

    def run(self, data):
        self.prepare(data)
        *_, anew = data
        if anew:
            rows = self.prepare_anew(random_state=0).fit_transform(self.frame, self.y[: len(data[0])])
            assert np.isfinite(rows).all(), "features that are no numbers"
            return
        n_rows = data[0].height
        scores = self.model.decision_function(self.frame) if n_rows else np.zeros(0)
        assert np.isfinite(scores).all(), "scores that are no numbers"
        if n_rows and self.frame is data[0]:
            row = dict(zip(self.frame.columns, self.frame.row(0), strict=True))
            alone = self.predictor.decision_function(row)
            assert np.allclose(alone, scores[0], rtol=1e-9, atol=1e-9), f"alone {alone}, in the frame {scores[0]}"


SERVER = """
import { createInterface } from "node:readline";
import { scores } from "./model.mjs";
createInterface({ input: process.stdin }).on("line", (line) => {
  let answer;
  try { answer = { scores: scores(JSON.parse(line)) }; } catch (error) { answer = { error: String(error.message) }; }
  process.stdout.write(JSON.stringify(answer) + "\\n");
});
"""


class JavaScriptRows:
    """Rows for the exported module, which Node runs: it says what the predictor says, or both refuse.

    They agree to 1e-9. A number for a date, which counts days in JavaScript alone, is left out.
    """

    TIMES = ["2026-01-31", "2026-02-31", "2026-01-31 12:00", "2026-01-31T24:00", "2026-01-31 23:59:60", " 2026-03-01 ",
             "0000-01-01", "9999-12-31", "2026-1-1", "2026-01-31T12:00:00.123456789", "1969-12-31 23:59:59.5", "NA",
             "2026-13-01", "2026-01-31Z", "2024-02-29", "2023-02-29", "2026-01-31T12"]  # fmt: skip
    NUMBERS = ["1", " 2 ", "1e3", "0x10", "1_000", "NA", "?", "-", "+1", ".5", "5.", "1e", "Infinity", "inf", "nan",
               "١", "1,5", "", "--1", "0b1", "1e400", "oops"]  # fmt: skip

    def __init__(self, folder):
        self.refusals = (ValueError,)
        folder = Path(folder)
        model = fitted_model()
        self.predictor = model.predictor()
        self.row = {
            "number": 0.5, "text": "north", "day": "2026-02-03", "truth": True, "many": "t1", "gaps": 3.0,
        }  # fmt: skip
        model.to_javascript(folder / "model.mjs")
        (folder / "server.mjs").write_text(SERVER)
        self.server = subprocess.Popen(
            [shutil.which("node"), "server.mjs"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            encoding="utf-8",
        )  # fmt: skip
        self.run(dict(self.row))
        for name in self.row:
            with contextlib.suppress(ValueError):
                self.run({**self.row, name: "NA"})

    def close(self):
        self.server.stdin.close()
        self.server.wait(10)
        self.server.stdout.close()

    def make(self, rng):
        row = dict(self.row)
        for _ in range(rng.integers(1, 5)):
            name, kind = list(row)[rng.integers(len(row))], rng.integers(8)
            if kind == 0:
                row[name] = None
            elif kind == 1:
                row[name] = bool(rng.integers(2)) if name != "day" else None
            elif kind == 2 and name != "day":
                row[name] = float(np.ldexp(rng.integers(-(2**30), 2**30), rng.integers(-40, 10)))
            elif kind == 3 and name in ("text", "many"):
                row[name] = HOSTILE_TEXTS[rng.integers(len(HOSTILE_TEXTS))]
            elif name == "day":
                row[name] = self._day(rng)
            elif name in ("number", "truth", "gaps"):
                row[name] = self.NUMBERS[rng.integers(len(self.NUMBERS))]
            elif kind == 4:
                row[name] = [[], {}, [1], {"a": 1}][rng.integers(4)]
            elif kind == 5:
                row[name] = rng.integers(-(2**50), 2**50)
        if rng.integers(40) == 0:
            del row[list(row)[rng.integers(len(row))]]
        if rng.integers(20) == 0:
            row[HOSTILE_TEXTS[rng.integers(len(HOSTILE_TEXTS))] or "more"] = 1
        return row

    def _day(self, rng):
        if rng.integers(2):
            return self.TIMES[rng.integers(len(self.TIMES))]
        time = datetime(rng.integers(1000, 9999), 1, 1) + timedelta(
            days=rng.integers(365), seconds=rng.integers(86_400)
        )
        return time.isoformat(sep=" T"[rng.integers(2)] if rng.integers(2) else "T")

    def prepare(self, data):
        pass

    def run(self, data):
        self.server.stdin.write(json.dumps(data) + "\n")
        self.server.stdin.flush()
        answer = json.loads(self.server.stdout.readline())
        try:
            expected = np.atleast_1d(self.predictor.decision_function(data))
        except ValueError as error:
            if "error" not in answer:
                raise AssertionError(f"JavaScript answers {answer['scores']}, Python refuses: {error}") from error
            raise
        assert "error" not in answer, f"Python answers {expected}, JavaScript refuses: {answer['error']}"
        scale = 1.0 + np.abs(expected)
        assert (np.abs(np.array(answer["scores"]) - expected) <= 1e-9 * scale).all(), f"{answer} but {expected}"
