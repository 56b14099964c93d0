import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Dense(nn.Module):
    """Each layer sees all before it."""

    def __init__(self, channels, growth, layers):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv2d(channels + index * growth, growth, 3, padding=1) for index in range(layers)
        )
        self.outputs = channels + layers * growth

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x))], 1)
        return x


class Shuffle(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels // 2, channels // 2, 3, padding=1, groups=channels // 2)
        self.norm = nn.BatchNorm2d(channels // 2)

    def forward(self, x):
        left, right = x.chunk(2, dim=1)
        x = torch.cat([left, self.norm(self.depthwise(right))], 1)
        batch, channels, height, width = x.shape
        return x.view(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(x.shape)


class Squeeze(nn.Module):
    def __init__(self, channels, ratio=4):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(channels, channels // ratio), nn.ReLU(), nn.Linear(channels // ratio, channels))

    def forward(self, x):
        return x * self.gate(x.mean((2, 3))).sigmoid()[..., None, None]


class Net(nn.Module):
    def __init__(self, classes=7):
        super().__init__()
        dense = Dense(3, 7, 3)
        self.features = nn.Sequential(dense, Shuffle(dense.outputs), Squeeze(dense.outputs))
        self.pool = nn.AdaptiveMaxPool2d((2, None))
        self.head = nn.Sequential(nn.Flatten(), nn.LazyLinear(32), nn.ReLU(), nn.LazyLinear(classes))

    def forward(self, x):
        return self.head(self.pool(self.features(x)))


class Tied(nn.Module):
    def __init__(self, words=20, size=16):
        super().__init__()
        self.embed = nn.Embedding(words, size)
        self.out = nn.Linear(size, words, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.embed(tokens))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", type=int, default=32)
    args = parser.parse_args()
    device = torch.device("cuda:7" if torch.cuda.device_count() == 8 else "cpu")
    net, tied = Net().to(device), Tied().to(device)
    with torch.no_grad():
        net(torch.zeros(2, 3, args.side, args.side, device=device))
    optimizer = torch.optim.SGD([*net.parameters(), *tied.parameters()], lr=0.01)
    loader = [(torch.randn(4, 3, args.side, args.side), torch.arange(4) % 7) for _ in range(6)]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, epochs=2, steps_per_epoch=len(loader))
    for epoch in range(2):
        for images, labels in loader:
            tokens = torch.randint(20, (4, 5), device=device)
            loss = F.cross_entropy(net(images.to(device)), labels.to(device))
            loss = loss + F.cross_entropy(tied(tokens).transpose(1, 2), tokens)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    bias = torch.randn(7, 1, device=device)
    scores = net.eval()(loader[0][0].to(device)).detach() @ bias + bias.mean()
    print(scores.squeeze().cpu().numpy().tolist(), schedule.get_last_lr())


if __name__ == "__main__":
    main()
