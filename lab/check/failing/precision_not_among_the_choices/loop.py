import contextlib

import torch
from torch import nn

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Echo(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.rnn = nn.GRU(8, width, batch_first=True)
        self.out = nn.Linear(width, 8)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


def precision_context(precision):
    if precision == "fp32":
        return contextlib.nullcontext()
    return torch.autocast("cuda", dtype=TYPES[precision])


def batch(size=64, length=40, delay=5):
    x = torch.randn(size, length, 8)
    return x, x.roll(delay, dims=1)


def train(steps, precision, checkpoint):
    model = Echo().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        x, y = (part.cuda() for part in batch())
        with precision_context(precision):
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), checkpoint)


def evaluate(checkpoint):
    model = Echo()
    model.load_state_dict(torch.load(checkpoint, weights_only=True))
    x, y = batch()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()
