"""Networks of the ensemble; each member is a little wider than the one before."""
import torch
from torch import nn


def width_of(seed):
    return 32 + 8 * seed


class Member(nn.Module):
    def __init__(self, inputs, seed=0):
        super().__init__()
        width = width_of(seed)
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.mean, self.log_var = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.mean(h)[:, 0], self.log_var(h)[:, 0].clamp(-8, 8)


class Ensemble(nn.Module):
    def __init__(self, members):
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x):
        means, log_vars = zip(*(m(x) for m in self.members))
        mean = torch.stack(means).mean(0)
        variance = (torch.stack(log_vars).exp() + torch.stack(means).square()).mean(0) - mean.square()
        return mean, variance

    @classmethod
    def from_files(cls, paths, inputs):
        members = []
        for path in paths:
            member = Member(inputs)
            member.load_state_dict(torch.load(path))
            members.append(member)
        return cls(members).eval()
