"""A character model with a GRU, on a nursery rhyme."""
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(3)

RHYME = """
this is the farmer sowing his corn, that kept the cock that crowed in the morn,
that waked the priest all shaven and shorn, that married the man all tattered and torn,
that kissed the maiden all forlorn, that milked the cow with the crumpled horn,
that tossed the dog, that worried the cat, that killed the rat, that ate the malt,
that lay in the house that jack built.
"""
text = RHYME * 12
letters = sorted(set(text))
index = {letter: i for i, letter in enumerate(letters)}
data = torch.tensor([index[letter] for letter in text])
LENGTH, BATCH = 40, 16


class CharModel(nn.Module):
    def __init__(self, letters, width=64):
        super().__init__()
        self.embed = nn.Embedding(letters, 24)
        self.gru = nn.GRU(24, width, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, x):
        states, _ = self.gru(self.embed(x))
        return self.out(states)


def batches():
    starts = torch.randperm(len(data) - LENGTH - 1)[:480]
    for chunk in starts.split(BATCH):
        x = torch.stack([data[s : s + LENGTH] for s in chunk])
        y = torch.stack([data[s + 1 : s + LENGTH + 1] for s in chunk])
        yield x, y


model = CharModel(len(letters))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.999)
for epoch in range(1, 17):
    total, count = 0.0, 0
    for x, y in batches():
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        count += 1
    print(f"epoch {epoch}: loss {total / count:.4f}")
