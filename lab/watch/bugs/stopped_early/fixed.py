"""A small vision transformer that reads digits by 2x2 patches."""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class PatchTransformer(nn.Module):
    def __init__(self, width=32, heads=4, layers=2, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, stride=2)
        self.position = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.position
        return self.head(self.encoder(tokens).mean(dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-4)
    args = parser.parse_args()

    torch.manual_seed(9)
    torch.set_num_threads(1)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 8 - 1
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    train_rows, val_rows = order[:1280], order[1280:]
    loader = DataLoader(
        TensorDataset(images[train_rows], labels[train_rows]), args.batch_size, shuffle=True
    )
    model = PatchTransformer()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    step = 0
    for epoch in range(args.epochs):
        model.train()
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 40 == 0:
                print(f"step {step} loss {loss.item():.4f}")
        model.eval()
        with torch.no_grad():
            logits = model(images[val_rows])
        val_loss = criterion(logits, labels[val_rows]).item()
        accuracy = (logits.argmax(1) == labels[val_rows]).float().mean().item()
        print(f"epoch {epoch + 1} val loss {val_loss:.4f} val accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
