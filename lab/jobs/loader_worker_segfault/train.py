import ctypes

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

libc = ctypes.CDLL(None)


class NativeDecoder(Dataset):
    """Decodes frames with the C library; a frame of length 0 has no buffer."""

    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        n = self.lengths[i]
        source = ctypes.create_string_buffer(b"\x01" * n, n) if n else None
        target = ctypes.create_string_buffer(64)
        libc.memcpy(target, source, 64)
        return torch.frombuffer(bytearray(target.raw), dtype=torch.uint8).float()


def main():
    lengths = [64] * 200
    lengths[120] = 0
    loader = DataLoader(NativeDecoder(lengths), batch_size=10, num_workers=1, prefetch_factor=1)
    model = nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for i, frames in enumerate(loader):
        loss = model(frames).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"batch {i} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
