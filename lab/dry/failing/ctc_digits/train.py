import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Utterances(Dataset):
    """Spectrograms of spoken digit strings; the dev set has recordings of other lengths."""

    def __init__(self, count, seed, lengths):
        rng = torch.Generator().manual_seed(seed)
        self.items = []
        for k in range(count):
            frames = lengths[k % len(lengths)]
            digits = torch.randint(1, 11, (5,), generator=rng)
            self.items.append((torch.randn(frames, 20, generator=rng), digits))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate_train(items):
    features = pad_sequence([f for f, _ in items], batch_first=True)
    return features, torch.tensor([len(f) for f, _ in items]), torch.cat([d for _, d in items])


def collate_dev(items):
    features = torch.stack([f for f, _ in items])
    return features, torch.tensor([len(f) for f, _ in items]), torch.cat([d for _, d in items])


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(20, 48, bidirectional=True, batch_first=True)
        self.out = nn.Linear(96, 11)

    def forward(self, features):
        return self.out(self.rnn(features)[0]).log_softmax(-1).transpose(0, 1)


def main():
    torch.manual_seed(0)
    train = DataLoader(Utterances(64, 1, (40, 52, 60)), batch_size=8, shuffle=True, collate_fn=collate_train)
    # Sorted by length, so that only the batch at the border mixes two lengths.
    dev = DataLoader(Utterances(20, 2, (50,) * 12 + (64,) * 8), batch_size=8, collate_fn=collate_dev)
    model = Recognizer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CTCLoss(zero_infinity=True)
    for epoch in range(6):
        model.train()
        for features, lengths, digits in train:
            loss = criterion(model(features), digits, lengths, torch.full((len(lengths),), 5))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item())
    model.eval()
    total = 0.0
    with torch.no_grad():
        for features, lengths, digits in dev:
            total += criterion(model(features), digits, lengths, torch.full((len(lengths),), 5)).item()
    print("dev", total)


if __name__ == "__main__":
    main()
