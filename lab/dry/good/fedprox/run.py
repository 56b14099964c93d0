import copy
import random

import torch
from torch import nn


def local(model, data, mu, steps):
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(steps):
        x, y = data
        loss = nn.functional.cross_entropy(model(x), y)
        loss = loss + mu / 2 * sum((p - s).pow(2).sum() for p, s in zip(model.parameters(), start))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.state_dict(), len(x)


def merge(results):
    total = sum(count for _, count in results)
    merged = {}
    for name, value in results[0][0].items():
        if value.is_floating_point():
            merged[name] = sum(state[name] * (count / total) for state, count in results)
        else:
            merged[name] = max(state[name] for state, _ in results)
    return merged


def main():
    torch.manual_seed(0)
    random.seed(0)
    clients = []
    for _ in range(8):
        x = torch.randn(random.randint(20, 60), 12)
        clients.append((x, (x[:, :3].sum(1) > 0).long()))
    model = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    chosen = {}
    for communication in range(25):
        sample = random.sample(range(8), 3)
        for client in sample:
            chosen[client] = chosen.get(client, 0) + 1
        model.load_state_dict(merge([local(copy.deepcopy(model), clients[c], 0.01, 5) for c in sample]))
    rarely = min(chosen[client] for client in range(8))
    print("each client at least", rarely, "times; most:", max(chosen, key=chosen.get))
    torch.save(model.state_dict(), "fedprox.pt")


if __name__ == "__main__":
    main()
