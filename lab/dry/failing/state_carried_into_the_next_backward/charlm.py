"""A character model over one long text; the state goes from piece to piece."""
import torch
from torch import nn

TEXT = "it was the best of times, it was the worst of times, " * 120
LETTERS = sorted(set(TEXT))
PIECE, ROWS = 25, 8


class Model(nn.Module):
    def __init__(self, letters, width=64):
        super().__init__()
        self.enter = nn.Embedding(letters, width)
        self.cell = nn.GRU(width, width, num_layers=2)
        self.leave = nn.Linear(width, letters)

    def forward(self, piece, state=None):
        hidden, state = self.cell(self.enter(piece), state)
        return self.leave(hidden), state


def main():
    codes = torch.tensor([LETTERS.index(letter) for letter in TEXT])
    text = codes[: len(codes) // ROWS * ROWS].view(ROWS, -1).T
    model = Model(len(LETTERS))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        state = None
        for start in range(0, len(text) - 1, PIECE):
            wanted = text[start + 1 : start + 1 + PIECE]
            answer, state = model(text[start : start + len(wanted)], state)
            loss = nn.functional.cross_entropy(answer.flatten(0, 1), wanted.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


main()
