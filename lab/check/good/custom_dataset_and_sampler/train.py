import argparse
import itertools
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info


class Strings(Dataset):
    def __init__(self, count, seed=0):
        rng = random.Random(seed)
        self.items = ["".join(rng.choice("ab") for _ in range(rng.randint(1, 30))) for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        text = self.items[i]
        return torch.tensor([ord(c) - 97 for c in text]), float(text.count("a") % 2)


class Stream(IterableDataset):
    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return (self.dataset[i] for i in itertools.islice(range(len(self.dataset)), start, None, step))


class BucketSampler(Sampler):
    def __init__(self, lengths, size):
        self.lengths, self.size = lengths, size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        batches = [order[i : i + self.size] for i in range(0, len(order), self.size)]
        random.shuffle(batches)
        yield from batches

    def __len__(self):
        return -(-len(self.lengths) // self.size)


def collate(batch):
    texts, labels = zip(*batch)
    lengths = torch.tensor([len(t) for t in texts])
    return pad_sequence(texts, batch_first=True), lengths, torch.tensor(labels)


class Parity(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(2, 8), nn.LSTM(8, 32, batch_first=True), nn.Linear(32, 1)

    def forward(self, texts, lengths):
        packed = pack_padded_sequence(self.embed(texts), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.rnn(packed)
        return self.out(hidden[-1]).squeeze(-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--stream", action="store_true")
    args = p.parse_args()
    data = Strings(1000)
    if args.stream:
        loader = DataLoader(Stream(data), batch_size=32, collate_fn=collate, num_workers=args.workers)
    else:
        sampler = BucketSampler([len(t) for t in data.items], 32)
        loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate, num_workers=args.workers)
    model = Parity()
    optimizer = torch.optim.Adam(model.parameters())
    for texts, lengths, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(texts, lengths), labels)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
