"""Classifies clips by their energy spectrum."""

import argparse
import subprocess
from pathlib import Path

import numpy as np
import torch
from torch import nn

RATE = 16000


def to_samples(clip, workdir):
    raw = workdir / (clip.stem + ".raw")
    arguments = ["-i", str(clip), "-f", "s16le", "-ac", "1", "-ar", str(RATE), str(raw)]
    subprocess.run(["ffmpeg", "-y", "-loglevel", "error", *arguments], check=True)
    return np.fromfile(raw, dtype=np.int16).astype(np.float32) / 32768


def spectrum(samples, bins=64):
    power = np.abs(np.fft.rfft(samples, n=RATE)) ** 2
    parts = np.array_split(np.log1p(power), bins)
    return np.array([part.mean() for part in parts], dtype=np.float32)


def load(folder, workdir):
    features, labels = [], []
    for line in (folder / "list.txt").read_text().splitlines():
        name, label = line.split()
        features.append(spectrum(to_samples(folder / name, workdir)))
        labels.append(int(label))
    return torch.from_numpy(np.stack(features)), torch.tensor(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", type=Path, default=Path("clips"))
    parser.add_argument("--workdir", type=Path, default=Path("work"))
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    args.workdir.mkdir(parents=True, exist_ok=True)
    features, labels = load(args.clips, args.workdir)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(args.steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features), labels)
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
