"""Next-token pretraining on a packed token file."""
import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

p = argparse.ArgumentParser()
p.add_argument("--data", type=Path)
p.add_argument("--block-size", type=int, default=128)
p.add_argument("--steps", type=int, default=20)
cfg = p.parse_args()
print(f"config: {vars(cfg)}")

model = nn.Sequential(nn.Embedding(1024, 32), nn.Linear(32, 1024))
print(f"{sum(w.numel() for w in model.parameters()):,} parameters")

size_gb = cfg.data.stat().st_size / 2**30
print(f"opening {cfg.data} ({size_gb:.1f} GB)")
tokens = np.memmap(cfg.data, dtype=np.uint16, mode="r")

opt = torch.optim.AdamW(model.parameters())
for step in range(cfg.steps):
    at = np.random.randint(len(tokens) - cfg.block_size - 1)
    chunk = torch.from_numpy(tokens[at : at + cfg.block_size + 1].astype(np.int64))
    loss = nn.functional.cross_entropy(model(chunk[:-1]), chunk[1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
