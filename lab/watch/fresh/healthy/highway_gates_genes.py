"""Does a stretch of letters hold one of two motifs? A highway network: sigmoid gates that begin nearly closed, twelve layers deep.

Should reach: val accuracy of at least 0.9; guessing gives 0.5.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(61)
MOTIFS = torch.tensor([[0, 1, 2, 3, 0, 1], [3, 3, 0, 2, 1, 1]])


def stretches(count):
    letters = torch.randint(4, (count, 40))
    bound = torch.rand(count) < 0.5
    for i in bound.nonzero().squeeze(1).tolist():
        place = int(torch.randint(34, ()))
        letters[i, place : place + 6] = MOTIFS[torch.randint(2, ())]
    return F.one_hot(letters, 4).float().transpose(1, 2), bound.float()


class Highway(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.change = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x):
        share = torch.sigmoid(self.gate(x))
        return share * torch.relu(self.change(x)) + (1 - share) * x


class Binding(nn.Module):
    def __init__(self, width=32, depth=12):
        super().__init__()
        self.scan = nn.Conv1d(4, width, 8, padding=4)
        self.layers = nn.Sequential(*[Highway(width) for _ in range(depth)])
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.layers(torch.relu(self.scan(x)).amax(2))).squeeze(1)


train, val = stretches(5000), stretches(1000)
model = Binding()
optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(12):
    model.train()
    losses = []
    for rows in torch.randperm(5000).split(64):
        loss = F.binary_cross_entropy_with_logits(model(train[0][rows]), train[1][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    with torch.no_grad():
        logits = model(val[0])
    val_loss = F.binary_cross_entropy_with_logits(logits, val[1])
    accuracy = ((logits > 0) == (val[1] > 0.5)).float().mean()
    print(f"epoch {epoch + 1} loss {sum(losses) / len(losses):.4f} val loss {val_loss:.4f} val accuracy {accuracy:.4f}")
