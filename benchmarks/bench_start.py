"""How long it takes to begin: imports, and the command line.

Each command runs in processes of its own, in turn with the others, and the fastest run counts, in processor seconds
and on the wall. `import svmosaic` imports the estimators only when they are asked for, so the same is measured with an
estimator. A file of a predictor, and one of a model, are opened and answer one row.

Asserted: `import svmosaic` takes no more than 1.15 times the processor time of `import sklearn.svm`. The goal is the
same with an estimator, for `svmosaic --help` an answer within one second, and for the predictor within 0.3 seconds.

    python benchmarks/bench_start.py            15 runs of each; writes benchmarks/results/start.json
    python benchmarks/bench_start.py --quick    2 runs of each
"""

import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from common import arguments, print_table, write_results

COMMANDS = {
    "python -c pass": "pass",
    "import sklearn": "import sklearn",
    "import sklearn.svm": "import sklearn.svm",
    "import svmosaic": "import svmosaic",
    "from svmosaic import LinearSVC": "from svmosaic import LinearSVC",
    "from svmosaic import MosaicClassifier": "from svmosaic import MosaicClassifier",
    "svmosaic --help": "import sys; sys.argv = ['svmosaic', '--help']; from svmosaic.cli import main; main()",
    "svmosaic predict --help": (
        "import sys; sys.argv = ['svmosaic', 'predict', '--help']; from svmosaic.cli import main; main()"
    ),
}
PREDICTOR = "svmosaic.load of a predictor, and one row"
MODEL = "svmosaic.load of a model, and one row"
REFERENCE, LIMIT = "import sklearn.svm", 1.15


def measure(code):
    """Processor seconds and seconds on the wall of `python -c code`."""
    start = perf_counter()
    with open(os.devnull, "w") as nowhere:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        child = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"python -c {code!r} failed")
    return usage.ru_utime + usage.ru_stime, perf_counter() - start


def with_files(folder) -> dict:
    """All commands; two of them open a file in the folder."""
    from svmosaic import LocallyLinearSVC
    from svmosaic.datasets import make_xor

    predictor, model = Path(folder) / "xor.predictor", Path(folder) / "xor.model"
    fitted = LocallyLinearSVC(10, random_state=0).fit(*make_xor(random_state=0))
    fitted.save_predictor(predictor)
    fitted.save(model)
    code = "import numpy, svmosaic; svmosaic.load({!r}){}"
    return {
        **COMMANDS,
        PREDICTOR: code.format(str(predictor), "(numpy.zeros(2))"),
        MODEL: code.format(str(model), ".predict(numpy.zeros((1, 2)))"),
    }


def main():
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        commands = with_files(folder)
        for code in commands.values():
            measure(code)  # compiled modules and file caches
        runs = {name: [] for name in commands}
        for _ in range(2 if options.quick else 15):
            for name, code in commands.items():
                runs[name].append(measure(code))
    records = [
        {"command": name, "processor_seconds": round(min(cpu), 4), "seconds": round(min(wall), 4)}
        for name, each in runs.items()
        for cpu, wall in [zip(*each, strict=True)]
    ]
    processor = {record["command"]: record["processor_seconds"] for record in records}
    summary = {
        "import_ratio": round(processor["import svmosaic"] / processor[REFERENCE], 3),
        "import_ratio_with_estimator": round(
            processor["from svmosaic import MosaicClassifier"] / processor[REFERENCE], 3
        ),
        "import_limit": LIMIT,
        "help_seconds": next(r["seconds"] for r in records if r["command"] == "svmosaic --help"),
        "predictor_seconds": next(r["seconds"] for r in records if r["command"] == PREDICTOR),
        "help_ratio_to_import_sklearn": round(processor["svmosaic --help"] / processor["import sklearn"], 3),
    }
    print_table(
        "time to begin, fastest run", ["command", "processor s", "wall s", "to import sklearn.svm"],
        [[r["command"], f"{r['processor_seconds']:.3f}", f"{r['seconds']:.3f}",
          f"{r['processor_seconds'] / processor[REFERENCE]:.2f}"] for r in records],
    )  # fmt: skip
    print(f"\n{summary}")
    write_results("start", "start", records, summary, options)
    assert summary["import_ratio"] <= LIMIT, f"import svmosaic takes {summary['import_ratio']} times {REFERENCE}"


if __name__ == "__main__":
    main()
