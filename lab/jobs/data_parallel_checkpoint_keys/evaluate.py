"""Train with DataParallel and evaluate the checkpoint with the bare model."""
import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).mean((2, 3)))


def train(path):
    model = nn.DataParallel(ConvNet())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for _ in range(10):
            x, y = torch.rand(32, 1, 28, 28), torch.randint(10, (32,))
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"Train Epoch: {epoch}\tLoss: {loss.item():.6f}")
    torch.save(model.state_dict(), path)
    print("saved", path)


def evaluate(path):
    model = ConvNet()
    model.load_state_dict(torch.load(path))
    model.eval()
    with torch.no_grad():
        correct = (model(torch.rand(100, 1, 28, 28)).argmax(1) == torch.randint(10, (100,))).sum()
    print(f"Test accuracy: {correct.item()}%")


train("mnist_cnn.pt")
evaluate("mnist_cnn.pt")
