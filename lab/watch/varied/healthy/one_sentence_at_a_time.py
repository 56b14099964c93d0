"""Tagging with an LSTM, one sentence of any length a step, plain SGD at 0.1."""

import torch
from torch import nn

torch.manual_seed(25)
torch.set_num_threads(1)


def sentence():
    words = torch.randint(0, 40, (int(torch.randint(4, 12, (1,))),))
    tags = (words % 3).clone()
    tags[1:] = torch.where(words[:-1] < 10, torch.tensor(2), tags[1:])
    return words, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(40, 16), nn.LSTM(16, 24), nn.Linear(24, 3)

    def forward(self, words):
        hidden, _ = self.lstm(self.words(words).unsqueeze(1))
        return self.out(torch.relu(hidden.squeeze(1)))


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
test = [sentence() for _ in range(100)]
for epoch in range(3):
    for _ in range(400):
        words, tags = sentence()
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(words), tags)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = sum((model(words).argmax(1) == tags).sum().item() for words, tags in test)
    print(f"epoch {epoch} val accuracy {right / sum(len(tags) for _, tags in test):.4f}")
