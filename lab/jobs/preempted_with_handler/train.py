"""Preemptible queue: on SIGTERM the state is saved and the job leaves with 143."""
import json
import logging
import signal
import sys
import time

import numpy as np

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")
state = {"step": 0, "weights": [0.0, 0.0]}


def on_term(signum, frame):
    log.warning("received %s: the node is needed by another job, saving state", signal.Signals(signum).name)
    with open("state.json", "w") as f:
        json.dump(state, f)
    log.info("state saved at step %d, exiting", state["step"])
    sys.exit(128 + signum)


signal.signal(signal.SIGTERM, on_term)
rng = np.random.default_rng(0)
weights = np.zeros(2)
for step in range(100_000):
    x = rng.normal(size=2)
    weights -= 0.05 * (x @ weights - x.sum()) * x
    state.update(step=step, weights=weights.tolist())
    if step % 10 == 0:
        log.info("step %d weights %s", step, weights.round(3))
    time.sleep(0.03)
