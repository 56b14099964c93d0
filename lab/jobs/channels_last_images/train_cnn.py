import logging
import sys

import numpy as np
import torch
from torch import nn

logging.basicConfig(
    stream=sys.stdout, level=logging.INFO, format="%(asctime)s - %(levelname)s - %(message)s"
)
log = logging.getLogger()


class SmallCNN(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Linear(32, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def batches(n_batches, batch_size=16):
    """Images as the reader delivers them: height x width x channels, 0..255."""
    for _ in range(n_batches):
        images = np.random.randint(0, 256, size=(batch_size, 32, 32, 3))
        yield images.astype("float32") / 255, np.random.randint(0, 10, size=batch_size)


def train():
    model = SmallCNN()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    log.info("start training")
    for step, (images, labels) in enumerate(batches(10)):
        logits = model(torch.from_numpy(images))
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(labels))
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.info("step %d loss %.3f", step, loss.item())


try:
    train()
except Exception:
    log.exception("training failed")
    sys.exit(3)
