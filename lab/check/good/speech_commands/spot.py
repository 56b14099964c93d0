import argparse
import math

import torch
from torch import nn

try:
    import torchaudio

    HAS_TORCHAUDIO = True
except ImportError:
    HAS_TORCHAUDIO = False

RATE = 8000
FEATURES = {}


def feature(name):
    def register(function):
        FEATURES[name] = function
        return function

    return register


@feature("mel")
def mel(waves):
    if HAS_TORCHAUDIO:
        transform = torchaudio.transforms.MelSpectrogram(sample_rate=RATE, n_mels=40)
        return transform(waves).clamp(min=1e-6).log()
    return spectrogram(waves)[:, :40]


@feature("spectrogram")
def spectrogram(waves):
    window = torch.hann_window(256)
    return torch.stft(waves, 256, window=window, return_complex=True).abs().clamp(min=1e-6).log()


def tones(count):
    labels = torch.randint(0, 4, (count,))
    time = torch.arange(RATE) / RATE
    waves = torch.sin(2 * math.pi * (200 + 150 * labels[:, None]) * time)
    return waves + 0.2 * torch.randn_like(waves), labels


class Spotter(nn.Module):
    def __init__(self, bins, classes=4):
        super().__init__()
        self.rnn = nn.GRU(bins, 64, batch_first=True, bidirectional=True)
        self.out = nn.Linear(128, classes)

    def forward(self, features):
        hidden, _ = self.rnn(features.transpose(1, 2))
        return self.out(hidden.mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", choices=list(FEATURES), default="mel")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    extract = FEATURES[args.features]
    waves, labels = tones(256)
    features = extract(waves)
    model = Spotter(features.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for part in torch.randperm(len(labels)).split(32):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features[part]), labels[part])
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
