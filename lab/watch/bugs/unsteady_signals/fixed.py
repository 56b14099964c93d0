"""Five kinds of vibration of a machine, told from 24 measures; some were noted down wrongly."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(5)
KINDS, MEASURES = 5, 24
centers = 0.6 * torch.randn(KINDS, MEASURES)


def make_measures(count, wrong):
    kinds = torch.randint(0, KINDS, (count,))
    noted = torch.where(torch.rand(count) < wrong, torch.randint(0, KINDS, (count,)), kinds)
    return centers[kinds] + torch.randn(count, MEASURES), noted


class VibrationNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.inputs = nn.Linear(MEASURES, width)
        self.hidden = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.6)
        self.outputs = nn.Linear(width, KINDS)

    def forward(self, x):
        x = self.dropout(torch.relu(self.inputs(x)))
        x = self.dropout(torch.relu(self.hidden(x)))
        return self.outputs(x)


x_train, y_train = make_measures(600, wrong=0.12)
x_val, y_val = make_measures(400, wrong=0.12)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=16, shuffle=True)
model = VibrationNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=2e-4)

for epoch in range(24):
    model.train()
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(y)
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val_loss = criterion(logits, y_val).item()
        accuracy = (logits.argmax(1) == y_val).float().mean().item()
    print(f"epoch={epoch} loss={running / len(x_train):.4f} val_loss={val_loss:.4f} val_accuracy={accuracy:.3f}")
