"""Tags the words of addresses; words are split into pieces, and the first piece of a word carries its label."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

SEED = 89
random.seed(SEED)
torch.manual_seed(SEED)
TAGS = ["other", "street", "number", "town"]
SYLLABLES = ["bar", "ton", "wick", "lo", "mer", "san", "del", "ri", "ock", "fen", "hol", "gra"]
SPECIAL = {"[PAD]": 0, "[CLS]": 1}


def name(end):
    return [*random.choices(SYLLABLES, k=random.randint(1, 3)), end]


def address():
    """Words as lists of pieces, and a tag for each word."""
    words = [([random.choice(["send", "to", "via", "near", "please"])], "other") for _ in range(random.randint(1, 4))]
    words.append((name("street"), "street"))
    words.append((random.choices("0123456789", k=random.randint(1, 4)), "number"))
    if random.random() < 0.7:
        words.append((["in"], "other"))
    words.append((name("town"), "town"))
    if random.random() < 0.5:
        words = [*words[-1:], *words[:-1]]
    return [word for word, _ in words], [TAGS.index(tag) for _, tag in words]


pieces = sorted({*SYLLABLES, *"0123456789", "street", "town", "in", "send", "to", "via", "near", "please"})
vocabulary = SPECIAL | {piece: number for number, piece in enumerate(pieces, len(SPECIAL))}


def encode(words, tags):
    """The ids of all pieces and a label at each first piece; -100 elsewhere."""
    ids, word_ids = [SPECIAL["[CLS]"]], [None]
    for number, word in enumerate(words):
        ids += [vocabulary[piece] for piece in word]
        word_ids += [number] * len(word)
    labels = [-100] * len(ids)
    for number, tag in enumerate(tags):
        labels[word_ids.index(number)] = tag
    return torch.tensor(ids), torch.tensor(labels), torch.tensor([word_ids.index(number) for number in range(len(words))])


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(len(vocabulary), width, padding_idx=0)
        self.rnn = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, len(TAGS))

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


train = [encode(*address()) for _ in range(800)]
test_pairs = [address() for _ in range(200)]
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss(ignore_index=-100)
for epoch in range(8):
    model.train()
    random.shuffle(train)
    total = 0.0
    for low in range(0, len(train), 20):
        ids, labels, _ = zip(*train[low : low + 20])
        logits = model(pad_sequence(ids, batch_first=True))
        loss = criterion(logits.flatten(0, 1), pad_sequence(labels, batch_first=True, padding_value=-100).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1}: loss {total / (len(train) / 20):.4f}")
model.eval()
right = count = 0
with torch.no_grad():
    for words, tags in test_pairs:
        ids, _, starts = encode(words, tags)
        found = model(ids[None])[0, starts].argmax(-1).tolist()
        right += sum(a == b for a, b in zip(found, tags))
        count += len(tags)
print(f"words tagged correctly: {right / count:.4f}")
