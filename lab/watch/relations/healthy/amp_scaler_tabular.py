"""Mixed precision with a gradient scaler, clipping and a warm-up: two interleaved spirals."""

import math

import torch
from torch import nn

torch.manual_seed(3)
turn = torch.rand(1500) * 3 * math.pi
side = torch.randint(2, (1500,)).float()
radius = turn / 6
angle = turn + math.pi * side
spiral = torch.stack([radius * angle.cos(), radius * angle.sin()], 1) + 0.05 * torch.randn(1500, 2)
features = torch.cat([spiral, spiral.square(), torch.sin(2 * spiral)], 1)
features = (features - features.mean(0)) / features.std(0)

model = nn.Sequential(nn.Linear(6, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=50)
steps_per_epoch = 1200 // 40
epochs = 12
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=epochs * steps_per_epoch)

for epoch in range(epochs):
    order = torch.randperm(1200)
    for part in order.split(40):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(features[part]).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), side[part])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    with torch.no_grad():
        guess = model(features[1200:]).squeeze(1) > 0
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {(guess == side[1200:].bool()).float().mean().item():.3f}")
