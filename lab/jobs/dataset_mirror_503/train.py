"""Download the table once, then train a logistic regression."""
import os
import urllib.request

import numpy as np

URL = "http://127.0.0.1:29723/sets/wine.csv"


def download(url, path):
    if not os.path.exists(path):
        print("Downloading", url, flush=True)
        urllib.request.urlretrieve(url, path)


def main():
    download(URL, "wine.csv")
    data = np.loadtxt("wine.csv", delimiter=",")
    x, y = data[:, :2], data[:, 2]
    w = np.zeros(2)
    for epoch in range(50):
        p = 1 / (1 + np.exp(-x @ w))
        w -= 0.1 * x.T @ (p - y) / len(y)
    print(f"accuracy {((p > 0.5) == y).mean():.3f}")


if __name__ == "__main__":
    main()
