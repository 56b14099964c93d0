"""Two encoders, one of images and one of captions, learn a common space as in CLIP."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
digits = load_digits()
images = torch.tensor(digits.data / 16.0, dtype=torch.float32)
target = torch.tensor(digits.target)
# a caption: one of three names of the digit among words that mean nothing
names = target * 3 + torch.randint(0, 3, target.shape)
captions = torch.cat([names[:, None], torch.randint(30, 60, (len(target), 4))], 1)
captions = torch.gather(captions, 1, torch.rand(captions.shape).argsort(1))
order = torch.randperm(len(target))
train, test = order[:1400], order[1400:]


class TwoTowers(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, width))
        self.words = nn.Embedding(60, 64)
        self.text = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, width))
        self.logit_scale = nn.Parameter(torch.tensor(2.3))

    def forward(self, image, caption):
        left = F.normalize(self.image(image), dim=-1)
        right = F.normalize(self.text(self.words(caption).mean(1)), dim=-1)
        return self.logit_scale.exp() * left @ right.T


model = TwoTowers()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
pairs = DataLoader(TensorDataset(images[train], captions[train]), batch_size=64, shuffle=True, drop_last=True)

for epoch in range(20):
    total = 0.0
    for image, caption in pairs:
        logits = model(image, caption)
        match = torch.arange(len(logits))
        loss = (F.cross_entropy(logits, match) + F.cross_entropy(logits.T, match)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1} loss {total / 21:.4f} scale {model.logit_scale.exp().item():.2f}")

with torch.no_grad():
    prompts = (torch.arange(10) * 3)[:, None]
    guess = model(images[test], prompts).argmax(1)
print(f"zero-shot accuracy {(guess == target[test]).float().mean().item():.4f}")
