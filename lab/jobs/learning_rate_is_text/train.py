import json
import logging
import logging.config

import torch
from torch import nn

logging.config.dictConfig(
    {
        "version": 1,
        "formatters": {"f": {"format": "%(asctime)s [%(process)d] %(levelname)s: %(message)s"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "f"}},
        "root": {"handlers": ["console"], "level": "INFO"},
    }
)
log = logging.getLogger()

with open("hparams.json") as f:
    hparams = json.load(f)
log.info("hyper-parameters %s", hparams)

model = nn.Sequential(nn.Linear(10, 50), nn.Tanh(), nn.Linear(50, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=hparams["lr"], momentum=hparams["momentum"])
for epoch in range(hparams["epochs"]):
    x = torch.randn(64, 10)
    loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.info("epoch %d, loss %.4f", epoch, loss.item())
