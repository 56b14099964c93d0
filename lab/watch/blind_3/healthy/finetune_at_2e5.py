"""A network with BatchNorm, pre-trained on upright digits, fine-tuned to slanted ones: frozen stem in eval mode, two small rates."""

import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(13)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(labels))
images, labels = images[order], labels[order]


def slanted(x):
    theta = torch.tensor([[1.0, 0.55, 0.0], [-0.25, 1.0, 0.0]]).expand(len(x), 2, 3)
    return F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(48 * 16, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.head(self.body(self.stem(x)))


def freeze_stem(net):
    for p in net.stem.parameters():
        p.requires_grad = False
    net.stem.eval()


def evaluate(net, x, y):
    was = {m: m.training for m in net.modules()}
    net.eval()
    with torch.no_grad():
        acc = (net(x).argmax(1) == y).float().mean().item()
    for m, mode in was.items():
        m.training = mode
    return acc


source, target, test = slice(0, 900), slice(900, 1400), slice(1400, None)
pretrained = Net()
opt = torch.optim.Adam(pretrained.parameters(), lr=1e-3)
for epoch in range(5):
    for idx in torch.randperm(900).split(45):
        opt.zero_grad()
        F.cross_entropy(pretrained(images[source][idx]), labels[source][idx]).backward()
        opt.step()
x_new, x_test = slanted(images[target]), slanted(images[test])
print(f"before fine-tuning: {evaluate(pretrained, x_test, labels[test]):.4f}")

net = copy.deepcopy(pretrained)
freeze_stem(net)
groups = [{"params": net.body.parameters(), "lr": 2e-5}, {"params": net.head.parameters(), "lr": 5e-5}]
opt = torch.optim.AdamW(groups, weight_decay=0.01)
for epoch in range(12):
    for idx in torch.randperm(500).split(10):
        loss = F.cross_entropy(net(x_new[idx]), labels[target][idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 3 == 2:
        print(f"tune epoch {epoch + 1} loss {loss.item():.4f} accuracy {evaluate(net, x_test, labels[test]):.4f}")
