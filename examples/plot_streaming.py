"""Learning from a stream
======================

``partial_fit`` takes one batch after another and keeps none of them. It needs memory for one batch and the model.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.linear_model import SGDClassifier

from svmosaic import LocallyLinearSVC
from svmosaic.datasets import make_two_spirals

X_test, y_test = make_two_spirals(2000, random_state=99)
X_test /= 10  # near unit variance, as gates need
models = {
    "LocallyLinearSVC": LocallyLinearSVC(60, n_neighbors=4, C=1.0, stream_length=20_000, random_state=0),
    "SGDClassifier": SGDClassifier(random_state=0),
}

# %%
# The first batch places the anchors; the others move the tiles.
seen, accuracy = [], {name: [] for name in models}
for batch in range(40):
    X, y = make_two_spirals(500, random_state=batch)
    seen.append(500 * (batch + 1))
    for name, model in models.items():
        accuracy[name].append(model.partial_fit(X / 10, y, classes=[0, 1]).score(X_test, y_test))

# %%
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), color in zip(accuracy.items(), ("#0072B2", "#D55E00"), strict=True):
    axis.plot(seen, values, color=color, label=name)
axis.set(xlabel="rows seen", ylabel="accuracy on other rows", ylim=(0.4, 1.02))
axis.legend(frameon=False)
plt.show()
