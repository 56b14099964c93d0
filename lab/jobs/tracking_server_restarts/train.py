import json
import urllib.request

import numpy as np

TRACKING = "http://127.0.0.1:29730/api/metrics"


def log_metrics(**metrics):
    body = json.dumps(metrics).encode()
    request = urllib.request.Request(TRACKING, body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=5).close()


def main():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(4, 2))
    points = rng.normal(size=(400, 2))
    for epoch in range(10):
        nearest = ((points[:, None] - centers) ** 2).sum(2).argmin(1)
        centers = np.array([points[nearest == k].mean(0) for k in range(4)])
        inertia = ((points - centers[nearest]) ** 2).sum()
        print(f"epoch {epoch} inertia {inertia:.3f}", flush=True)
        log_metrics(epoch=epoch, inertia=inertia)


if __name__ == "__main__":
    main()
