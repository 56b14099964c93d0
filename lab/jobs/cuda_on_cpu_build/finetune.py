import os
import time

import torch
from torch import nn


def setup():
    print(f"torch {torch.__version__}, {os.cpu_count() and 'multi'}-core host, job 4711")
    try:
        import apex  # noqa: F401
    except ImportError as e:
        print(f"WARNING: could not import apex ({e}), falling back to native AMP")
    torch.manual_seed(42)


def build_model(num_classes=5):
    backbone = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(backbone, nn.Linear(8, num_classes))


def main():
    setup()
    model = build_model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    started = time.time()
    for epoch in range(3):
        images = torch.rand(16, 3, 32, 32).cuda()
        labels = torch.randint(5, (16,)).cuda()
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} ({time.time() - started:.1f}s)")


if __name__ == "__main__":
    main()
