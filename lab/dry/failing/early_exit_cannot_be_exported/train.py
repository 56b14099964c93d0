"""A network that answers early when it is sure; exported at the end."""
import torch
import torch.nn.functional as F
from torch import nn


class EarlyExit(nn.Module):
    def __init__(self, threshold=0.9):
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.early = nn.Linear(64, 10)
        self.second = nn.Linear(64, 64)
        self.late = nn.Linear(64, 10)
        self.threshold = threshold

    def forward(self, x):
        hidden = F.relu(self.first(x))
        early = self.early(hidden)
        if self.training:
            return early, self.late(F.relu(self.second(hidden)))
        if early.softmax(dim=1).amax() > self.threshold:
            return early
        return self.late(F.relu(self.second(hidden)))


def main():
    torch.manual_seed(0)
    model = EarlyExit()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(300):
        x, y = torch.randn(64, 32), torch.randint(0, 10, (64,))
        early, late = model(x)
        loss = 0.3 * F.cross_entropy(early, y) + F.cross_entropy(late, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    program = torch.export.export(model, (torch.randn(1, 32),))
    torch.export.save(program, "early.pt2")


main()
