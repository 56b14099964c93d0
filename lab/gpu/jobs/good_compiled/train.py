import logging

import torch
from torch import nn

torch._logging.set_logs(graph_breaks=True, recompiles=True)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        if x.sum() > 0:
            return self.first(x)
        return self.second(x)


model = Model().cuda()
step = torch.compile(model)
for number, size in enumerate((8, 8, 9, 10, 11)):
    loss = step(torch.randn(size, 32, device="cuda")).pow(2).mean()
    loss.backward()
    logging.getLogger("train").warning("step %d loss %.4f", number, loss.item())
print("done")
