import logging
import sys

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
log = logging.getLogger("startup")

for optional in ("apex", "bitsandbytes", "xformers"):
    try:
        __import__(optional)
    except ModuleNotFoundError as error:
        log.warning("optional package missing: %s (falling back to plain PyTorch)", error)

import torch

from models import build

model = build("vit_tiny")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    loss = model(torch.randn(4, 16, 32)).pow(2).mean()
    loss.backward()
    optimizer.step()
    log.info("step %d loss %.4f", step, loss)
