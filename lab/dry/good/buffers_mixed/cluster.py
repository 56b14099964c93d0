"""Online k-means over learned embeddings."""
import argparse
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Codebook(nn.Module):
    def __init__(self, codes, width, decay=0.95):
        super().__init__()
        self.register_buffer("table", F.normalize(torch.randn(codes, width), dim=1))
        self.register_buffer("usage", torch.zeros(codes), persistent=False)
        self.decay = torch.tensor(decay)

    def forward(self, e):
        return (e @ self.table.T).argmax(1)

    @torch.no_grad()
    def update(self, e):
        index = self(e)
        onehot = F.one_hot(index, len(self.table)).to(e.dtype)
        count = onehot.sum(0)
        mean = (onehot.T @ e) / count.clamp(min=1)[:, None]
        hit = count > 0
        self.table[hit] = F.normalize(self.decay * self.table[hit] + (1 - self.decay) * mean[hit], dim=1)
        self.usage += count
        return index


class Net(nn.Module):
    def __init__(self, inputs=20, width=32, codes=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, width))
        self.decoder = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, inputs))
        self.codebook = Codebook(codes, width)

    def forward(self, x):
        e = self.encoder(x)
        return self.decoder(e), F.normalize(e, dim=1)


def revive(codebook, embedded, generator):
    """Codes that were never used are set on samples."""
    dead = torch.nonzero(codebook.usage == 0)[:, 0]
    if len(dead):
        pick = torch.randperm(len(embedded), generator=generator)[: len(dead)]
        codebook.table[dead[: len(pick)]] = embedded[pick]
    codebook.usage.zero_()
    return len(dead)


def neighbours(e, chunk=1024):
    best = torch.empty(len(e), dtype=torch.long)
    for start in range(0, len(e), chunk):
        part = e[start:start + chunk] @ e.T
        rows = torch.arange(len(part))
        part[rows, rows + start] = -torch.inf
        best[start:start + chunk] = part.argmax(1).cpu()
    return best


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--points", type=int, default=20000)
    args = p.parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    centres = 3 * torch.randn(40, 20)
    data = centres[torch.randint(40, (args.points,))] + 0.3 * torch.randn(args.points, 20)
    mean, std = data.mean(), data.std()
    net = Net().to(device)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for step in range(args.steps):
        x = (data[torch.randint(args.points, (256,))].to(device) - mean) / std
        out, e = net(x)
        index = net.codebook.update(e.detach())
        pull = (e * net.codebook.table[index]).sum(1).mean()
        loss = F.mse_loss(out, x) - 0.1 * pull
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 499:
            print(step, loss.item(), "revived", revive(net.codebook, e.detach(), generator), flush=True)
    net.eval()
    with torch.no_grad():
        e = torch.cat([net((part.to(device) - mean) / std)[1] for part in data.split(4096)])
        codes = net.codebook(e).cpu()
        same = (codes == codes[neighbours(e)]).float().mean()
    np.savez("codes.npz", codes=codes, table=net.codebook.table.cpu().numpy())
    print("neighbours with the same code", same.item(), os.path.getsize("codes.npz"))


if __name__ == "__main__":
    main()
