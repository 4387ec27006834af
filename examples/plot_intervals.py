"""Prediction intervals
====================

Two quantiles on one gate are fitted without a part of the rows, and then moved apart until that part has the requested
coverage. The intervals follow the noise, which here grows to the right, and nine of ten new rows lie inside.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from svmosaic import LocallyLinearSVR
from svmosaic.explain.displays import PredictionDisplay
from svmosaic.search.intervals import fit_intervals


def draw(n_rows, seed):
    """A wave whose noise grows along x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, n_rows)
    return x[:, None], 20 + 5 * np.sin(x) + rng.standard_t(5, n_rows) * (0.3 + 0.2 * x)


X, y = draw(2000, 0)
X_new, y_new = draw(2000, 1)

# %%
# A model of the mean, and intervals with the same number of anchors.
model = LocallyLinearSVR(n_anchors=20, n_neighbors=3, random_state=0).fit(X, y)
intervals = fit_intervals(model, X, y, quantiles=(0.05, 0.95), random_state=0)
ends = intervals.predict(X_new)
inside = (ends[:, 0] <= y_new) & (y_new <= ends[:, 1])
print(f"coverage of new rows: {inside.mean():.1%}; margin of the correction: {intervals.margin:.3f}")

# %%
# Along x: the band is narrow on the left and wide on the right.
grid = np.linspace(0, 10, 400)[:, None]
low, high = intervals.predict(grid).T
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
axis.scatter(X_new[:, 0], y_new, s=6, color="#999999", label="new rows")
axis.fill_between(grid[:, 0], low, high, color="#56B4E9", alpha=0.4, label="90 % interval")
axis.plot(grid[:, 0], model.predict(grid), color="#0072B2", label="prediction")
axis.set(xlabel="x", ylabel="y")
axis.legend(frameon=False)

# %%
# Predicted against actual values, with the intervals as bars, and the residuals.
PredictionDisplay.from_estimator(model, X_new[:300], y_new[:300], intervals=intervals.predict)
plt.show()
