"""From a table to an explained model
==================================

Census data with text and missing values: a search of a few seconds, the accuracy on new rows, the most important
columns, and the explanation of one prediction. If the folder named by ``SVMOSAIC_DATA`` does not contain the adult data
set, the breast cancer data that comes with scikit-learn is used instead.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from svmosaic import MosaicClassifier
from svmosaic.explain import importances

path = Path(os.environ.get("SVMOSAIC_DATA", "")) / "tables" / "adult_train.csv"
if path.exists():
    table = pd.read_csv(path).sample(2000, random_state=0)
    y = table.pop("income")
else:
    table, y = load_breast_cancer(return_X_y=True, as_frame=True)
train, test, y_train, y_test = train_test_split(table, y, stratify=y, random_state=0)

# %%
# Columns are prepared and the model is chosen in one call.
model = MosaicClassifier(time_budget=6, random_state=0).fit(train, y_train)
print(f"accuracy on {len(test)} new rows: {model.score(test, y_test):.3f}")
print(model.leaderboard_)

# %%
# The most important columns, over all rows.
found = importances(model, test)
shown = slice(0, 8)
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.barh(found["feature"][shown][::-1], found["importance"][shown][::-1], color="#0072B2")
axis.set(xlabel="importance: mean absolute deviation of the contribution")

# %%
# Why one row was classified as it was: contributions and intercept add up to the score.
account = model.explain(test[:1])
print(account.to_frame(top=5))
plt.show()
