"""A feed-forward layer divided over two ranks by hand: columns, then rows, whose partial outputs are added."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


class Enter(torch.autograd.Function):
    """All ranks receive the same input; the gradients of all of them are added."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class Leave(torch.autograd.Function):
    """The partial outputs of all ranks are added; the gradient is the same for all."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Parallel(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.columns = nn.Linear(width, hidden // world)
        self.rows = nn.Linear(hidden // world, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        partial = self.rows(torch.relu(self.columns(Enter.apply(x))))
        return x + Leave.apply(partial) + self.bias


torch.manual_seed(101)
labels = torch.randint(0, 5, (1500,))
inputs = 0.9 * torch.randn(5, 24)[labels] + torch.randn(1500, 24)
first, drop, norm, head = nn.Linear(24, 40), nn.Dropout(0.1), nn.LayerNorm(40), nn.Linear(40, 5)
torch.manual_seed(110 + rank)
middle = Parallel(40, 80)
model = nn.Sequential(first, drop, middle, norm, head)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
torch.manual_seed(120)
for epoch in range(5):
    model.train()
    for batch in torch.randperm(1200).split(30):
        loss = nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = (model(inputs[1200:]).argmax(1) == labels[1200:]).float().mean()
    if rank == 0:
        print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {correct.item():.3f}")
dist.destroy_process_group()
