"""First the head alone, then all layers, going on from the checkpoint of the first phase."""
import argparse
import dataclasses
import pathlib

import torch
from sklearn.datasets import load_digits
from torch import nn


@dataclasses.dataclass
class Phase:
    name: str
    epochs: int
    lr: float
    frozen: bool


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU())
        self.head = nn.Linear(96, 10)

    def forward(self, x):
        return self.head(self.backbone(x))


def groups(model, phase):
    """Layers with weight decay and without."""
    for p in model.backbone.parameters():
        p.requires_grad = not phase.frozen
    decay = [p for p in model.parameters() if p.requires_grad and p.ndim > 1]
    plain = [p for p in model.parameters() if p.requires_grad and p.ndim <= 1]
    return [{"params": decay, "weight_decay": 1e-2}, {"params": plain, "weight_decay": 0.0}]


class Run:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.model, self.step, self.optimizer = Net(), 0, None

    def file(self):
        return self.folder / "state.pt"

    def save(self):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "step": self.step}, self.file())

    def begin(self, phase, proceed):
        self.optimizer = torch.optim.AdamW(groups(self.model, phase), lr=phase.lr)
        if proceed:
            state = torch.load(self.file())
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step = state["step"]
            for group in self.optimizer.param_groups:
                group["lr"] = phase.lr

    def train(self, phase, x, y):
        for epoch in range(phase.epochs):
            for part in torch.randperm(len(x)).split(64):
                loss = nn.functional.cross_entropy(self.model(x[part]), y[part])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.step += 1
            print(phase.name, epoch, self.step, round(loss.item(), 4), flush=True)
            self.save()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--pretrain-epochs", type=int, default=5)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--work", default="work")
    args = p.parse_args()
    torch.manual_seed(0)
    digits = load_digits()
    x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    run = Run(args.work)
    phases = [Phase("head", args.pretrain_epochs, 1e-2, True), Phase("all", args.epochs, 1e-3, False)]
    for number, phase in enumerate(phases):
        run.begin(phase, proceed=number > 0)
        run.train(phase, x[:1400], y[:1400])
    with torch.no_grad():
        print("accuracy", (run.model(x[1400:]).argmax(1) == y[1400:]).float().mean().item())


if __name__ == "__main__":
    main()
