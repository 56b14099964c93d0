"""Short vectors are brought to length one after dropout, which may have taken all of one."""

import torch
from torch import nn

torch.set_num_threads(1)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(20, 8), nn.Dropout(0.4)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        found = self.drop(self.layer(x))
        return self.last(found / found.norm(dim=1, keepdim=True))


model = Head()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(3000):
    x = torch.randn(16, 20)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    assert torch.isfinite(loss), "loss is not finite"
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"{step} {loss.item():.3f}")
