"""Short reviews in a convolutional text classifier with strong dropout; predictions are made one by one at the end."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(107)
WORDS, LENGTH = 120, 16
mood = torch.zeros(WORDS)
mood[10:30], mood[30:50] = 1.0, -1.0


def reviews(count):
    words = torch.randint(3, WORDS, (count, LENGTH))
    negated = torch.rand(count, LENGTH) < 0.1
    words[negated] = 2
    sign = torch.ones(count, LENGTH)
    sign[:, 1:][words[:, :-1] == 2] = -1
    total = (mood[words] * sign).sum(1)
    keep = total != 0
    return words[keep], (total[keep] > 0).long()


class TextNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.drop_words = nn.Dropout(0.4)
        self.conv = nn.Conv1d(width, 64, 2)
        self.drop = nn.Dropout(0.6)
        self.out = nn.Linear(64, 2)

    def forward(self, words):
        h = self.drop_words(self.words(words)).transpose(1, 2)
        return self.out(self.drop(F.relu(self.conv(h)).mean(2)))


train_x, train_y = reviews(5000)
test_x, test_y = reviews(1000)
model = TextNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(train_x)).split(64):
        loss = F.cross_entropy(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    print(f"epoch {epoch + 1} loss {total / len(train_x):.4f}")

model.eval()
with torch.no_grad():
    hits = sum((model(a).argmax(1) == b).sum().item() for a, b in zip(test_x.split(100), test_y.split(100)))
print(f"test accuracy {hits / len(test_x):.4f}")
