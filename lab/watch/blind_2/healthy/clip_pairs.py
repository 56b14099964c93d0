"""Two towers learn to match pictures with captions by a symmetric contrastive loss with a learned temperature."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
N, VOCAB, WORDS, PIXELS = 3000, 40, 6, 64
captions = torch.randint(1, VOCAB, (N, WORDS))
paint = torch.randn(VOCAB, PIXELS) / math.sqrt(WORDS)
images = paint[captions].sum(1) + 0.7 * torch.randn(N, PIXELS)


class ImageTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(PIXELS, 128), nn.GELU(), nn.Linear(128, dim))

    def forward(self, x):
        return self.net(x)


class TextTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.EmbeddingBag(VOCAB, 64, mode="sum")
        self.proj = nn.Linear(64, dim)

    def forward(self, ids):
        return self.proj(F.gelu(self.emb(ids)))


class CLIP(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.image, self.text = ImageTower(dim), TextTower(dim)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, img, txt):
        i = F.normalize(self.image(img), dim=-1)
        t = F.normalize(self.text(txt), dim=-1)
        return self.logit_scale.exp().clamp(max=100) * i @ t.T


def clip_loss(logits):
    labels = torch.arange(len(logits))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


train_set = TensorDataset(images[:2500], captions[:2500])
loader = DataLoader(train_set, batch_size=100, shuffle=True)
model = CLIP()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for epoch in range(25):
    model.train()
    for img, txt in loader:
        loss = clip_loss(model(img, txt))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(images[2500:], captions[2500:])
        recall = (logits.argmax(1) == torch.arange(500)).float().mean().item()
    if epoch % 4 == 0:
        print(f"epoch {epoch} loss {loss.item():.3f} scale {model.logit_scale.exp().item():.1f} recall@1 {recall:.4f}")
