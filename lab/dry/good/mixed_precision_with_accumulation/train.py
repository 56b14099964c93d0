import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--dtype", choices=["float16", "bfloat16", "float32"], default="float16")
args = parser.parse_args()

device = "cuda"
dtype = getattr(torch, args.dtype)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.GroupNorm(4, 16),
    nn.SiLU(),
    nn.AdaptiveAvgPool2d(4),
    nn.Flatten(),
    nn.Linear(256, 20),
).to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16)
data = TensorDataset(torch.rand(210, 3, 32, 32), torch.randint(0, 20, (210,)))
loader = DataLoader(data, batch_size=16, shuffle=True, pin_memory=True)
for epoch in range(args.epochs):
    optimizer.zero_grad(set_to_none=True)
    total = torch.zeros((), device=device)
    for step, (images, labels) in enumerate(loader, start=1):
        images = images.to(device, non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast(device, dtype=dtype, enabled=dtype is not torch.float32):
            loss = nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)
        scaler.scale(loss / args.accumulate).backward()
        total += loss.detach()
        if step % args.accumulate == 0 or step == len(loader):
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
    print(f"epoch {epoch} loss {(total / len(loader)).item():.4f} norm {norm.item():.3f}")
