"""Pretrains an encoder on many classes, saves it, and fits a new head on 32 examples of new classes; the encoder stays frozen."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(17)
DIM, LATENT, OLD, NEW = 80, 6, 40, 4
mixer = nn.Sequential(nn.Linear(LATENT, 40), nn.Tanh(), nn.Linear(40, DIM)).requires_grad_(False)
for p in mixer.parameters():
    p.mul_(3)


def examples(centers, per_class):
    y = torch.arange(len(centers)).repeat_interleave(per_class)
    z = centers[y] + 0.25 * torch.randn(len(y), LATENT)
    return mixer(z) + 0.9 * torch.randn(len(y), DIM), y


class Encoder(nn.Module):
    def __init__(self, width=64, out=16):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(DIM, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, out)
        )

    def forward(self, x):
        return self.layers(x)


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.encoder = Encoder()
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.norm(self.encoder(x)))


def pretrain(path):
    centers = torch.randn(OLD, LATENT)
    x, y = examples(centers, 60)
    model = Classifier(OLD)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        for idx in torch.randperm(len(y)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"pretrained: loss {loss.item():.4f}")
    torch.save({"state_dict": model.state_dict(), "epoch": epoch}, path)


def finetune(path):
    model = Classifier(NEW)
    checkpoint = torch.load(path, weights_only=True)
    weights = {k.removeprefix("encoder."): v for k, v in checkpoint["state_dict"].items() if k.startswith("encoder.")}
    model.encoder.load_state_dict(weights, strict=False)
    for p in model.encoder.parameters():
        p.requires_grad = False
    centers = torch.randn(NEW, LATENT) * 0.6
    x, y = examples(centers, 8)
    x_test, y_test = examples(centers, 300)
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(1, 601):
        model.train()
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                acc = (model(x_test).argmax(1) == y_test).float().mean().item()
            print(f"finetune step {step} loss {loss.item():.4f} test_acc {acc:.4f}")


pretrain("encoder.pt")
finetune("encoder.pt")
