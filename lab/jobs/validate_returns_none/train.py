"""Three epochs of training, then the test run."""
import torch
from torch import nn


class Runner:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        self.optim = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def data(self, n):
        x = torch.randn(n, 4)
        return x, x[:, :3].argmax(1)

    def train_epoch(self, epoch):
        x, y = self.data(600)
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        print(f"[epoch {epoch}] train loss = {loss.item():.3f}")

    def test(self):
        x, y = self.data(200)
        with torch.no_grad():
            logits = self.model(x)
        accuracy = (logits.argmax(1) == y).float().mean().item()
        loss = nn.functional.cross_entropy(logits, y).item()
        print(f"[test] loss = {loss:.3f} accuracy = {accuracy:.3f}")


runner = Runner()
for epoch in range(3):
    runner.train_epoch(epoch)
test_loss, test_accuracy = runner.test()
print("final:", test_loss, test_accuracy)
