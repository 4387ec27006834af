"""A rare class and its threshold
==============================

One digit against all others, with seven in ten of its rows removed. The model has calibrated probabilities, and the
best threshold depends on the cost of mistakes.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.model_selection import train_test_split

from svmosaic import LocallyLinearSVC

X, digit = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
kept = (digit != 8) | (rng.random(len(digit)) < 0.3)
X, y = X[kept], (digit[kept] == 8).astype(int)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
model = LocallyLinearSVC(30, calibration="sigmoid", random_state=0).fit(X_train / 16, y_train)
probability = model.predict_proba(X_test / 16)[:, 1]
print(f"{y.mean():.1%} of the rows are rare; average precision {average_precision_score(y_test, probability):.3f}")

# %%
# Every threshold is a point on the curve. If a miss costs ten times as much as a false alarm, the best one is 1 / 11.
precision, recall, threshold = precision_recall_curve(y_test, probability)
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.plot(recall, precision, color="#0072B2")
for value, marker in ((0.5, "o"), (1 / 11, "s")):
    place = min(np.searchsorted(threshold, value), len(threshold) - 1)
    axis.plot(recall[place], precision[place], marker, color="#D55E00", label=f"threshold {value:.2f}")
axis.set(xlabel="recall of the rare class", ylabel="precision")
axis.legend(frameon=False)
plt.show()
