"""Random-forest baseline; the model is kept with joblib."""
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.externals import joblib
from sklearn.model_selection import train_test_split

X, y = make_classification(n_samples=1000, n_features=20, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
forest = RandomForestClassifier(n_estimators=100).fit(X_train, y_train)
print("accuracy", np.mean(forest.predict(X_test) == y_test))
joblib.dump(forest, "forest.pkl")
