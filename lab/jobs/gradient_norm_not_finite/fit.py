import logging

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

logging.basicConfig(level=logging.DEBUG, format="%(levelname)-8s %(name)s:%(lineno)d %(message)s")
log = logging.getLogger("fit")


class LogCoshRegressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss(self, x, y):
        difference = self.net(x) - y
        return torch.log(torch.cosh(difference)).mean()


def batches():
    torch.manual_seed(4)
    for i in range(8):
        x = torch.randn(32, 4)
        y = x.sum(1, keepdim=True)
        if i == 5:
            y[7] = 4.0e3  # a sensor glitch in the raw data
        yield x, y


model = LogCoshRegressor()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step, (x, y) in enumerate(batches()):
    loss = model.loss(x, y)
    optimizer.zero_grad()
    loss.backward()
    norm = clip_grad_norm_(model.parameters(), max_norm=1.0, error_if_nonfinite=True)
    optimizer.step()
    log.info("step %d loss %.4f grad norm %.3f", step, loss, norm)
