"""Predicts missing friendships in a graph of communities."""

import torch
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)
PEOPLE, GROUPS = 240, 6
group = torch.arange(PEOPLE) % GROUPS
chance = torch.where(group[:, None] == group[None], 0.25, 0.01)
drawn = torch.triu(torch.rand(PEOPLE, PEOPLE) < chance, 1).nonzero()
drawn = drawn[torch.randperm(len(drawn))]
cut = int(0.85 * len(drawn))
known, hidden = drawn[:cut], drawn[cut:]
adjacency = torch.eye(PEOPLE)
adjacency[known[:, 0], known[:, 1]] = adjacency[known[:, 1], known[:, 0]] = 1
degree = adjacency.sum(1).rsqrt()
spread = degree[:, None] * adjacency * degree[None]
friends = torch.zeros(PEOPLE, PEOPLE, dtype=torch.bool)
friends[drawn[:, 0], drawn[:, 1]] = friends[drawn[:, 1], drawn[:, 0]] = True
features = torch.eye(PEOPLE)


def strangers(count: int) -> torch.Tensor:
    pairs = torch.randint(PEOPLE, (3 * count, 2))
    apart = ~friends[pairs[:, 0], pairs[:, 1]] & (pairs[:, 0] != pairs[:, 1])
    return pairs[apart][:count]


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(PEOPLE, 48)
        self.second = nn.Linear(48, 24)
        self.match = nn.Bilinear(24, 24, 1)

    def encode(self) -> torch.Tensor:
        return spread @ self.second(torch.relu(spread @ self.first(features)))

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        places = self.encode()
        left, right = places[pairs[:, 0]], places[pairs[:, 1]]
        return (self.match(left, right) + self.match(right, left)).squeeze(1)


def auc(model: Graph, negative: torch.Tensor) -> float:
    with torch.no_grad():
        model.eval()
        up, down = model(hidden), model(negative)
    return (up[:, None] > down[None]).float().mean().item()


model = Graph()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
criterion = nn.BCEWithLogitsLoss()
test_negative = strangers(len(hidden))
for step in range(120):
    model.train()
    negative = strangers(len(known))
    pairs = torch.cat([known, negative])
    labels = torch.cat([torch.ones(len(known)), torch.zeros(len(negative))])
    loss = criterion(model(pairs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1} loss {loss.item():.4f} auc {auc(model, test_negative):.4f}")
