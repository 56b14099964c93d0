"""Intents of short messages. The messages are in twelve files, one per application, which the ranks and their workers share."""

import random
from collections import Counter

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SEED = 310
CONFIG = {
    "vocabulary": 500,
    "width": 48,
    "batch": 25,
    "workers": 2,
    "epochs": 3,
    "lr": 1e-2,
    "length": 10,
}
INTENTS = ["book", "cancel", "complain", "greet", "pay", "remind", "search", "thank", "translate"]


def write_files(per_file, source):
    """Each application serves five intents, and its users have words of their own."""
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(source.sample(syllables, 2)) for _ in range(900)]
    about = {intent: words[20 * i : 20 * i + 20] for i, intent in enumerate(INTENTS)}
    files = []
    for application in range(12):
        served = [INTENTS[2 * (application % 3) + i] for i in range(5)]
        own = words[300 + 30 * application : 330 + 30 * application]
        lines = []
        for _ in range(per_file):
            intent = source.choice(served)
            typical = own[6 * served.index(intent) :][:6]
            text = [
                source.choice(source.choices([about[intent], typical, own], [0.1, 0.2, 0.7])[0])
                for _ in range(CONFIG["length"])
            ]
            lines.append((" ".join(text), intent))
        files.append(lines)
    return files


class Messages(IterableDataset):
    """The files of this rank's workers, with words and intents as numbers."""

    def __init__(self, files, vocabulary, intents, rank, world):
        self.files, self.rank, self.world = files, rank, world
        self.word = {word: i + 1 for i, word in enumerate(vocabulary)}
        self.intent = {intent: i for i, intent in enumerate(intents)}

    def encode(self, text, intent):
        return torch.tensor([self.word.get(word, 0) for word in text.split()]), self.intent.get(
            intent, 0
        )

    def __iter__(self):
        worker = get_worker_info()
        first = self.rank + self.world * worker.id
        lines = [
            line for file in self.files[first :: self.world * worker.num_workers] for line in file
        ]
        for i in torch.randperm(len(lines)).tolist():
            yield self.encode(*lines[i])


class Reader(nn.Module):
    def __init__(self, vocabulary, width, classes):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocabulary + 1, width, mode="mean")
        self.head = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, classes)
        )

    def forward(self, tokens):
        return self.head(self.embed(tokens))


def gathered(own):
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, own)
    return everybody


def average_gradients(model):
    flat = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for parameter, part in zip(
        model.parameters(), flat.split([p.numel() for p in model.parameters()]), strict=True
    ):
        parameter.grad.copy_(part.view_as(parameter))


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(SEED)
source = random.Random(SEED)
files = write_files(250, source)
test = [line for file in files for line in file[-40:]]
files = [file[:-40] for file in files]

mine = [line for file in files[rank::world] for line in file]
counts = Counter(word for text, _ in mine for word in text.split())
counts = sum(gathered(counts), Counter())
vocabulary = [
    word
    for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[
        : CONFIG["vocabulary"]
    ]
]
intents = {intent for _, intent in mine}
intents = set().union(*gathered(intents))

data = Messages(files, vocabulary, sorted(intents), rank, world)
model = Reader(CONFIG["vocabulary"], CONFIG["width"], len(INTENTS))
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
torch.manual_seed(SEED + rank)
loader = DataLoader(data, batch_size=CONFIG["batch"], num_workers=CONFIG["workers"], drop_last=True)

for epoch in range(CONFIG["epochs"]):
    model.train()
    for tokens, intent in loader:
        loss = nn.functional.cross_entropy(model(tokens), intent)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        encoded = [data.encode(*line) for line in test[rank::world]]
        tokens, intent = torch.stack([x for x, _ in encoded]), torch.tensor([y for _, y in encoded])
        right = torch.tensor([(model(tokens).argmax(1) == intent).sum(), len(intent)])
    dist.all_reduce(right)
    if rank == 0:
        print(f"epoch {epoch}  loss {loss.item():.3f}  accuracy {right[0] / right[1]:.3f}")
dist.destroy_process_group()
