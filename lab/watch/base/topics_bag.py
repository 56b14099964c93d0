"""Which of six topics a message has, each on its own, from its bag of words. Val f1 reaches about 0.94."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(41)

VOCABULARY, TOPICS, WORDS = 400, 6, 24


def messages(count, language):
    """Messages of 24 words: each topic that a message has gives some of its own words."""
    has = torch.rand(count, TOPICS) < 0.3
    words = torch.randint(VOCABULARY, (count, WORDS))
    for topic in range(TOPICS):
        picks = language[topic][torch.randint(20, (count, 4))]
        places = topic * 4
        words[:, places : places + 4] = torch.where(
            has[:, topic : topic + 1], picks, words[:, places : places + 4]
        )
    return words[:, torch.randperm(WORDS)], has.float()


class TopicNet(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCABULARY, dim, mode="mean")
        self.hidden = nn.Linear(dim, hidden)
        self.topics = nn.Linear(hidden, TOPICS)

    def forward(self, words):
        return self.topics(torch.relu(self.hidden(self.bag(words))))


def f1(model, loader):
    model.eval()
    hits = found = wanted = 0.0
    with torch.no_grad():
        for words, has in loader:
            said = (torch.sigmoid(model(words)) > 0.5).float()
            hits += (said * has).sum().item()
            found += said.sum().item()
            wanted += has.sum().item()
    return 2 * hits / max(found + wanted, 1.0)


def main():
    language = torch.randperm(VOCABULARY)[: TOPICS * 20].view(TOPICS, 20)
    train_words, train_has = messages(2500, language)
    val_words, val_has = messages(500, language)
    train_loader = DataLoader(TensorDataset(train_words, train_has), batch_size=50, shuffle=True)
    val_loader = DataLoader(TensorDataset(val_words, val_has), batch_size=250)

    model = TopicNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(12):
        model.train()
        total = 0.0
        for words, has in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(words), has)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1:2d}  train loss {total / len(train_loader):.4f}  val f1 {f1(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
