"""A recurrent language model over padded sentences of a small grammar; padding is left out of the loss."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(5)
torch.manual_seed(5)
PAD, BOS, EOS = 0, 1, 2
nouns, verbs, adverbs = range(3, 9), range(9, 14), range(14, 18)


def sentence():
    words = [BOS]
    for _ in range(random.randint(1, 5)):
        words += [random.choice(nouns), random.choice(verbs)]
        if words[-1] % 2:
            words.append(random.choice(adverbs))
    return torch.tensor([*words, EOS])


def collate(batch):
    ids = pad_sequence(batch, batch_first=True, padding_value=PAD)
    return ids[:, :-1], ids[:, 1:]


class Grammar(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(18, 24, padding_idx=PAD)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.out = nn.Linear(48, 18)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.out(hidden)


sentences = [sentence() for _ in range(900)]
loader = DataLoader(sentences[:800], batch_size=20, shuffle=True, collate_fn=collate)
held = DataLoader(sentences[800:], batch_size=50, collate_fn=collate)
model = Grammar()
loss_function = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    for ids, targets in loader:
        optimizer.zero_grad()
        logits = model(ids)
        loss = loss_function(logits.transpose(1, 2), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [loss_function(model(i).transpose(1, 2), t).item() for i, t in held]
    print(f"epoch {epoch} train {loss.item():.3f} val_loss {sum(losses) / len(losses):.3f}")
