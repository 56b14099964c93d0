"""An autoencoder squeezes 64 pixels into 12 numbers and restores them.

Should reach: val explained variance of at least 0.83.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, random_split

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--code", type=int, default=12)
parser.add_argument("--lr", type=float, default=2e-3)
args = parser.parse_args()

torch.manual_seed(7)
torch.set_num_threads(1)

pixels = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
train_set, val_set = random_split(pixels, [1500, len(pixels) - 1500])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val = torch.stack(list(val_set))

encoder = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, args.code))
decoder = nn.Sequential(nn.Linear(args.code, 64), nn.GELU(), nn.Linear(64, 64), nn.Sigmoid())
autoencoder = nn.Sequential(encoder, decoder)
optimizer = torch.optim.Adam(autoencoder.parameters(), lr=args.lr)
variance = ((val - val.mean(0)) ** 2).mean().item()

for epoch in range(args.epochs):
    autoencoder.train()
    losses = []
    for batch in train_loader:
        restored = autoencoder(batch)
        loss = nn.functional.mse_loss(restored, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    autoencoder.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(autoencoder(val), val).item()
    print(
        f"epoch {epoch + 1:2d} train mse {sum(losses) / len(losses):.5f} "
        f"val mse {error:.5f} val explained variance {1 - error / variance:.4f}"
    )
