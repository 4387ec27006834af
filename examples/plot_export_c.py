"""The model as a C file
=====================

``to_c`` writes a model as one C99 file without dependencies. Here it is compiled and used to draw a map of decisions,
which agrees with Python's. Without a C compiler, only the file is written.
"""

# %%
import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from svmosaic import LocallyLinearSVC
from svmosaic.datasets import make_two_spirals

X, y = make_two_spirals(1000, random_state=0)
model = LocallyLinearSVC(60, n_neighbors=4, C=100.0, random_state=0).fit(X, y)
folder = Path(tempfile.mkdtemp())
model.to_c(folder / "spirals.c")
print(f"{(folder / 'spirals.c').stat().st_size:,} bytes of C")
print((folder / "spirals.h").read_text())

# %%
# Predictions of the compiled file on a grid of rows.
side = np.linspace(X.min(), X.max(), 200)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(np.float32)
found = model.predict(grid)
compiler = shutil.which("cc")
if compiler:
    library = folder / "spirals.so"
    subprocess.run(
        [compiler, "-std=c99", "-O2", "-shared", "-fPIC", folder / "spirals.c", "-o", library, "-lm"], check=True
    )
    predict = ctypes.CDLL(str(library)).spirals_predict
    predict.argtypes = [ctypes.POINTER(ctypes.c_float)]
    rows = grid.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    address = ctypes.addressof(rows.contents)
    step = grid.strides[0]
    from_c = [predict(ctypes.cast(address + step * row, ctypes.POINTER(ctypes.c_float))) for row in range(len(grid))]
    print(f"C and Python agree on {np.mean(model.classes_[from_c] == found):.2%} of {len(grid):,} rows")
    found = model.classes_[from_c]

# %%
figure, axis = plt.subplots(figsize=(5, 5), layout="constrained")
axis.pcolormesh(side, side, found.reshape(200, 200), cmap="Blues", alpha=0.5)
axis.scatter(*X.T, c=y, cmap="coolwarm", s=4)
axis.set(aspect="equal", title="decisions of the C file" if compiler else "decisions")
plt.show()
