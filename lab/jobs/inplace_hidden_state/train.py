import logging
import warnings

import torch
import torch.nn as nn

logging.basicConfig(format="[%(levelname)s] %(message)s", level=logging.INFO)
logger = logging.getLogger(__name__)
torch.autograd.set_detect_anomaly(True)
warnings.warn("detect_anomaly is on: training will be slow and errors will be more verbose")


class Recurrent(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inp = nn.Linear(4, size)
        self.rec = nn.Linear(size, size)
        self.out = nn.Linear(size, 1)

    def forward(self, sequence):
        hidden = torch.zeros(sequence.size(0), self.rec.in_features)
        for step in sequence.unbind(1):
            update = torch.sigmoid(self.inp(step) + self.rec(hidden))
            hidden = hidden + update
            update *= 0.9
        return self.out(hidden)


def run(epochs=3):
    model = Recurrent(16)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        x, y = torch.randn(32, 6, 4), torch.randn(32, 1)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.info("epoch %d error=%.4f", epoch, loss.item())


run()
