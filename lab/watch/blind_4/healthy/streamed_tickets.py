"""Support tickets are read from one file per queue as a stream, mixed by a buffer, and seen once."""

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

random.seed(103)
torch.manual_seed(103)
QUEUES, WORDS, LENGTH = 6, 200, 12


def ticket(queue):
    topical = [queue * 12 + random.randrange(12) for _ in range(3)]
    return torch.tensor(topical + [random.randrange(WORDS) for _ in range(LENGTH - 3)]), queue


class Stream(IterableDataset):
    def __init__(self, per_queue, buffer):
        self.per_queue, self.buffer = per_queue, buffer

    def records(self):
        for queue in range(QUEUES):
            for _ in range(self.per_queue):
                yield ticket(queue)

    def __iter__(self):
        held = []
        for record in self.records():
            held.append(record)
            if len(held) >= self.buffer:
                yield held.pop(random.randrange(len(held)))
        random.shuffle(held)
        yield from held


class Bag(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, width)
        self.out = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, QUEUES))

    def forward(self, words):
        return self.out(self.words(words))


model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
stream = DataLoader(Stream(per_queue=800, buffer=4000), batch_size=16)
for step, (words, queue) in enumerate(stream, start=1):
    loss = F.cross_entropy(model(words), queue)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}")

model.eval()
tests = [ticket(k % QUEUES) for k in range(900)]
with torch.no_grad():
    guess = model(torch.stack([words for words, _ in tests])).argmax(1)
print(f"accuracy {(guess == torch.tensor([queue for _, queue in tests])).float().mean().item():.4f}")
