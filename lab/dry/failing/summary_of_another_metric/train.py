import torch
from torch import nn


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        self.history = {"loss": [], "val_loss": [], "val_acc": []}

    def fit(self, epochs):
        for epoch in range(epochs):
            for _ in range(300):
                x = torch.randn(64, 8)
                loss = nn.functional.binary_cross_entropy_with_logits(self.model(x)[:, 0], (x.sum(1) > 0).float())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.validate()

    @torch.no_grad()
    def validate(self):
        x = torch.randn(512, 8)
        out, y = self.model(x)[:, 0], (x.sum(1) > 0).float()
        self.history["val_loss"].append(nn.functional.binary_cross_entropy_with_logits(out, y).item())
        self.history["val_acc"].append(((out > 0) == y.bool()).float().mean().item())

    def summary(self):
        return {name: max(self.history[name]) for name in ("val_loss", "val_accuracy")}


trainer = Trainer(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
trainer.fit(150)
print(trainer.summary())
