"""Random search: a trial that raises is recorded as failed and the sweep goes on."""
import logging
import random

import torch

logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(asctime)s] %(message)s")
random.seed(4)


def trial(lr, heads, width):
    att = torch.nn.MultiheadAttention(width, heads, batch_first=True)
    opt = torch.optim.SGD(att.parameters(), lr=lr)
    for _ in range(5):
        x = torch.randn(4, 6, width)
        out, _ = att(x, x, x)
        loss = (out - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


best = (float("inf"), None)
states = {"complete": 0, "failed": 0}
for number in range(8):
    params = dict(lr=10 ** random.uniform(-3, -1), heads=random.choice([2, 3, 4]), width=random.choice([16, 24, 32]))
    try:
        value = trial(**params)
    except Exception as error:
        logging.warning("Trial %d failed with parameters: %s because of the following error: %r.", number, params, error,
                        exc_info=True)
        states["failed"] += 1
        continue
    states["complete"] += 1
    best = min(best, (value, number))
    logging.info("Trial %d finished with value: %.4f and parameters: %s.", number, value, params)
logging.info("Best is trial %d with value %.4f. %s", best[1], best[0], states)
