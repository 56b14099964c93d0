"""Momentum contrast: a query encoder, a slowly following key encoder and a queue."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(10)
prototypes = torch.randn(30, 20)
samples = prototypes.repeat_interleave(40, 0) + 0.4 * torch.randn(1200, 20)


def augment(x):
    keep = (torch.rand_like(x) > 0.15).float()
    return x * keep + 0.2 * torch.randn_like(x)


encoder_q = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))
encoder_k = copy.deepcopy(encoder_q)
for parameter in encoder_k.parameters():
    parameter.requires_grad = False
queue = F.normalize(torch.randn(256, 16), dim=1)
optimizer = torch.optim.SGD(encoder_q.parameters(), lr=0.1, momentum=0.9)
temperature, momentum = 0.2, 0.98

for step in range(400):
    batch = samples[torch.randint(1200, (48,))]
    q = F.normalize(encoder_q(augment(batch)), dim=1)
    with torch.no_grad():
        for slow, fast in zip(encoder_k.parameters(), encoder_q.parameters()):
            slow.mul_(momentum).add_(fast, alpha=1 - momentum)
        k = F.normalize(encoder_k(augment(batch)), dim=1)
    positive = (q * k).sum(1, keepdim=True)
    negative = q @ queue.T
    logits = torch.cat([positive, negative], 1) / temperature
    loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue = torch.cat([k, queue])[:256]
    if step % 80 == 79:
        print(f"step {step} loss {loss.item():.3f} top1 {(logits.argmax(1) == 0).float().mean().item():.3f}")
