"""Three kinds of iris with a network of one hidden layer. Val accuracy reaches about 0.95."""

import numpy as np
import torch
from sklearn.datasets import load_iris
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
np.random.seed(0)

flowers = load_iris()
x = torch.tensor(flowers.data, dtype=torch.float32)
y = torch.tensor(flowers.target)
x = (x - x.mean(0)) / x.std(0)

index = np.random.permutation(len(x))
train, val = index[:110], index[110:]

hidden = nn.Linear(4, 16)
output = nn.Linear(16, 3)
model = nn.Sequential(hidden, nn.ReLU(), output, nn.LogSoftmax(dim=1))
loss_fn = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

epochs = 50
for epoch in range(1, epochs + 1):
    np.random.shuffle(train)
    losses = []
    for i in range(0, len(train), 10):
        rows = train[i : i + 10]
        loss = loss_fn(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        accuracy = (model(x[val]).argmax(1) == y[val]).float().mean()
    if epoch % 5 == 0 or epoch == epochs:
        print("epoch %d: loss %.3f, val accuracy %.3f" % (epoch, np.mean(losses), accuracy))
