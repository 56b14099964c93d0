"""Learns to turn sequences around; decoded with a beam after each epoch."""
import json
from types import SimpleNamespace

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, source, target):
        _, state = self.encoder(self.words(source))
        hidden, _ = self.decoder(self.words(target), state)
        return self.out(hidden)

    @torch.no_grad()
    def decode(self, source, beams, longest):
        _, state = self.encoder(self.words(source))
        state = state.repeat_interleave(beams, dim=1)
        token = torch.zeros(len(source) * beams, 1, dtype=torch.long)
        answer = []
        for _ in range(longest):
            hidden, state = self.decoder(self.words(token), state)
            token = self.out(hidden).argmax(-1)
            answer.append(token)
        return torch.cat(answer, 1)[::beams]


with open("settings.json") as file:
    settings = json.load(file, object_hook=lambda table: SimpleNamespace(**table))
model = Model(settings.model.words, settings.model.width)
optimizer = torch.optim.Adam(model.parameters(), lr=settings.training.lr)
for epoch in range(settings.training.epochs):
    for _ in range(40):
        source = torch.randint(1, settings.model.words, (settings.training.batch, 10))
        target = source.flip(1)
        given = torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], dim=1)
        loss = nn.functional.cross_entropy(model(source, given).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % settings.evaluation.every == 0:
        options = settings.evaluation
        answer = model.decode(source, options.beams, options.longest)
        print(f"epoch {epoch} right {(answer == target).float().mean().item():.3f}")
