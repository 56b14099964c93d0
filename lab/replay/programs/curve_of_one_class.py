"""The area under the curve of a validation set in which nobody is ill."""

import torch
from torch import nn

torch.set_num_threads(1)

x = torch.randn(2000, 12)
y = (x[:, 0] > 2.5).float()
order = y.argsort(descending=True)
train, held = order[:1600], order[1600:]
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters())


def area(scores, labels):
    ill, well = scores[labels == 1].tolist(), scores[labels == 0].tolist()
    higher = sum(a > b for a in ill for b in well)
    return higher / (len(ill) * len(well))


for epoch in range(5):
    for rows in train[torch.randperm(len(train))].split(50):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows])[:, 0], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"epoch {epoch}: area {area(model(x[held])[:, 0], y[held]):.3f}")
