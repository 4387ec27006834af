"""The setting of a benchmark: this machine, and the data sets of `papers`, which is not installed."""

# ruff: noqa: F401

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from papers.data import Dataset, data_folder, load
from papers.tasks import one_hot_heart

PACKAGES = (
    "svmosaic", "scikit-learn", "scikit-learn-intelex", "lightgbm", "lleaves", "onnxruntime", "numpy", "scipy",
    "rehline",
)  # fmt: skip


def machine() -> dict:
    """Where and with what a run was made."""
    packages: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": next(models, platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": packages,
    }
