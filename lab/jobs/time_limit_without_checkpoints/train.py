"""Needs 30 s and keeps its result only at the end."""
import logging
import time

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")
weights = np.zeros(10)
for epoch in range(30):
    for step in range(10):
        weights += 0.1 * np.random.default_rng(step).normal(size=10)
        time.sleep(0.1)
    log.info("epoch %d of 30, norm %.3f", epoch, np.linalg.norm(weights))
np.save("weights.npy", weights)
