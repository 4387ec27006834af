"""Text as sparse rows
===================

TF-IDF and a linear SVM on sparse rows predict from which module of scikit-learn a paragraph of its documentation comes.
The strongest words of each class are those with the largest weights.
"""

# %%
import inspect
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from svmosaic import LinearSVC

paragraphs, label = [], []
for name in ("cluster", "decomposition", "metrics", "preprocessing", "tree"):
    module = import_module(f"sklearn.{name}")
    texts = "\n\n".join(inspect.getdoc(getattr(module, item)) or "" for item in module.__all__)
    found = sorted({part for part in texts.split("\n\n") if len(part.split()) > 12})
    paragraphs += found
    label += [name] * len(found)
train, test, y_train, y_test = train_test_split(paragraphs, label, stratify=label, random_state=0)

# %%
vectorizer = TfidfVectorizer(token_pattern=r"[a-z]{3,}", sublinear_tf=True)
rows = vectorizer.fit_transform(train)
model = LinearSVC(C=10.0, loss="squared_hinge", random_state=0).fit(rows, y_train)
print(f"{rows.shape[0]} paragraphs, {rows.shape[1]} words, {rows.nnz / np.prod(rows.shape):.1%} of the matrix stored")
print(f"accuracy on {len(test)} others: {model.score(vectorizer.transform(test), y_test):.2f}")

# %%
# The words with the largest weights for each class.
words = vectorizer.get_feature_names_out()
figure, axes = plt.subplots(1, len(model.classes_), figsize=(14, 3), layout="constrained")
for axis, name, weight in zip(axes, model.classes_, model.coef_, strict=True):
    best = np.argsort(weight)[-6:]
    axis.barh(words[best], weight[best], color="#0072B2")
    axis.set(title=name)
plt.show()
