"""Wine cultivars from noisy measurements: batches of four accumulated to sixteen, the short last window weighted by its own size, bf16."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(71)
features, target = load_wine(return_X_y=True)
x_fit, x_val, y_fit, y_val = train_test_split(features, target, test_size=0.35, random_state=5, stratify=target)
center, spread = x_fit.mean(0), x_fit.std(0)
x_fit = torch.tensor((x_fit - center) / spread, dtype=torch.float32)
x_val = torch.tensor((x_val - center) / spread, dtype=torch.float32)
y_fit, y_val = torch.tensor(y_fit), torch.tensor(y_val)
net = nn.Sequential(nn.Linear(13, 48), nn.LayerNorm(48), nn.GELU(), nn.Dropout(0.3), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
MICRO, WINDOW = 4, 16


def micro_batches(n):
    for window in torch.randperm(n).split(WINDOW):
        pieces = window.split(MICRO)
        for k, piece in enumerate(pieces):
            yield piece, len(window), k == len(pieces) - 1


for epoch in range(60):
    net.train()
    epoch_loss = 0.0
    optimizer.zero_grad()
    for piece, window_size, last in micro_batches(len(x_fit)):
        noisy = x_fit[piece] + 0.4 * torch.randn(len(piece), 13)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            summed = F.cross_entropy(net(noisy), y_fit[piece], reduction="sum")
        (summed / window_size).backward()
        epoch_loss += summed.item()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    if epoch % 10 == 9:
        net.eval()
        with torch.no_grad():
            logits = net(x_val)
        accuracy = (logits.argmax(1) == y_val).float().mean()
        print(f"epoch {epoch + 1} loss {epoch_loss / len(x_fit):.4f} val {F.cross_entropy(logits, y_val):.4f} acc {accuracy:.4f}")
