"""Train a small MLP classifier on random 28x28 images."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.hidden = nn.Linear(784, hidden)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        x = torch.relu(self.hidden(self.flatten(x)))
        return self.head(self.dropout(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=512)
    args = parser.parse_args()

    torch.manual_seed(0)
    data = TensorDataset(torch.rand(256, 1, 28, 28), torch.randint(10, (256,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = Net(args.hidden)
    n_params = sum(p.numel() for p in model.parameters())
    print(f"model: {n_params / 1e6:.2f}M parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for step, (images, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
