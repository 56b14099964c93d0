"""Transcribes pen strokes of unknown length into letters with CTC."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
torch.set_num_threads(1)
LETTERS, BLANK = 6, 0
shapes = torch.randn(LETTERS + 1, 4, 5)


def draw(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    words = torch.randint(1, LETTERS + 1, (count, 4))
    lengths = torch.randint(2, 5, (count,))
    strokes = torch.zeros(count, 24, 5)
    for row in range(count):
        at = 1
        for letter in words[row, : lengths[row]]:
            strokes[row, at : at + 4] = shapes[letter]
            at += 5
    return strokes + 0.3 * torch.randn_like(strokes), words, lengths


class Transcriber(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.context = nn.Conv1d(5, 48, 5, padding=2)
        self.memory = nn.GRU(48, 32, batch_first=True, bidirectional=True)
        self.letters = nn.Linear(64, LETTERS + 1)

    def forward(self, strokes: torch.Tensor) -> torch.Tensor:
        seen = F.relu(self.context(strokes.transpose(1, 2))).transpose(1, 2)
        return self.letters(self.memory(seen)[0])


def read(scores: torch.Tensor) -> list[list[int]]:
    texts = []
    for best in scores.argmax(-1).tolist():
        merged = [b for a, b in zip([None, *best], best) if a != b]
        texts.append([letter for letter in merged if letter != BLANK])
    return texts


strokes, words, lengths = draw(640)
test_strokes, test_words, test_lengths = draw(160)
model = Transcriber()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
frames = torch.full((64,), 24)
for epoch in range(14):
    model.train()
    total = 0.0
    for rows in torch.randperm(640).split(64):
        scores = model(strokes[rows]).log_softmax(-1)
        loss = F.ctc_loss(scores.transpose(0, 1), words[rows], frames, lengths[rows], blank=BLANK)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        texts = read(model(test_strokes))
    right = sum(
        text == word[:length].tolist()
        for text, word, length in zip(texts, test_words, test_lengths)
    )
    print(f"epoch {epoch}: loss {total / 10:.3f}, words right {right / 160:.3f}")
