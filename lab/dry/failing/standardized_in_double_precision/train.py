"""A policy that copies recorded steering."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random = np.random.default_rng(7)


class Recording(Dataset):
    def __init__(self, steps):
        self.state = random.normal(size=(steps, 12)).astype("float32")
        self.action = np.tanh(self.state[:, :2]).astype("float32")
        self.mean = np.zeros(12)
        self.deviation = np.ones(12)

    def standardize(self):
        self.mean = self.state.mean(axis=0, dtype="float64")
        self.deviation = self.state.std(axis=0, dtype="float64") + 1e-6

    def __len__(self):
        return len(self.state)

    def __getitem__(self, index):
        state = (self.state[index] - self.mean) / self.deviation
        return torch.as_tensor(state), torch.as_tensor(self.action[index])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 64)
        self.second = nn.Linear(64, 2)

    def forward(self, state):
        hidden = torch.relu(self.first(state))
        return torch.tanh(self.second(hidden))


recording = Recording(2000)
recording.standardize()
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters())
for epoch in range(10):
    for state, action in DataLoader(recording, batch_size=100, shuffle=True):
        loss = nn.functional.smooth_l1_loss(policy(state), action)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.5f}")
