import copy

import torch
from torch import nn

from clients import Client


def build():
    return nn.Sequential(
        nn.Conv1d(2, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(32, 3)
    )


def average(states, weights):
    total = sum(weights)
    mean = copy.deepcopy(states[0])
    for name in mean:
        mean[name].zero_()
        for state, weight in zip(states, weights):
            mean[name] += state[name] * (weight / total)
    return mean


def main():
    torch.manual_seed(0)
    clients = [Client(k, samples=30 + 10 * k) for k in range(4)]
    model = build()
    for communication in range(10):
        states, weights = [], []
        for client in clients:
            states.append(client.fit(copy.deepcopy(model)))
            weights.append(client.samples)
        model.load_state_dict(average(states, weights))
        print("round", communication, sum(client.accuracy(model) for client in clients) / 4)
    torch.save(model.state_dict(), "global.pt")


if __name__ == "__main__":
    main()
