"""Triplet loss on synthetic voices: embeddings of one speaker lie together; unseen speakers are verified."""

import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(73)
basis = torch.randn(12, 60)


def speakers(n, each):
    who = torch.randn(n, 1, 12)
    channel = 1.5 * torch.randn(n, each, 1)
    what = torch.randn(n, each, 6) @ torch.randn(6, 60)
    return who @ basis * 0.5 + 0.5 * what * 0.8 + channel


nuisance_seed = torch.get_rng_state()
data = speakers(120, 10)
unseen = speakers(40, 10)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(60, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 24))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


def triplets(n):
    a = torch.randint(0, 120, (n,))
    b = (a + torch.randint(1, 120, (n,))) % 120
    first = torch.randint(0, 10, (n,))
    second = (first + torch.randint(1, 10, (n,))) % 10
    return data[a, first], data[a, second], data[b, torch.randint(0, 10, (n,))]


def recall_at_1(net):
    net.eval()
    with torch.no_grad():
        z = net(unseen.flatten(0, 1))
    net.train()
    sim = (z @ z.T).fill_diagonal_(-2)
    return (sim.argmax(1) // 10 == torch.arange(400) // 10).float().mean().item()


net = Embedder()
optimizer = optim.AdamW(net.parameters(), lr=2e-3)
for step in range(1, 801):
    anchor, positive, negative = triplets(128)
    za, zp, zn = net(anchor), net(positive), net(negative)
    loss = F.triplet_margin_loss(za, zp, zn, margin=0.5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} triplet loss {loss.item():.4f} recall@1 {recall_at_1(net):.4f}")
