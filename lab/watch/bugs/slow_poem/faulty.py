"""Two LSTM layers that learn a poem by heart, letter by letter."""
import torch
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)

POEM = (
    "tiger tiger burning bright in the forests of the night what immortal hand or eye "
    "could frame thy fearful symmetry in what distant deeps or skies burnt the fire of thine eyes "
    "on what wings dare he aspire what the hand dare seize the fire and what shoulder and what art "
    "could twist the sinews of thy heart and when thy heart began to beat what dread hand "
    "and what dread feet what the hammer what the chain in what furnace was thy brain "
)
alphabet = sorted(set(POEM))
codes = torch.tensor([alphabet.index(letter) for letter in POEM * 8])


class Poet(nn.Module):
    def __init__(self, size, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(size, 32)
        self.lstm = nn.LSTM(32, hidden, num_layers=2, dropout=0.8, batch_first=True)
        self.decoder = nn.Linear(hidden, size)

    def forward(self, x, state=None):
        output, state = self.lstm(self.embedding(x), state)
        return self.decoder(output), state


batch_size, window = 16, 32
columns = codes[: len(codes) // batch_size * batch_size].view(batch_size, -1)
model = Poet(len(alphabet))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(1, 31):
    model.train()
    state, losses = None, []
    for start in range(0, columns.size(1) - window - 1, window):
        x = columns[:, start : start + window]
        y = columns[:, start + 1 : start + window + 1]
        logits, state = model(x, state)
        state = tuple(s.detach() for s in state)
        loss = loss_fn(logits.reshape(-1, len(alphabet)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits, _ = model(columns[:, :-1])
        accuracy = (logits.argmax(-1) == columns[:, 1:]).float().mean().item()
    print(f"epoch {epoch:2d} | loss {sum(losses) / len(losses):.3f} | accuracy {accuracy:.3f}")
