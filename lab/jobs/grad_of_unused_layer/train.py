import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(16, 32)
        self.class_head = nn.Linear(32, 3)
        self.box_head = nn.Linear(32, 4)

    def forward(self, x, boxes=False):
        h = torch.relu(self.trunk(x))
        return (self.class_head(h), self.box_head(h)) if boxes else self.class_head(h)


def grad_norm(model):
    total = 0.0
    for name, p in model.named_parameters():
        total += p.grad.data.norm(2).item() ** 2
    return total**0.5


model = TwoHeads()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loss_fn = nn.CrossEntropyLoss()
for it in range(100):
    inputs, targets = torch.randn(20, 16), torch.randint(3, (20,))
    loss = loss_fn(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 10 == 0:
        print("iter %d: loss %.4f, grad norm %.4f" % (it, loss.item(), grad_norm(model)))
