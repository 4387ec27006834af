"""Imports point one way: down the list of packages, to the core."""

import ast
from pathlib import Path

import pytest

import svmosaic

ROOT = Path(svmosaic.__file__).parent

# From the top down, a room per line. A module may import from its own package and from
# those further down; where a line has several, the same holds from left to right.
ROOMS = [
    "__main__ cli",
    "dask",
    "outofcore",
    "display",
    "experiments",
    "bench",
    "partitions",
    "densities",
    "models",
    "search",
    "learner",
    "tabular",
    "interpretation",
    "export",
    "curves explain mixing calibration blending mosaic predictor",
    "maps",
    "solvers",
    "couplings",
    "gates",
    "datasets",
    "_validation _labels heads rows packing losses registry atomic _core _lazy _version",
]
LAYERS = [name for room in ROOMS for name in room.split()]
# The public names, which the top of the list uses as a user does, and which only name the models.
PUBLIC = "svmosaic"
USERS = LAYERS[: LAYERS.index("densities")]


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def layer_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path):
    """The layers a module imports; `svmosaic` for the public names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "svmosaic":
                for name in node.names:
                    yield name.name if name.name in LAYERS else PUBLIC
            elif node.module.startswith("svmosaic."):
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "svmosaic":
                    yield [*name.name.split("."), PUBLIC][1]


def faults(layer, targets):
    for target in targets:
        if target == PUBLIC:
            if layer not in USERS:
                yield f"{layer} imports the public names"
        elif target not in LAYERS:
            yield f"{layer} imports {target}, which has no place in LAYERS"
        elif target != layer and LAYERS.index(target) < LAYERS.index(layer):
            yield f"{layer} imports {target}, which is above it"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    assert layer_of(path) in LAYERS, f"give {layer_of(path)} its place in LAYERS"
    assert not list(faults(layer_of(path), imported(path)))


def test_the_check_itself():
    assert list(faults("models", ["gates", "couplings", "solvers", "mosaic", "_core", "models"])) == []
    assert list(faults("gates", ["models"])) == ["gates imports models, which is above it"]
    assert list(faults("solvers", [PUBLIC])) == ["solvers imports the public names"]
    assert list(faults("export", [PUBLIC])) == ["export imports the public names"]
    assert list(faults("models", ["misc"])) == ["models imports misc, which has no place in LAYERS"]
    assert {"couplings", "gates", "models"} <= set(imported(ROOT / "models" / "_cells.py"))


def test_public_names_come_from_the_models():
    assert set(imported(ROOT / "__init__.py")) == {"densities", "models", "_lazy", "_version"}
    assert all(hasattr(svmosaic, name) for name in svmosaic.__all__)


def test_nothing_is_imported_around_the_layers():
    """By name at run time: only the public names, and the command line, which is above all others."""
    around = [path.relative_to(ROOT) for path in modules() if "import_module" in path.read_text()]
    assert {path.parts[0] for path in around} == {"_lazy.py", "cli"}


def test_files_stay_short():
    for path in modules():
        assert len(path.read_text().splitlines()) <= 500, f"{path} has grown past 500 lines: split it"
