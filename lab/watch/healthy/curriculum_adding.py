"""The adding problem for a GRU, first in short sequences, then in longer ones.

The training loss jumps up a little when the sequences get longer.
Should reach: val mse below 0.01 at length 20 (guessing the mean: 0.167).
"""

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)


def make_batch(size, length):
    """Random numbers and two marks; the target is the sum of the marked numbers."""
    values = torch.rand(size, length)
    marks = torch.zeros(size, length)
    half = length // 2
    rows = torch.arange(size)
    first = torch.randint(0, half, (size,))
    second = torch.randint(half, length, (size,))
    marks[rows, first] = 1
    marks[rows, second] = 1
    return torch.stack([values, marks], dim=2), (values * marks).sum(1, keepdim=True)


class Adder(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x):
        _, last = self.gru(x)
        return self.linear(last[-1])


def main():
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    mse = nn.MSELoss()
    held_out = make_batch(500, 20)
    for length, steps in [(5, 300), (10, 300), (20, 400)]:
        for step in range(1, steps + 1):
            model.train()
            x, y = make_batch(64, length)
            loss = mse(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 100 == 0:
                model.eval()
                with torch.no_grad():
                    error = mse(model(held_out[0]), held_out[1]).item()
                print(f"length {length} step {step} loss {loss.item():.4f} val mse {error:.4f}")


if __name__ == "__main__":
    main()
