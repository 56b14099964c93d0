"""Sentences of different lengths without padding, as nested tensors."""
import torch
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self, dim=16, classes=2):
        super().__init__()
        self.project = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, batch):
        hidden = torch.relu(self.project(batch))
        print("hidden states of the batch:", hidden.shape)
        pooled = torch.stack([sentence.mean(0) for sentence in hidden.unbind()])
        return self.head(pooled)


def make_batch(n):
    return torch.nested.nested_tensor([torch.randn(int(k), 16) for k in torch.randint(3, 12, (n,))])


model = Encoder()
optimizer = torch.optim.Adam(model.parameters())
for step in range(5):
    labels = torch.randint(2, (8,))
    loss = nn.functional.cross_entropy(model(make_batch(8)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
