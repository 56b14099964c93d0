import torch
from torch.nn.utils.rnn import pad_sequence

PAD = 0


def documents(number, seed=0):
    random = torch.Generator().manual_seed(seed)
    for _ in range(number):
        length = int(torch.randint(5, 30, (1,), generator=random))
        yield torch.randint(1, 200, (length,), generator=random)


def collate(samples):
    """Tokens of shape (batch, length) and the mask of what is padding, alike."""
    tokens = pad_sequence(samples)
    return tokens.T, tokens == PAD
