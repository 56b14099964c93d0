"""Bags of words with a linear model and plain SGD at a rate of 2: right for inputs that are averages of sparse counts."""

import torch
from torch import nn

torch.manual_seed(6)
torch.set_num_threads(1)
TOPICS = torch.distributions.Dirichlet(torch.full((300,), 0.05)).sample((5,))


def documents(count):
    labels = torch.randint(5, (count,))
    words = torch.multinomial(TOPICS[labels], 20, replacement=True)
    return words, labels


model = nn.Sequential(nn.EmbeddingBag(300, 24, mode="mean"), nn.Linear(24, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
x, y = documents(2000)
xv, yv = documents(400)
for epoch in range(5):
    for rows in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(xv).argmax(1) == yv).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {accuracy:.4f}")
