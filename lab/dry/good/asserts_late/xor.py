"""A checkerboard; the job refuses to publish a network that has not learned it."""
import argparse
import statistics
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class NotLearned(RuntimeError):
    pass


def board(count, cells, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 2, generator=g)
    y = ((x * cells).long().sum(1) % 2)
    return TensorDataset(x * 2 - 1, y)


class Net(nn.Module):
    def __init__(self, width=64, bands=6):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(bands) * torch.pi / 2)
        self.layers = nn.Sequential(nn.Linear(4 * bands, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                    nn.Linear(width, 2))

    def forward(self, x):
        angles = (x[..., None] * self.bands).flatten(1)
        return self.layers(torch.cat([angles.sin(), angles.cos()], 1))


def confident(model, dataset):
    with torch.no_grad():
        p = model(dataset.tensors[0]).softmax(1)
    return p.max(1).values > 0.9, p.argmax(1)


def publish(model, history, dataset):
    sure, guess = confident(model, dataset)
    accuracy = (guess == dataset.tensors[1]).float().mean().item()
    if accuracy < 0.85:
        raise NotLearned(f"accuracy {accuracy:.3f}")
    if not history[-1] < 0.7 * history[0]:
        raise NotLearned("the loss has not fallen")
    share = (guess[sure] == dataset.tensors[1][sure]).float().mean().item()
    per_class = [1 / (guess[sure] == k).sum().item() for k in range(2)]
    print("accuracy", accuracy, "of the sure ones", share, per_class)
    torch.save(model.state_dict(), "board.pt")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--cells", type=int, default=3)
    args = p.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(board(1000, args.cells, 0), 50, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    history = []
    for epoch in range(args.epochs):
        losses = []
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        history.append(statistics.mean(losses))
        if epoch % 50 == 0:
            print(epoch, history[-1], statistics.stdev(losses))
    model.eval()
    quarter = len(history) // 4
    assert statistics.mean(history[-quarter:]) < statistics.mean(history[:quarter])
    try:
        publish(model, history, board(500, args.cells, 9))
    except NotLearned as error:
        sys.exit(f"not published: {error}")


if __name__ == "__main__":
    main()
