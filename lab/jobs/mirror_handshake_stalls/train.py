import urllib.request

import numpy as np

URL = "https://localhost:29732/data/points.csv"


def load_points(url):
    print("fetching", url, flush=True)
    with urllib.request.urlopen(url, timeout=5) as answer:
        return np.loadtxt(answer.read().decode().splitlines(), delimiter=",")


def main():
    points = load_points(URL)
    slope, offset = np.polyfit(points[:, 0], points[:, 1], 1)
    print(f"slope {slope:.4f} offset {offset:.4f}")


if __name__ == "__main__":
    main()
