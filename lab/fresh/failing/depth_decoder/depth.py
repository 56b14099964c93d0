"""Depth from one picture, with an encoder, a decoder and skips."""

import argparse

import torch
import torch.nn as nn
import yaml

from blocks import ConvBlock, UpBlock


class DepthNet(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.stem = ConvBlock(3, encoder[0])
        self.down = nn.ModuleList(
            ConvBlock(a, b, stride=2) for a, b in zip(encoder[:-1], encoder[1:])
        )
        skips = encoder[-2::-1]
        inputs = [encoder[-1], *decoder[:-1]]
        self.up = nn.ModuleList(UpBlock(i, s, o) for i, s, o in zip(inputs, skips, decoder))
        self.head = nn.Conv2d(decoder[-1], 1, 1)

    def forward(self, x):
        features = [self.stem(x)]
        for layer in self.down:
            features.append(layer(features[-1]))
        x = features.pop()
        for layer in self.up:
            x = layer(x, features.pop())
        return self.head(x).exp()


def scenes(count, side, device):
    picture = torch.rand(count, 3, side, side, device=device)
    return picture, 1 + picture.mean(1, keepdim=True)


def scale_invariant(prediction, truth):
    difference = prediction.log() - truth.log()
    return difference.square().mean() - 0.5 * difference.mean().square()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--batch", type=int, default=4)
    args = parser.parse_args()
    with open(args.config) as handle:
        config = yaml.safe_load(handle)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = DepthNet(config["encoder"], config["decoder"]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for step in range(config["steps"]):
        pictures, depth = scenes(args.batch, config["side"], device)
        loss = scale_invariant(model(pictures), depth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())
    torch.save(model.state_dict(), "depth.pt")


if __name__ == "__main__":
    main()
