import copy

import torch
from torch import nn


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    swa = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(120):
        for _ in range(200):
            x = torch.randn(32, 16)
            loss = nn.functional.cross_entropy(model(x), (x.mean(1) > 0).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch >= 100:
            for name, value in model.state_dict().items():
                swa[name] = swa[name] * 0.9 + value * 0.1
    swa.load_state_dict(model.state_dict())
    torch.save(swa, "averaged.pt")


if __name__ == "__main__":
    main()
