"""Black and white digits pixel by pixel (MADE): masked layers, in which most weights have no effect and get no gradient.

Should reach: val nats per image below 20; independent pixels give about 25.4.
"""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(43)
torch.set_num_threads(1)
pixels = (torch.tensor(load_digits().data) > 7).float()
pixels = pixels[torch.randperm(len(pixels))]
train, val = pixels[:1400], pixels[1400:]
share = train.mean(0).clamp(0.002, 0.998)
print(f"independent pixels: {F.binary_cross_entropy(share.expand_as(val), val, reduction='sum') / len(val):.2f}")


class MaskedLinear(nn.Linear):
    def __init__(self, inputs, outputs, mask):
        super().__init__(inputs, outputs)
        self.register_buffer("mask", mask.float())

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)


class Made(nn.Module):
    def __init__(self, size=64, hidden=256):
        super().__init__()
        order, units = torch.arange(1, size + 1), torch.arange(hidden) % (size - 1) + 1
        self.hidden = MaskedLinear(size, hidden, units[:, None] >= order[None])
        self.drop = nn.Dropout(0.15)
        self.out = MaskedLinear(hidden, size, order[:, None] > units[None])

    def forward(self, x):
        return self.out(self.drop(F.relu(self.hidden(x))))


def nats(model, x):
    return F.binary_cross_entropy_with_logits(model(x), x, reduction="sum") / len(x)


model = Made()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.02)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
for epoch in range(30):
    model.train()
    total = 0.0
    for batch in train[torch.randperm(1400)].split(50):
        loss = nats(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch + 1} loss {total / 28:.3f} val nats per image {nats(model, val):.3f}")
