"""Sentiment of made reviews: token embeddings and a GRU."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(11)
random.seed(11)

VOCABULARY, LENGTH = 400, 16
GOOD, BAD = range(10, 60), range(60, 110)


class Reviews(Dataset):
    """Neutral words, with more good ones or more bad ones among them."""

    def __init__(self, count):
        self.items = []
        for _ in range(count):
            label = random.randint(0, 1)
            words = [random.randrange(110, VOCABULARY) for _ in range(LENGTH)]
            places = random.sample(range(LENGTH), 5)
            for place in places[:4]:
                words[place] = random.choice(GOOD if label else BAD)
            words[places[4]] = random.choice(BAD if label else GOOD)
            self.items.append((torch.tensor(words), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, item):
        return self.items[item]


class Sentiment(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 32)
        self.embedding_dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(32, 32, batch_first=True)
        self.hidden = nn.Linear(32, 32)
        self.hidden_dropout = nn.Dropout(dropout)
        self.output = nn.Linear(32, 2)

    def forward(self, tokens):
        x = self.embedding_dropout(self.embedding(tokens))
        _, state = self.gru(x)
        x = torch.relu(self.hidden(state[-1]))
        return self.output(self.hidden_dropout(x))


train_loader = DataLoader(Reviews(1500), batch_size=50, shuffle=True)
val_loader = DataLoader(Reviews(400), batch_size=200)
model = Sentiment(dropout=0.1)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
    model.train()
    train_loss = 0
    for tokens, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), labels)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)

    model.eval()
    val_loss, right = 0, 0
    with torch.no_grad():
        for tokens, labels in val_loader:
            logits = model(tokens)
            val_loss += criterion(logits, labels).item() / len(val_loader)
            right += (logits.argmax(1) == labels).sum().item()
    print(
        f"Epoch {epoch + 1}: train_loss={train_loss:.4f} val_loss={val_loss:.4f} "
        f"val_accuracy={right / len(val_loader.dataset):.3f}"
    )
