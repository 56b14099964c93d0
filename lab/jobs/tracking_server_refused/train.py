"""Logs every epoch to the tracking server of the group."""
import json
import os
import time
import urllib.request

import numpy as np

URL = os.environ["TRACKING_URI"]


def post(path, payload, attempts=3):
    request = urllib.request.Request(URL + path, json.dumps(payload).encode(), {"Content-Type": "application/json"})
    for attempt in range(1, attempts + 1):
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return json.load(response)
        except OSError as error:
            print(f"[tracking] attempt {attempt}/{attempts} failed: {error}")
            if attempt == attempts:
                raise
            time.sleep(0.2 * 2**attempt)


def main():
    rng = np.random.default_rng(0)
    run = post("/api/runs", {"name": "ridge-baseline", "user": os.environ.get("USER")})
    x = rng.normal(size=(100, 5))
    w = np.zeros(5)
    for epoch in range(10):
        w -= 0.1 * x.T @ (x @ w - x.sum(1)) / 100
        post(f"/api/runs/{run['id']}/metrics", {"epoch": epoch, "norm": float(np.linalg.norm(w))})


if __name__ == "__main__":
    main()
