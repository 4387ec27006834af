"""Mutated files, for everything in the library that reads or writes files of others. Run as `tools/fuzz`.

Each input must end in a result or in the one exception that its reader promises, within a second of processor time.
While it is read, an audit hook refuses what no reader has any business doing: importing a module, running code, opening
a file for writing, starting a process, touching the network.
"""

import argparse
import contextlib
import faulthandler
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import sklearn
import skops.io  # noqa: F401  what `load` imports for models of types other than ours
from fuzzing_tables import Frames, JavaScriptRows, hostile_models
from mutations import Draws, mutate, mutate_json

SECONDS = 1.0
FORBIDDEN = ("subprocess.", "socket.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.remove", "os.rename",
             "os.mkdir", "os.rmdir", "os.chmod", "os.putenv", "shutil.", "ctypes.dlopen", "pickle.find_class",
             "marshal.loads", "webbrowser.", "urllib.", "ftplib.", "smtplib.")  # fmt: skip


class Trespass(BaseException):
    """Something that no file may cause. Not an Exception, so that no reader can swallow it."""


class TooSlow(BaseException):
    """An input took more than its time."""


class Guard:
    """The audit hook. It cannot be taken off again, only put to sleep."""

    def __init__(self):
        self.awake = False
        self.allowed_writes = ()
        sys.addaudithook(self._hook)

    def _hook(self, event, args):
        if not self.awake:
            return
        if event == "import":
            self._refuse(f"import of {args[0]}")
        elif event == "exec":
            # namedtuple and dataclass build their methods so; nothing of the kind belongs to reading a file.
            self._refuse(f"code object {getattr(args[0], 'co_filename', args[0])}")
        elif event == "open":
            path, mode, flags = args
            writing = (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & 3)
            if writing and not str(path).startswith(self.allowed_writes or "\0"):
                self._refuse(f"open of {path!r} for writing")
        elif self.allowed_writes and self._is_atomic_write(event, args):
            return
        elif event.startswith(FORBIDDEN):
            self._refuse(f"{event} {args!r}"[:200])

    def _is_atomic_write(self, event, args) -> bool:
        """A file that may be written gets its mode, or takes the place of another, or a temporary one is removed."""
        if event == "os.chmod":
            return isinstance(args[0], int) or str(args[0]).startswith(self.allowed_writes)
        touched = {"os.rename": args[:2], "os.remove": args[:1], "os.chown": args[:1]}.get(event)
        return touched is not None and all(str(path).startswith(self.allowed_writes) for path in touched)

    def _refuse(self, what):
        self.awake = False
        raise Trespass(what)

    @contextlib.contextmanager
    def watching(self, allowed_writes=()):
        self.allowed_writes = tuple(map(str, allowed_writes))
        self.awake = True
        try:
            yield
        finally:
            self.awake = False


# ---- targets: each gives seeds, an input made of one of them, and what reading it may raise -------------


class ModelFiles:
    """svmosaic.load on damaged archives, and on sound archives with damaged contents; then a prediction."""

    def __init__(self, folder):
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        import svmosaic
        from svmosaic.export.files import ModelFileError

        self.load, self.refusals = svmosaic.load, (ModelFileError,)
        self.path = Path(folder) / "model.svmosaic"
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((30, 2))
        y = np.array(["a", "b", "c"])[(self.X[:, 0] > 0) + 2 * (self.X[:, 1] > 1) * (self.X[:, 0] <= 0)]
        models = [
            svmosaic.LinearSVC(random_state=0, calibration="sigmoid"),
            svmosaic.ClusteredSVC(2, random_state=0),
            svmosaic.LocallyLinearSVC(4, n_neighbors=2, random_state=0),
            svmosaic.MixtureSVC(2, max_iter=2, random_state=0),
            svmosaic.HierarchicalMixtureSVC((2, 2), max_iter=2, random_state=0),
            svmosaic.MultiTaskMixtureSVC(2, covariance_floor=1e-2, max_iter=2, random_state=0),
            svmosaic.GaussianMixtureClassifier(1, random_state=0),
            svmosaic.LearnedGateSVC(4, n_neighbors=2, max_iter=1, random_state=0),
            svmosaic.LearnedGateSVC(4, n_gates=2, max_iter=1, random_state=0),
            svmosaic.LocalCodingSVC(3, n_neighbors=2, random_state=0),
            svmosaic.KernelSVC(3, random_state=0),
            svmosaic.LinearSVC(pieces=3, random_state=0),
            svmosaic.KMeansSVC(2, pieces=3, random_state=0),
            svmosaic.TreeSVC(max_leaves=3, pieces=2, random_state=0),
        ]
        self.seeds, self.parts = [], []
        for model in models:
            model.fit(self.X, y).save(self.path)
            self._add()
        from svmosaic.export.files import save, save_predictor

        save(make_pipeline(StandardScaler(), svmosaic.LinearSVC(random_state=0)).fit(self.X, y), self.path)
        self._add()
        for model in models[-3:]:
            save_predictor(model.predictor(), self.path)
            self._add()

    def _add(self):
        self.seeds.append(self.path.read_bytes())
        with zipfile.ZipFile(io.BytesIO(self.seeds[-1])) as archive:
            self.parts.append({name: archive.read(name) for name in archive.namelist()})
        self.load(self.path).predict(self.X)

    def make(self, rng):
        k = int(rng.integers(len(self.seeds)))
        if rng.integers(4) == 0:
            return mutate(self.seeds[k], rng, self.seeds[k - 1])
        parts = dict(self.parts[k])
        name = list(parts)[int(rng.integers(len(parts)))] if rng.integers(2) else "schema.json"
        parts[name] = mutate_json(parts[name], rng) if rng.integers(2) else mutate(parts[name], rng)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for entry, content in parts.items():
                archive.writestr(entry, content)
        return out.getvalue()

    def prepare(self, data):
        self.path.write_bytes(data)

    def run(self, data):
        model = self.load(self.path)
        # Whatever came out may make no sense, but must not take the process down.
        with contextlib.suppress(Exception), np.errstate(all="ignore"):
            model.predict(self.X)


class Tables:
    """The readers of CSV, TSV, LIBSVM, NPZ and, where pyarrow is installed, Parquet and Arrow."""

    # How often each is drawn: most inputs for the parsers that are ours in part.
    KINDS = ["libsvm"] * 12 + ["csv"] * 4 + ["tsv"] * 4 + ["npz"] * 4

    SEEDS = {
        "csv": b'a,b,"c d",label\n1,2.5,x,yes\n-3e2,,"y, z",no\n4,5,x,yes\n',
        "tsv": b"a\tb\tlabel\n1\tx\t0\n2\ty\t1\n",
        "libsvm": b"+1 1:0.5 3:2 10:-1e-3\n-1 2:1 3:4 # comment\n2 qid:1 1:7\n",
        "npz": None,
    }

    def __init__(self, folder):
        from svmosaic.table.formats import TableError, read_chunks, read_table

        self.read_table, self.read_chunks, self.refusals = read_table, read_chunks, (TableError,)
        held = io.BytesIO()
        np.savez(held, X=np.arange(6.0).reshape(3, 2), y=np.array([0, 1, 1]))
        self.SEEDS = self.SEEDS | {"npz": held.getvalue()}
        self.folder = Path(folder)
        with contextlib.suppress(ImportError):
            from pyarrow import feather, parquet, table

            rows = table({"a": [1.5, None, 2.0], "b": ["x", "y", None], "label": [0, 1, 1]})
            for kind, write in (("parquet", parquet.write_table), ("arrow", feather.write_feather)):
                write(rows, self.folder / "seed", compression="snappy" if kind == "parquet" else "uncompressed")
                self.SEEDS[kind] = (self.folder / "seed").read_bytes()
            self.KINDS = [*self.KINDS, "parquet", "arrow"]
        for kind, seed in self.SEEDS.items():
            self.prepare((kind, True, seed))
            self.run((kind, True, seed))
            self.run((kind, False, seed))

    def make(self, rng):
        kind = self.KINDS[int(rng.integers(len(self.KINDS)))]
        return kind, bool(rng.integers(2)), mutate(self.SEEDS[kind], rng, self.SEEDS["csv"])

    def prepare(self, data):
        self.path = self.folder / f"table.{data[0]}"
        self.path.write_bytes(data[2])

    def run(self, data):
        kind, whole, _ = data
        label = "label" if kind not in ("libsvm", "npz") else None
        if whole:
            self.read_table(self.path, label=label)
        else:
            for _ in self.read_chunks(self.path, 2, label=label):
                pass


class Exports:
    """Models of odd numbers and hostile names, as C, JavaScript and ONNX: a refusal, or text without broken names."""

    HOSTILE = ['"; system("x"); //', "*/ INJECT /*", "a\nINJECT", "\\", "??/", '\\"', "é", "", "@NAME@", "%s", "a\0b",
               "x" * 300]  # fmt: skip

    def __init__(self, folder):
        import svmosaic
        from svmosaic.export.c import CExportError, to_c
        from svmosaic.export.javascript import JavaScriptExportError, to_javascript

        self.to_c, self.to_javascript, self.folder = to_c, to_javascript, Path(folder)
        self.refusals = (CExportError, JavaScriptExportError)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((40, 2))
        y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
        self.models = [
            svmosaic.LinearSVC(random_state=0).fit(X, y),
            svmosaic.ClusteredSVC(2, random_state=0, calibration="temperature").fit(X, y),
            svmosaic.LocallyLinearSVC(4, n_neighbors=2, random_state=0, calibration="isotonic").fit(X, y),
            svmosaic.KMeansSVC(2, pieces=3, random_state=0).fit(X, y),
            *hostile_models(self.HOSTILE),
        ]
        self.to_onnx = None
        with contextlib.suppress(ImportError):
            from svmosaic.export.onnx import OnnxExportError, to_onnx

            self.to_onnx = to_onnx
            self.refusals += (OnnxExportError,)
        for model in self.models:
            self.run((model, "model.c", "name", 1))

    def make(self, rng):
        import copy

        model = copy.deepcopy(self.models[int(rng.integers(len(self.models)))])
        words = [self.HOSTILE[int(rng.integers(len(self.HOSTILE)))] for _ in range(4)]
        if rng.integers(2):
            model.classes_ = np.array([f"{w}{i}" for i, w in enumerate(words[: len(model.classes_)])], dtype=object)
        if rng.integers(2):
            odd = [np.nan, np.inf, -np.inf, 1e39, 1e-320, -0.0, 1.7976931348623157e308][int(rng.integers(7))]
            target = [model.mosaic_.coef, model.mosaic_.intercept][int(rng.integers(2))]
            target = target if target.size else model.mosaic_.intercept
            target.flat[int(rng.integers(target.size))] = odd
        stem = "model" if rng.integers(4) else re.sub(r"[/\0]", "_", words[3])[:40]
        name = "name" if rng.integers(4) else words[2]
        return model, f"{stem}.c", name, int(rng.integers(8) == 0)

    def prepare(self, data):
        pass

    def run(self, data):
        model, file, name, onnx = data
        if onnx and self.to_onnx is not None:
            self.to_onnx(model)
        head, described = self.to_javascript(model).split("const MODEL = ", 1)
        json.loads(described.split(";\n\n// What follows", 1)[0])
        if not re.fullmatch(r"// [\w .:-]+\n", head):
            raise Trespass(f"a name broke out of the module: {list(model.classes_)!r}")
        source, header = self.to_c(model, self.folder / file, name=name)
        for path in (source, header):
            bare = _without_strings_and_comments(path.read_text())
            if "INJECT" in bare or "system" in bare:
                raise Trespass(f"a name broke out of {path.name}: {name!r}, {list(model.classes_)!r}")


def _without_strings_and_comments(text):
    return re.sub(r'"(\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*|#include[^\n]*', " ", text, flags=re.S)


TARGETS = {"models": ModelFiles, "tables": Tables, "exports": Exports, "frames": Frames}
if shutil.which("node"):
    TARGETS["rows"] = JavaScriptRows


# ---- the loop -------------------------------------------------------------------------------------

_GUARD = None


def _memory():
    """A folder held in memory, where there is one: on a disk, opening files takes longer than all the rest."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def fuzz(name, count, *, seed=0, seconds=None, folder=None, failures=None):
    """Run `count` inputs, or as many as fit in `seconds`. Returns the number run and how many were accepted.

    The first input that misbehaves is written to the folder `failures`, where given, and raised.
    """
    global _GUARD
    _GUARD = _GUARD or Guard()
    began = time.monotonic()
    # scikit-learn's checks of the arguments, the same for each input, would take a quarter of the time.
    with (
        sklearn.config_context(skip_parameter_validation=True),
        tempfile.TemporaryDirectory(dir=folder or _memory()) as room,
    ):
        target = TARGETS[name](room)
        rng = Draws(f"{name} {seed}")
        previous = signal.signal(signal.SIGPROF, _too_slow)
        done = accepted = 0
        try:
            for done in range(1, count + 1):
                if done % 256 == 1:
                    # A loop that never comes back to Python hears no signal. The file it is at stays in the folder.
                    faulthandler.dump_traceback_later(600, exit=True, file=sys.__stderr__)
                data = target.make(rng)
                target.prepare(data)
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                try:
                    with _GUARD.watching([room] if name == "exports" else ()):
                        target.run(data)
                    accepted += 1
                except target.refusals:
                    pass
                except BaseException as error:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                    if not isinstance(error, KeyboardInterrupt):
                        where = _keep(failures, name, seed, done, data)
                        raise AssertionError(f"{name}, seed {seed}, input {done}{where}: {error!r}") from error
                    raise
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                if seconds is not None and time.monotonic() - began > seconds:
                    break
        finally:
            faulthandler.cancel_dump_traceback_later()
            getattr(target, "close", lambda: None)()
            signal.signal(signal.SIGPROF, previous)
    return done, accepted


def _too_slow(*_):
    raise TooSlow(f"more than {SECONDS} s of processor time")


def _keep(folder, name, seed, number, data):
    if folder is None:
        return ""
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"{name}-{seed}-{number}"
    path.write_bytes(data if isinstance(data, bytes) else repr(data).encode())
    return f" (kept as {path})"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="tools/fuzz", description=__doc__.split("\n\n")[0])
    parser.add_argument("targets", nargs="*", default=sorted(TARGETS), help=f"of {', '.join(sorted(TARGETS))}")
    parser.add_argument("--count", type=int, default=10_000, help="inputs for each target, in each round")
    parser.add_argument("--until", type=int, help="go on, round after round, until --json has counted so many in all")
    parser.add_argument("--seconds", type=float, help="stop each target after so long")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the mutations; the clock if not given")
    parser.add_argument("--json", type=Path, help="add the counts to those in this file")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="where a bad input is kept")
    options = parser.parse_args(arguments)
    if options.until is not None and options.json is None:
        parser.error("--until needs the counts of --json")
    _limit_memory()
    warnings.simplefilter("ignore")  # numpy and scikit-learn warn of the files that they then read or refuse
    targets, seed = list(options.targets), options.seed
    while targets and (options.until is None or _counted(options.json) < options.until):
        for name in list(targets):
            try:
                done, accepted = fuzz(
                    name, options.count, seed=seed, seconds=options.seconds, failures=options.failures
                )
            except AssertionError as error:
                print(f"FAILED {error}", flush=True)
                targets = [other for other in targets if other != name]
            else:
                print(
                    f"{name}: {done} inputs (seed {seed}), {accepted} accepted, {done - accepted} refused", flush=True
                )
                if options.json:
                    _add_counts(options.json, name, done, accepted)
            seed += 1
        if options.until is None:
            break
    return int(len(targets) < len(options.targets))


def _counted(path):
    return json.loads(path.read_text())["total"] if path.exists() else 0


def _limit_memory(gigabytes=8):
    """An array of a trillion numbers should fail here, not bring the machine down."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _add_counts(path, name, done, accepted):
    import fcntl

    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        counts = json.loads(file.read() or "{}")
        entry = counts.setdefault(name, {"inputs": 0, "accepted": 0})
        entry["inputs"] += done
        entry["accepted"] += accepted
        counts["total"] = sum(value["inputs"] for key, value in counts.items() if key != "total")
        file.truncate(0)
        file.write(json.dumps(counts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
