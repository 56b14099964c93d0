"""Topics of short documents by their words: a thousand words, few documents, some filed wrongly."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
torch.set_num_threads(1)
WORDS, TOPICS, LENGTH = 1000, 4, 40

weights = torch.distributions.Dirichlet(torch.full((WORDS,), 0.08)).sample((TOPICS + 1,))


def documents(count):
    topics = torch.randint(0, TOPICS, (count,))
    mixture = 0.22 * weights[topics] + 0.78 * weights[TOPICS]
    words = torch.multinomial(mixture, LENGTH, replacement=True)
    counts = torch.zeros(count, WORDS).scatter_add_(1, words, torch.ones(count, LENGTH))
    mixed_up = torch.rand(count) < 0.2
    topics[mixed_up] = torch.randint(0, TOPICS, (int(mixed_up.sum()),))
    return torch.log1p(counts), topics


class TopicModel(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(WORDS, 64)
        self.out = nn.Linear(64, TOPICS)

    def forward(self, x):
        x = torch.relu(self.hidden(self.dropout(x)))
        return self.out(self.dropout(x))


train_x, train_y = documents(240)
val_x, val_y = documents(400)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=20, shuffle=True)
model = TopicModel(dropout=0.08)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(60):
    model.train()
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            train_loss = loss_fn(model(train_x), train_y).item()
            logits = model(val_x)
            val_loss = loss_fn(logits, val_y).item()
            val_accuracy = (logits.argmax(1) == val_y).float().mean().item()
        print(
            f"epoch {epoch + 1} train loss {train_loss:.4f} "
            f"val loss {val_loss:.4f} val accuracy {val_accuracy:.3f}"
        )
