"""CTC without alignments: which bells were struck, in which order? The last class is the blank."""

import torch
from torch import nn

SEED = 37
torch.manual_seed(SEED)
BELLS, FRAMES = 6, 30
BLANK = BELLS
timbre = torch.randn(BELLS, 10)


def recordings(count):
    sound, strokes = 0.4 * torch.randn(count, FRAMES, 10), torch.randint(BELLS, (count, 4))
    for row in range(count):
        starts = torch.arange(4) * 7 + torch.randint(4, (4,))
        for start, bell in zip(starts, strokes[row], strict=True):
            sound[row, start : start + 4] += timbre[bell]
    return sound, strokes


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(10, 32, 5, padding=2)
        self.out = nn.Conv1d(32, BELLS + 1, 3, padding=1)

    def forward(self, sound):
        return self.out(torch.relu(self.conv(sound.transpose(1, 2)))).permute(2, 0, 1).log_softmax(-1)


def decode(frames):
    heard = torch.unique_consecutive(frames).tolist()
    return [bell for bell in heard if bell != BLANK]


model = Listener()
criterion = nn.CTCLoss(blank=BLANK)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
sound, strokes = recordings(800)
held_sound, held_strokes = recordings(200)
for epoch in range(12):
    for index in torch.randperm(len(sound)).split(40):
        lengths = torch.full((len(index),), FRAMES), torch.full((len(index),), 4)
        loss = criterion(model(sound[index]), strokes[index], *lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        frames = model(held_sound).argmax(-1).T
    exact = sum(decode(row) == wanted.tolist() for row, wanted in zip(frames, held_strokes, strict=True))
    print(f"epoch {epoch} loss {loss.item():.4f} exact match {exact / len(frames):.4f}")
