import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
x = rng.normal(size=(600, 12))
y = (x[:, 0] + x[:, 1] ** 2 + rng.normal(size=600) > 1).astype(int)
x_train, x_test, y_train, y_test = train_test_split(x, y, stratify=y, random_state=0)
pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(random_state=0))
grid = {"randomforestclassifier__n_estimators": [20, 50], "randomforestclassifier__max_depth": [4, None]}
search = GridSearchCV(pipeline, grid, cv=3).fit(x_train, y_train)
print(search.best_params_, roc_auc_score(y_test, search.predict_proba(x_test)[:, 1]))
joblib.dump(search.best_estimator_, "model.joblib")
