"""Which cultivar is a wine from? Chemical analyses, a small network."""
import torch
from sklearn.datasets import load_wine
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)

wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
y = torch.tensor(wine.target)
split = 120
x_train, y_train = x[:split], y[:split]
x_val, y_val = x[split:], y[split:]

mean, std = x_train.mean(0), x_train.std(0)
x_train, x_val = (x_train - mean) / std, (x_val - mean) / std

net = nn.Sequential(nn.Linear(13, 48), nn.ReLU(), nn.Linear(48, 3))
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-3)


def accuracy(x, y):
    return (net(x).argmax(1) == y).float().mean().item()


for epoch in range(30):
    net.train()
    for batch in torch.randperm(split).split(20):
        opt.zero_grad()
        loss = loss_fn(net(x_train[batch]), y_train[batch])
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        if epoch % 2 == 1:
            print(
                f"epoch {epoch + 1} loss {loss_fn(net(x_train), y_train).item():.4f} "
                f"accuracy {accuracy(x_train, y_train):.3f} "
                f"val loss {loss_fn(net(x_val), y_val).item():.4f} "
                f"val accuracy {accuracy(x_val, y_val):.3f}"
            )
