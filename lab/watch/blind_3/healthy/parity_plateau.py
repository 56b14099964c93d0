"""Parity of five hidden bits among twenty-four: the loss stays at log 2 for a thousand steps, then falls within a few hundred."""

import torch
import torch.nn.functional as F
from torch import nn

BITS, SECRET, BATCH, LR = 24, (2, 7, 11, 16, 19), 128, 0.05


def draw(n, generator):
    bits = torch.randint(0, 2, (n, BITS), generator=generator)
    label = bits[:, list(SECRET)].sum(1) % 2
    return 2.0 * bits - 1.0, label.float()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(77)
    model = nn.Sequential(nn.Linear(BITS, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    x_test, y_test = draw(2000, generator)
    for step in range(1, 3001):
        x, y = draw(BATCH, generator)
        loss = F.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 300 == 0:
            with torch.no_grad():
                acc = ((model(x_test).squeeze(1) > 0) == y_test.bool()).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} test accuracy {acc:.4f}")


main()
