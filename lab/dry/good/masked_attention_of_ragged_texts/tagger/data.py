import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import IterableDataset

PAD, IGNORED = 0, -100


class Texts(IterableDataset):
    def __init__(self, number, seed):
        self.number, self.seed = number, seed

    def __iter__(self):
        chance = random.Random(self.seed)
        for _ in range(self.number):
            tokens = [chance.randrange(1, 90) for _ in range(chance.randrange(3, 25))]
            yield torch.tensor(tokens), torch.tensor([token % 7 for token in tokens])


def collate(samples):
    tokens, tags = zip(*samples)
    return (
        pad_sequence(tokens, batch_first=True, padding_value=PAD),
        pad_sequence(tags, batch_first=True, padding_value=IGNORED),
    )
