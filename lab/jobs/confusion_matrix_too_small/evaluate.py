import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier


def confusion(truth, prediction, classes=9):
    matrix = np.zeros((classes, classes), dtype=int)
    for t, p in zip(truth, prediction):
        matrix[t, p] += 1
    return matrix


digits = load_digits()
train, test = slice(0, 1200), slice(1200, None)
model = SGDClassifier(random_state=0)
for epoch in range(5):
    model.partial_fit(digits.data[train], digits.target[train], classes=np.arange(10))
    accuracy = model.score(digits.data[train], digits.target[train])
    print(f"epoch {epoch} training accuracy {accuracy:.3f}")
print("evaluating on", len(digits.data[test]), "images")
matrix = confusion(digits.target[test], model.predict(digits.data[test]))
print(matrix)
