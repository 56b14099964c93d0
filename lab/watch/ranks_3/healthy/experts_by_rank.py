"""A mixture of experts: each of three ranks holds two experts of its own, tokens travel to the experts that the gate chooses."""

import torch
import torch.distributed as dist
from torch import nn

SEED = 410
PER_RANK, WIDTH, CLASSES = 2, 24, 6


class Exchange(torch.autograd.Function):
    """Sends a block of rows to each rank and receives one from each; gradients go the other way."""

    @staticmethod
    def forward(ctx, blocks):
        received = torch.empty_like(blocks)
        dist.all_to_all_single(received, blocks.contiguous())
        return received

    @staticmethod
    def backward(ctx, gradient):
        back = torch.empty_like(gradient)
        dist.all_to_all_single(back, gradient.contiguous())
        return back


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 48), nn.ReLU(), nn.Linear(48, WIDTH))
            for _ in range(PER_RANK)
        )

    def forward(self, tokens):
        """`tokens` are those of all ranks: (ranks, experts of this rank, rows, width)."""
        return torch.stack([layer(tokens[:, i]) for i, layer in enumerate(self.layers)], 1)


class Mixture(nn.Module):
    def __init__(self, world, capacity):
        super().__init__()
        self.enter, self.leave = nn.Linear(8, WIDTH), nn.Linear(WIDTH, CLASSES)
        self.gate = nn.Linear(WIDTH, world * PER_RANK)
        self.world, self.capacity = world, capacity

    def shared(self):
        return list(self.parameters())

    def forward(self, x, experts):
        tokens = torch.relu(self.enter(x))
        weights = self.gate(tokens).softmax(1)
        share, chosen = weights.max(1)
        queue = torch.zeros(self.world * PER_RANK, self.capacity, WIDTH)
        place = (
            torch.nn.functional.one_hot(chosen, self.world * PER_RANK)
            .cumsum(0)
            .gather(1, chosen[:, None])[:, 0]
            - 1
        )
        fits = place < self.capacity
        queue = queue.index_put((chosen[fits], place[fits]), tokens[fits])
        arrived = Exchange.apply(queue.view(self.world, PER_RANK, self.capacity, WIDTH))
        answered = Exchange.apply(experts(arrived)).view_as(queue)
        mixed = torch.zeros_like(tokens).index_put(
            (fits.nonzero()[:, 0],), answered[chosen[fits], place[fits]]
        )
        load = (
            torch.nn.functional.one_hot(chosen, self.world * PER_RANK).float().mean(0)
            * weights.mean(0)
        ).sum()
        return self.leave(tokens + share[:, None] * mixed), self.world * PER_RANK * load


def points(count, generator):
    """Six domains, each with a rule of its own."""
    rules = torch.randn(6, 6, CLASSES, generator=torch.Generator().manual_seed(SEED))
    domain = torch.randint(6, (count,), generator=generator)
    x = torch.randn(count, 6, generator=generator)
    label = torch.einsum("ni,nic->nc", x, rules[domain]).argmax(1)
    place = torch.stack([(domain * 1.05).cos(), (domain * 1.05).sin()], 1)
    return torch.cat([x, 2 * place], 1), label


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
generator = torch.Generator().manual_seed(SEED + 1)
x, y = points(4800, generator)
test_x, test_y = points(960, generator)
torch.manual_seed(SEED)
model = Mixture(world, capacity=24)
torch.manual_seed(SEED + 10 + rank)
experts = Experts()
optimizer = torch.optim.Adam([*model.parameters(), *experts.parameters()], lr=5e-3)

for epoch in range(5):
    for batch in torch.randperm(len(x), generator=generator)[:4608].split(48 * world):
        own = batch[rank::world]
        scores, load = model(x[own], experts)
        loss = nn.functional.cross_entropy(scores, y[own]) + 0.01 * load
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.shared():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        for parameter in experts.parameters():
            if parameter.grad is not None:
                parameter.grad /= world
        optimizer.step()
    with torch.no_grad():
        right = (model(test_x[rank::world], experts)[0].argmax(1) == test_y[rank::world]).sum()
    dist.all_reduce(right)
    if rank == 0:
        print(f"epoch {epoch}  loss {loss.item():.3f}  accuracy {right.item() / len(test_x):.3f}")
dist.destroy_process_group()
