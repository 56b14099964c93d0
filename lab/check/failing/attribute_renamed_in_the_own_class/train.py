"""Fits a neural ordinary differential equation by Euler steps."""

import argparse

import torch
from torch import nn

from history import History


class Field(nn.Module):
    def __init__(self, width=50):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, state):
        return self.net(state**3)


def integrate(field, state, steps, dt):
    states = [state]
    for _ in range(steps):
        state = state + dt * field(state)
        states.append(state)
    return torch.stack(states)


def spiral(state):
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    return state**3 @ matrix


def summarize(history, field):
    parameters = sum(p.numel() for p in field.parameters())
    print(f"{parameters} parameters")
    print(f"first loss {history.loss_values[0]:.4f}")
    print(f"best loss {history.best():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    truth = integrate(spiral, torch.tensor([[2.0, 0.0]]), 400, 0.025)
    field = Field()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=args.lr)
    history = History()
    for iteration in range(args.iterations):
        start = torch.randint(0, 390, (16,))
        predicted = integrate(field, truth[start, 0], 10, 0.025)
        wanted = torch.stack([truth[start + offset, 0] for offset in range(11)])
        loss = (predicted - wanted).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.add(loss.item())
        if iteration % 200 == 0:
            print(iteration, history.smooth())
    summarize(history, field)


if __name__ == "__main__":
    main()
