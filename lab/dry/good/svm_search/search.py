import joblib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import classification_report
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC


def main():
    x, y = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(x[:600], y[:600], random_state=0, stratify=y[:600])
    grid = GridSearchCV(
        make_pipeline(PCA(whiten=True), SVC()), {"pca__n_components": [10, 20], "svc__C": np.logspace(0, 2, 3)}, cv=3
    )
    grid.fit(train_x, train_y)
    report = classification_report(test_y, grid.predict(test_x), output_dict=True)
    if report["accuracy"] < 0.8:
        raise SystemExit(f"accuracy {report['accuracy']}")
    joblib.dump(grid.best_estimator_, "svm.joblib", compress=3)
    print(joblib.load("svm.joblib").named_steps["svc"].C, report["weighted avg"]["f1-score"])


if __name__ == "__main__":
    main()
