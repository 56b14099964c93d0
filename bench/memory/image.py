"""Trains ResNet-50 on images, or runs inference, by a loop written by hand."""

import argparse

import torch
from torch import nn
from warm import warm_up


class Bottleneck(nn.Module):
    """Three convolutions and what goes around them (He et al., 2016, figure 5)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        blocks, channels = [], 64
        for width, number, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for block in range(number):
                blocks.append(Bottleneck(channels, width, 1 if block else stride))
                channels = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.blocks(x)), 1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
    parser.add_argument("--single", action="store_true", help="the optimizer's loop form")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--warm", action="store_true", help="after what `warm.py` describes")
    options = parser.parse_args()
    if options.warm:
        warm_up()

    model = ResNet50().cuda().train()
    images = torch.randn(options.batch, 3, options.size, options.size, device="cuda")
    if options.channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    run = torch.compile(model) if options.compile else model
    labels = torch.randint(0, 1000, (options.batch,), device="cuda")
    foreach = False if options.single else None
    if options.optimizer == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=foreach)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=foreach)

    def infer() -> None:
        with (
            torch.no_grad(),
            torch.autocast("cuda", dtype=torch.bfloat16, enabled=options.autocast),
        ):
            run(images)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=options.autocast):
            loss = nn.functional.cross_entropy(run(images), labels)
        loss.backward()
        optimizer.step()

    if options.inference:
        model.eval()
    for _ in range(options.steps):
        infer() if options.inference else step()


if __name__ == "__main__":
    main()
