"""Cross-validated training on a small cohort."""
import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(format="%(asctime)s,%(msecs)03d %(message)s", datefmt="%H:%M:%S", level=20)


def validate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y).item()
    return total / len(loader)


def main(patients=90, batch_size=32):
    x, y = torch.randn(patients, 30), torch.randint(2, (patients,)).float()
    train = DataLoader(TensorDataset(x[:70], y[:70]), batch_size, shuffle=True, drop_last=True)
    valid = DataLoader(TensorDataset(x[70:], y[70:]), batch_size, drop_last=True)
    model = nn.Linear(30, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, 6):
        model.train()
        for xb, yb in train:
            loss = nn.functional.binary_cross_entropy_with_logits(model(xb)[:, 0], yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        logging.info("epoch %d train loss %.4f", epoch, loss.item())
        logging.info("epoch %d valid loss %.4f", epoch, validate(model, valid))


main()
