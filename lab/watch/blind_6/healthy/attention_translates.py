"""Translates the words of one invented language into another: the object comes first and each word has its own form."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

SEED = 23
PAD, START, END = 0, 1, 2
WORDS = 18
random.seed(SEED)
torch.manual_seed(SEED)
lexicon = dict(zip(range(3, 3 + WORDS), random.sample(range(3, 3 + WORDS), WORDS)))


def sentence():
    words = [random.randrange(3, 3 + WORDS) for _ in range(random.randint(3, 6))]
    return torch.tensor(words), torch.tensor([START, *(lexicon[word] for word in reversed(words)), END])


def batches(pairs, size):
    for low in range(0, len(pairs), size):
        sources, targets = zip(*pairs[low : low + size])
        yield pad_sequence(sources, batch_first=True), pad_sequence(targets, batch_first=True)


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(3 + WORDS, width, padding_idx=PAD)
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, source):
        return self.narrow(self.rnn(self.embed(source))[0])


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(3 + WORDS, width, padding_idx=PAD)
        self.cell = nn.GRUCell(2 * width, width)
        self.query = nn.Linear(width, width)
        self.out = nn.Linear(2 * width, 3 + WORDS)

    def step(self, word, state, context, memory, padding):
        state = self.cell(torch.cat([self.embed(word), context], -1), state)
        scores = torch.einsum("bw,bsw->bs", self.query(state), memory)
        weights = torch.softmax(scores.masked_fill(padding, -1e9), dim=1)
        context = torch.einsum("bs,bsw->bw", weights, memory)
        return self.out(torch.cat([state, context], -1)), state, context


class Translator(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder, self.decoder = Encoder(width), Decoder(width)

    def forward(self, source, target):
        memory = self.encoder(source)
        state = memory.mean(1)
        context, outputs = torch.zeros_like(state), []
        for word in target[:, :-1].unbind(1):
            logits, state, context = self.decoder.step(word, state, context, memory, source == PAD)
            outputs.append(logits)
        return torch.stack(outputs, 1)

    @torch.no_grad()
    def translate(self, source, steps=9):
        memory = self.encoder(source)
        state = memory.mean(1)
        context, word, words = torch.zeros_like(state), torch.full((len(source),), START), []
        for _ in range(steps):
            logits, state, context = self.decoder.step(word, state, context, memory, source == PAD)
            word = logits.argmax(-1)
            words.append(word)
        return torch.stack(words, 1)


train, test = [sentence() for _ in range(1500)], [sentence() for _ in range(200)]
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for epoch in range(10):
    model.train()
    random.shuffle(train)
    total = 0.0
    for source, target in batches(train, 50):
        loss = criterion(model(source, target).flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(source)
    print(f"epoch {epoch + 1}: loss {total / len(train):.4f}")
model.eval()
right = 0
for source, target in batches(test, 40):
    for found, wanted in zip(model.translate(source).tolist(), target.tolist()):
        wanted = wanted[1 : wanted.index(END)]
        right += found[: found.index(END)] == wanted if END in found else 0
print(f"sentences translated correctly: {right / len(test):.4f}")
