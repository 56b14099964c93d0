"""Few patients, many genes: a network held back by dropout and weight decay. Val loss reaches about 0.57; chance is 0.69."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(14)

GENES, PATHWAYS = 300, 15


def patients(count, loadings, effect):
    pathways = torch.randn(count, PATHWAYS)
    expression = pathways @ loadings + 1.5 * torch.randn(count, GENES)
    risk = 1.2 * pathways @ effect
    ill = (torch.sigmoid(risk) > torch.rand(count)).float()
    return expression, ill


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = nn.Dropout(0.5)
        self.hidden = nn.Linear(GENES, 48)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(0.5)
        self.out = nn.Linear(48, 1)

    def forward(self, expression):
        x = self.relu(self.hidden(self.noise(expression)))
        return self.out(self.dropout(x)).flatten()


loadings = torch.randn(PATHWAYS, GENES) * (torch.rand(PATHWAYS, GENES) < 0.15)
effect = torch.zeros(PATHWAYS)
effect[:4] = torch.tensor([1.0, -1.0, 0.8, -0.8])
train_x, train_y = patients(160, loadings, effect)
val_x, val_y = patients(400, loadings, effect)

model = Risk()
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=16, shuffle=True)
criterion = nn.BCEWithLogitsLoss()
optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.3)
EPOCHS = 12

for epoch in range(EPOCHS):
    model.train()
    train_loss = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        logits = model(val_x)
        val_loss = criterion(logits, val_y).item()
        accuracy = ((logits > 0) == (val_y > 0.5)).float().mean().item()
    print(f"epoch {epoch + 1}: train loss {train_loss:.3f}, val loss {val_loss:.3f}, accuracy {accuracy:.3f}")
