"""Question matching: are two questions the same?"""
import torch
from torch import nn
from torch.utils.data import DataLoader

from pairs import Pairs


class Matcher(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.EmbeddingBag(1000, width)
        self.decide = nn.Bilinear(width, width, 1)

    def forward(self, batch):
        return self.decide(self.words(batch["first"]), self.words(batch["second"])).squeeze(1)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.criterion = nn.BCEWithLogitsLoss()

    def fit(self, train, validation, epochs):
        for epoch in range(epochs):
            self.model.train()
            for batch in train:
                self.step(batch)
            print(epoch, self.validate(validation))

    def step(self, batch):
        loss = self.criterion(self.model(batch), batch["label"])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        right = total = 0
        for batch in loader:
            right += ((self.model(batch) > 0) == (batch["labels"] > 0.5)).sum().item()
            total += len(batch["first"])
        return right / total


if __name__ == "__main__":
    trainer = Trainer(Matcher())
    train = DataLoader(Pairs(800), batch_size=32, shuffle=True)
    trainer.fit(train, DataLoader(Pairs(200), batch_size=100), epochs=10)
