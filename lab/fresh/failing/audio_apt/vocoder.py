"""Small vocoder: from band energies back to a wave."""

import argparse
import os

import torch
from torch import nn


class Vocoder(nn.Module):
    def __init__(self, bands=20, hop=64):
        super().__init__()
        self.hop = hop
        self.net = nn.Sequential(
            nn.Conv1d(bands, 128, 3, padding=1), nn.ELU(),
            nn.ConvTranspose1d(128, 64, 16, stride=8, padding=4), nn.ELU(),
            nn.ConvTranspose1d(64, 1, 16, stride=8, padding=4), nn.Tanh(),
        )

    def forward(self, bands):
        return self.net(bands).squeeze(1)


def batch(count, frames=32, bands=20, hop=64):
    energies = torch.rand(count, bands, frames)
    pitch = energies.mean((1, 2)).unsqueeze(1) * 0.2
    wave = torch.sin(pitch * torch.arange(frames * hop))
    return energies, wave


def spectral(a, b):
    window = torch.hann_window(256, device=a.device)
    of = lambda x: torch.stft(x, 256, 64, window=window, return_complex=True).abs()  # noqa: E731
    return (of(a) - of(b)).abs().mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Vocoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.8, 0.99))
    for step in range(args.steps):
        energies, wave = (t.to(device) for t in batch(8))
        loss = spectral(model(energies), wave)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(step, loss.item())
    torch.save(model.state_dict(), os.path.join(args.out, "vocoder.pt"))


if __name__ == "__main__":
    main()
