"""Recognizes spoken commands of different lengths from their frames with an LSTM."""
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

SEED = 3
COMMANDS, FEATURES = 8, 10
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)
phones = rng.normal(0, 1, (6, FEATURES))
spelling = [rng.permutation(6)[:4] for _ in range(COMMANDS)]


class Commands(torch.utils.data.Dataset):
    def __init__(self, count):
        self.items = [self.record(int(rng.integers(COMMANDS))) for _ in range(count)]

    def record(self, command):
        frames = [np.repeat(phones[[phone]], rng.integers(3, 12), 0) for phone in spelling[command]]
        sound = np.concatenate(frames)
        return torch.tensor(sound + rng.normal(0, 0.6, sound.shape), dtype=torch.float32), command

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(items):
    sounds, commands = zip(*items)
    lengths = torch.tensor([len(sound) for sound in sounds])
    return pad_sequence(sounds, batch_first=True), lengths, torch.tensor(commands)


class Recognizer(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.lstm = nn.LSTM(FEATURES, hidden, batch_first=True)
        self.head = nn.Linear(hidden, COMMANDS)

    def forward(self, sounds, lengths):
        packed = pack_padded_sequence(sounds, lengths, batch_first=True, enforce_sorted=False)
        output, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        last = output[torch.arange(len(output)), lengths - 1]
        return self.head(last)


train = torch.utils.data.DataLoader(Commands(600), batch_size=30, shuffle=True, collate_fn=collate)
test = torch.utils.data.DataLoader(Commands(240), batch_size=60, collate_fn=collate)
model = Recognizer()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(12):
    model.train()
    total = 0.0
    for sounds, lengths, commands in train:
        loss = criterion(model(sounds, lengths), commands)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        right = sum((model(sounds, lengths).argmax(1) == commands).sum().item() for sounds, lengths, commands in test)
    print(f"epoch {epoch + 1:2d}  loss {total / len(train):.4f}  test accuracy {right / len(test.dataset):.4f}")
