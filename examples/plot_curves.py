"""A curve per feature
===================

With ``pieces``, each tile is a sum of piecewise-linear curves, one per feature. The model is additive and can be
plotted, and fitting it is still one convex problem.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score

from svmosaic import LinearSVC
from svmosaic.explain.displays import CurveDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
model = LinearSVC(C=0.01, pieces=12, calibration="temperature", random_state=0)
print(f"cross-validated accuracy: {cross_val_score(model, X, y, cv=3).mean():.3f}")

# %%
# Four of the strongest columns. Where a curve rises, larger values favor the class "malignant"; where it is flat, the
# value does not matter. The bars rank the columns by the spread of their effect.
CurveDisplay.from_estimator(
    model.fit(X, y), X, features=["worst texture", "worst area", "worst concave points", "mean texture"]
)
plt.show()
