"""Which of twelve genres a film has, from its keywords: many labels at once, rare genres weighted up.

Should reach: val mean average precision of at least 0.75; the frequencies of the genres give about 0.2.
"""
import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(7)
rng = np.random.default_rng(7)
GENRES, WORDS = 12, 400
SHARE = np.linspace(0.35, 0.04, GENRES)
WORD_RATE = rng.gamma(0.1, 0.25, size=(GENRES, WORDS))
COMMON = rng.gamma(0.3, 0.6, size=WORDS)


class Films(Dataset):
    def __init__(self, count):
        self.genres = (rng.random((count, GENRES)) < SHARE).astype(np.float32)
        counts = rng.poisson(self.genres @ WORD_RATE + COMMON)
        self.words = np.log1p(counts).astype(np.float32)

    def __len__(self):
        return len(self.genres)

    def __getitem__(self, index):
        return self.words[index], self.genres[index]


def main():
    train_films, val_films = Films(4000), Films(1000)
    positives = train_films.genres.sum(0)
    weight = torch.tensor((len(train_films) - positives) / positives).sqrt()
    model = nn.Sequential(nn.Linear(WORDS, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, GENRES))
    criterion = nn.BCEWithLogitsLoss(pos_weight=weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    loader = DataLoader(train_films, batch_size=64, shuffle=True)
    for epoch in range(1, 9):
        model.train()
        losses = []
        for words, genres in loader:
            optimizer.zero_grad()
            loss = criterion(model(words), genres)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            logits = model(torch.from_numpy(val_films.words))
            val_loss = criterion(logits, torch.from_numpy(val_films.genres))
        precision = average_precision_score(val_films.genres, logits.numpy(), average="macro")
        print(f"{epoch}: loss {np.mean(losses):.4f} val loss {val_loss:.4f} val mean average precision {precision:.4f}")


if __name__ == "__main__":
    main()
