"""A boundary that bends between regions
=====================================

One linear SVM cannot follow two interlocking bananas. A mosaic can: tiles are linear, and the gate blends them.
The lines in the background separate the regions in which one tile has the largest weight.
"""

# %%
import matplotlib.pyplot as plt

from svmosaic import ClusteredSVC, LinearSVC, LocallyLinearSVC
from svmosaic.datasets import make_banana
from svmosaic.explain.displays import RegionDisplay

X, y = make_banana(600, noise=0.18, random_state=0)
models = {
    "one tile": LinearSVC(random_state=0),
    "8 cells": ClusteredSVC(8, random_state=0),
    "12 anchors, blended": LocallyLinearSVC(12, n_neighbors=3, random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(14, 4.5), layout="constrained")
for ax, (title, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    RegionDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"{title}: accuracy {model.score(X, y):.1%}")
plt.show()
