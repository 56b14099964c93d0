"""Will somebody vote, from sixty answers of 400 people? Much of it is chance: dropout and weight decay keep a wide network from learning it by heart.

Should reach: val loss below 0.62; the larger group alone gives about 0.69.
"""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(71)
QUESTIONS = 60
weight = torch.randn(QUESTIONS) * (torch.rand(QUESTIONS) < 0.3)


def people(count):
    answers = torch.randint(1, 6, (count, QUESTIONS)).float()
    leaning = ((answers - 3) @ weight) / 4
    votes = torch.rand(count) < torch.sigmoid(leaning)
    return (answers - 3) / 1.4, votes.float()


class Survey(nn.Module):
    def __init__(self, width=128, dropout=0.6):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(QUESTIONS, width), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout),
        )  # fmt: skip
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(1)


loader = DataLoader(TensorDataset(*people(400)), batch_size=20, shuffle=True)
x_val, y_val = people(1000)
model = Survey()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=1.0)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
for epoch in range(30):
    model.train()
    total = 0.0
    for answers, votes in loader:
        optimizer.zero_grad()
        loss = criterion(model(answers), votes)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    accuracy = ((logits > 0) == (y_val > 0.5)).float().mean()
    print(f"epoch {epoch + 1} loss {total / len(loader):.4f} val accuracy {accuracy:.4f} val loss {criterion(logits, y_val):.4f}")
