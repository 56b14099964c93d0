"""A deep multilayer perceptron with batch norm learns a checkerboard. Test accuracy reaches about 0.94."""

import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(5)

DEPTH = 14
WIDTH = 32


def checkerboard(n):
    points = torch.rand(n, 2) * 4 - 2
    colors = (points.floor().sum(dim=1) % 2).long()
    return points, colors


def block(width):
    return nn.Sequential(
        nn.Linear(width, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
    )


class DeepNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(2, WIDTH)
        self.blocks = nn.ModuleList([block(WIDTH) for _ in range(DEPTH)])
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.blocks:
            x = layer(x)
        return self.head(x)


X, y = checkerboard(4000)
X_test, y_test = checkerboard(1000)

net = DeepNet()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
EPOCHS = 14
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    net.train()
    running = 0.0
    for idx in torch.randperm(len(X)).split(100):
        opt.zero_grad()
        loss = loss_fn(net(X[idx]), y[idx])
        loss.backward()
        opt.step()
        running += loss.item() * len(idx)
    sched.step()
    net.eval()
    with torch.no_grad():
        hits = (net(X_test).argmax(1) == y_test).float().mean()
    print("epoch", epoch, "loss", round(running / len(X), 4), "test accuracy", round(hits.item(), 4))
