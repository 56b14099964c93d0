"""First the head alone, then, from its checkpoint, the whole model."""
import torch
import torch.nn.functional as F
from torch import nn

PATH = "stage.pt"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(30, 60), nn.ReLU(), nn.Linear(60, 20), nn.ReLU())
        self.head = nn.Linear(20, 4)

    def forward(self, x):
        return self.head(self.body(x))


def optimizer_of(model, unfrozen):
    groups = [{"params": model.head.parameters(), "lr": 1e-3}]
    if unfrozen:
        groups.append({"params": model.body.parameters(), "lr": 1e-5})
    return torch.optim.AdamW(groups)


def run(model, optimizer, epochs):
    for epoch in range(epochs):
        x, y = torch.randn(64, 30), torch.randint(0, 4, (64,))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} {loss.item():.3f}")


def main():
    model = Model()
    model.body.requires_grad_(False)
    optimizer = optimizer_of(model, unfrozen=False)
    run(model, optimizer, epochs=3)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, PATH)

    state = torch.load(PATH)
    model.load_state_dict(state["model"])
    model.body.requires_grad_(True)
    optimizer = optimizer_of(model, unfrozen=True)
    optimizer.load_state_dict(state["optimizer"])
    run(model, optimizer, epochs=10)


main()
