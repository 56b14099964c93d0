import urllib.request

import numpy as np

URL = "https://localhost:29737/train.csv"


def load(url):
    print("fetching", url, flush=True)
    with urllib.request.urlopen(url, timeout=10) as answer:
        return np.loadtxt(answer.read().decode().splitlines(), delimiter=",")


def main():
    data = load(URL)
    print("mean", data.mean(0))


if __name__ == "__main__":
    main()
