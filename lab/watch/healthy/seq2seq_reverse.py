"""Sequence to sequence: write a word backwards. Encoder and decoder are separate modules with separate optimizers.

Should reach: val token accuracy of at least 0.93 when the decoder reads its own output.
"""

import torch
import torch.nn as nn
from torch import optim

torch.manual_seed(0)
torch.set_num_threads(1)
LETTERS, START, LENGTH, HIDDEN = 12, 12, 5, 96


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, 24)
        self.gru = nn.GRU(24, HIDDEN, batch_first=True)

    def forward(self, source):
        return self.gru(self.embedding(source))


class AttentionDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS + 1, 24)
        self.cell = nn.GRUCell(24, HIDDEN)
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(2 * HIDDEN, LETTERS)

    def forward(self, token, hidden, memory):
        hidden = self.cell(self.embedding(token), hidden)
        scores = torch.bmm(memory, self.query(hidden).unsqueeze(2)) / HIDDEN**0.5
        context = (scores.softmax(1) * memory).sum(1)
        return self.out(torch.cat([hidden, context], dim=1)), hidden


def decode(source, target=None):
    memory, hidden = encoder(source)
    hidden = hidden[0]
    token = torch.full((len(source),), START)
    outputs = []
    for i in range(LENGTH):
        logits, hidden = decoder(token, hidden, memory)
        outputs.append(logits)
        token = logits.argmax(1) if target is None else target[:, i]
    return torch.stack(outputs, dim=1)


encoder, decoder = Encoder(), AttentionDecoder()
encoder_optimizer = optim.Adam(encoder.parameters(), lr=2e-3)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
val_source = torch.randint(0, LETTERS, (500, LENGTH))

for iteration in range(1, 351):
    source = torch.randint(0, LETTERS, (64, LENGTH))
    target = source.flip(1)
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    loss = criterion(decode(source, target).flatten(0, 1), target.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
    nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
    encoder_optimizer.step()
    decoder_optimizer.step()
    if iteration % 50 == 0:
        with torch.no_grad():
            accuracy = (decode(val_source).argmax(2) == val_source.flip(1)).float().mean().item()
        print(f"iteration {iteration} loss {loss.item():.4f} val token accuracy {accuracy:.4f}")
