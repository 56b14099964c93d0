"""Speech-like: sequences of spoken digits as tone patterns, transcribed by a convolution, a GRU and CTC with greedy decoding."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(19)
SYMBOLS, BANDS = 6, 10
templates = torch.rand(SYMBOLS, BANDS, 4).gt(0.6).float()


def utterance():
    count = int(torch.randint(2, 6, ()))
    symbols = torch.randint(SYMBOLS, (count,))
    frames = [torch.zeros(int(torch.randint(2, 5, ())), BANDS)]
    for symbol in symbols:
        stretch = int(torch.randint(2, 4, ()))
        frames.append(templates[symbol].T.repeat_interleave(stretch, 0))
        frames.append(torch.zeros(int(torch.randint(1, 4, ())), BANDS))
    features = torch.cat(frames)
    return features + 0.3 * torch.randn_like(features), symbols


def collate(items):
    features = pad_sequence([f for f, _ in items], batch_first=True)
    feature_lengths = torch.tensor([len(f) for f, _ in items])
    targets = torch.cat([s for _, s in items]) + 1
    target_lengths = torch.tensor([len(s) for _, s in items])
    return features, feature_lengths, targets, target_lengths


class Recognizer(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.conv = nn.Conv1d(BANDS, hidden, 3, stride=2, padding=1)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, SYMBOLS + 1)

    def forward(self, features, lengths):
        h = F.relu(self.conv(features.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.fc(h).log_softmax(-1), (lengths + 1) // 2


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def error_rate(model, batch):
    features, lengths, targets, target_lengths = batch
    log_probs, out_lengths = model(features, lengths)
    wrong = 0
    for best, length, truth in zip(log_probs.argmax(-1), out_lengths, targets.split(target_lengths.tolist())):
        collapsed = torch.unique_consecutive(best[:length])
        wrong += edit_distance(collapsed[collapsed != 0].tolist(), truth.tolist())
    return wrong / len(targets)


train = [utterance() for _ in range(900)]
dev = collate([utterance() for _ in range(150)])
loader = torch.utils.data.DataLoader(train, batch_size=10, shuffle=True, collate_fn=collate)
model = Recognizer()
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
accumulate = 2
for epoch in range(6):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for number, (features, lengths, targets, target_lengths) in enumerate(loader, 1):
        log_probs, out_lengths = model(features, lengths)
        loss = ctc(log_probs.transpose(0, 1), targets, out_lengths, target_lengths)
        (loss / accumulate).backward()
        total += loss.item()
        if number % accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        rate = error_rate(model, dev)
    print(f"epoch {epoch} ctc {total / len(loader):.4f} symbol error rate {rate:.4f}")
