"""Extracts patch features once, so that later runs train on them."""

import argparse
import os

import numpy as np
import torch
from torch import nn

IMAGES = 120_000
PATCHES = 256
WIDTH = 2048


class PatchEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Conv2d(3, width, kernel_size=16, stride=16)
        self.norm = nn.LayerNorm(width)

    def forward(self, images):
        patches = self.project(images).flatten(2).transpose(1, 2)
        return self.norm(patches)


def open_cache(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return np.memmap(path, dtype=np.float16, mode="w+", shape=(IMAGES, PATCHES, WIDTH))


def batches(size):
    for start in range(0, IMAGES, size):
        count = min(size, IMAGES - start)
        yield start, torch.rand(count, 3, 256, 256)


@torch.inference_mode()
def extract(encoder, cache, size, device):
    for start, images in batches(size):
        features = encoder(images.to(device)).half().cpu().numpy()
        cache[start : start + len(features)] = features
        if start % 4096 == 0:
            print(f"{start}/{IMAGES}", flush=True)
    cache.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", required=True)
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()
    device = torch.device("cuda")
    encoder = PatchEncoder(WIDTH).to(device).eval()
    extract(encoder, open_cache(args.cache), args.batch_size, device)


if __name__ == "__main__":
    main()
