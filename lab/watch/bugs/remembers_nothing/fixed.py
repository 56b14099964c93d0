"""Which of four signals came first, when noise follows for fifteen steps?"""
import torch
from torch import nn

torch.manual_seed(10)
torch.set_num_threads(1)

STEPS, SIGNALS = 16, 4


def sequences(count):
    first = torch.randint(0, SIGNALS, (count,))
    x = torch.zeros(count, STEPS, SIGNALS + 1)
    x[torch.arange(count), 0, first] = 1.0
    x[:, 1:, :SIGNALS] = 0.2 * torch.randn(count, STEPS - 1, SIGNALS)
    x[:, 1:, SIGNALS] = 1.0
    return x, first


class Memory(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(SIGNALS + 1, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, SIGNALS)
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)
                nn.init.constant_(parameter[hidden : 2 * hidden], 1.0)

    def forward(self, x):
        _, (state, _) = self.lstm(x)
        return self.readout(state[0])


model = Memory()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x_val, y_val = sequences(500)

for epoch in range(1, 16):
    losses = []
    for _ in range(25):
        x, y = sequences(64)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        logits = model(x_val)
        val_loss = criterion(logits, y_val).item()
        accuracy = (logits.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss={sum(losses) / 25:.4f}, val loss={val_loss:.4f}, val accuracy={accuracy:.3f}")
