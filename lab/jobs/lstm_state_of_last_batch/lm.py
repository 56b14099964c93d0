"""Word language model with a hidden state carried from batch to batch."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, BATCH, HIDDEN = 200, 32, 64


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 32)
        self.rnn = nn.LSTM(32, HIDDEN, batch_first=True)
        self.decoder = nn.Linear(HIDDEN, VOCAB)

    def init_hidden(self):
        return torch.zeros(1, BATCH, HIDDEN), torch.zeros(1, BATCH, HIDDEN)

    def forward(self, tokens, state):
        out, state = self.rnn(self.embed(tokens), state)
        return self.decoder(out), state


def run_epoch(model, loader, optimizer=None):
    state, total = model.init_hidden(), 0.0
    for (tokens,) in loader:
        logits, state = model(tokens[:, :-1], state)
        state = tuple(s.detach() for s in state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        if optimizer:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total / len(loader)


torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randint(VOCAB, (320, 21))), batch_size=BATCH)
valid = DataLoader(TensorDataset(torch.randint(VOCAB, (77, 21))), batch_size=BATCH)
model = LanguageModel()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for epoch in range(1, 4):
    train_loss = run_epoch(model, train, optimizer)
    print(f"| epoch {epoch:2d} | train ppl {math.exp(train_loss):8.2f} |", flush=True)
    with torch.no_grad():
        valid_loss = run_epoch(model, valid)
    print(f"| epoch {epoch:2d} | valid ppl {math.exp(valid_loss):8.2f} |", flush=True)
