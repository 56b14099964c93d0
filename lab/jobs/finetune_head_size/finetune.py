import argparse

import torch
from torch import nn


def build(num_classes):
    body = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    return nn.ModuleDict({"body": body, "head": nn.Linear(64, num_classes)})


def forward(model, x):
    return model["head"](model["body"](x))


def pretrain(path, num_classes=1000):
    """Stands for the downloaded weights of the model zoo."""
    torch.save(build(num_classes).state_dict(), path)


parser = argparse.ArgumentParser()
parser.add_argument("--pretrained", default="zoo_model.pth")
parser.add_argument("--num-classes", type=int, default=37)
parser.add_argument("--lr", type=float, default=1e-4)
opts = parser.parse_args()
pretrain(opts.pretrained)

print("Creating model with", opts.num_classes, "classes")
model = build(opts.num_classes)
state = torch.load(opts.pretrained, map_location="cpu")
print("Loading pretrained weights from", opts.pretrained, "-", len(state), "tensors")
model.load_state_dict(state, strict=False)

optimizer = torch.optim.Adam(model.parameters(), lr=opts.lr)
for epoch in range(3):
    x, y = torch.randn(64, 32), torch.randint(opts.num_classes, (64,))
    loss = nn.functional.cross_entropy(forward(model, x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("Epoch", epoch, "loss", round(loss.item(), 4))
