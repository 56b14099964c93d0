import torch
from torch import nn
from torch.utils.data import DataLoader

from summarizer.batches import collate, documents
from summarizer.model import Scorer


def main():
    loader = DataLoader(list(documents(200)), batch_size=16, collate_fn=collate)
    model = Scorer()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss(reduction="none")
    for epoch in range(5):
        for tokens, padding in loader:
            wanted = (tokens > 150).float()
            losses = criterion(model(tokens, padding), wanted)
            loss = losses[tokens > 0].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
