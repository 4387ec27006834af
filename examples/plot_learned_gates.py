"""Learned gates move their regions
================================

``LearnedGateSVC`` moves its anchors by the gradient of the loss. After one epoch, the regions are almost those of
k-means, which does not use the labels; later, they follow the boundary.
"""

# %%
import matplotlib.pyplot as plt

from svmosaic import LearnedGateSVC, LocallyLinearSVC
from svmosaic.datasets import make_two_spirals
from svmosaic.explain.displays import RegionDisplay

X, y = make_two_spirals(1500, random_state=0)
X_test, y_test = make_two_spirals(1500, random_state=1)
X, X_test = X / 10, X_test / 10  # near unit variance, as gates need

# %%
# The same start, stopped after 1, 10 and 80 epochs.
figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), sharey=True, layout="constrained")
for axis, epochs in zip(axes, (1, 10, 80), strict=True):
    model = LearnedGateSVC(
        n_tiles=16, n_neighbors=3, n_components=2, max_iter=epochs, early_stopping=False, random_state=0
    ).fit(X, y)
    RegionDisplay.from_estimator(model, X, y, ax=axis, legend=False)
    axis.set_title(f"{epochs} epoch{'s' if epochs > 1 else ''}: accuracy {model.score(X_test, y_test):.1%}")

# %%
# The same number of anchors, fixed at the k-means centers.
fixed = LocallyLinearSVC(16, n_neighbors=3, random_state=0).fit(X, y)
print(f"accuracy with fixed anchors: {fixed.score(X_test, y_test):.1%}")
plt.show()
