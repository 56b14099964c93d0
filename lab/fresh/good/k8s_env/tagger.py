"""Sequence tagger with packed sequences."""

import argparse
import os
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

RUN = Path(os.environ["RUN_DIR"])


class Tagger(nn.Module):
    def __init__(self, words, tags, size=16):
        super().__init__()
        self.embed = nn.Embedding(words, size, padding_idx=0)
        self.rnn = nn.LSTM(size, size, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * size, tags)

    def forward(self, padded, lengths):
        packed = pack_padded_sequence(self.embed(padded), lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(states)


def batch(size, tags, device):
    lengths = torch.randint(3, 12, (size,))
    words = [torch.randint(1, 50, (length,)) for length in lengths.tolist()]
    padded = pad_sequence(words, batch_first=True)
    truth = torch.where(padded == 0, -100, padded % tags)
    return padded.to(device), lengths, truth.to(device)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--tags", nargs="+", default=["noun"])
    args = parser.parse_args()
    token = os.environ["API_TOKEN"]
    print("token of", len(token), "letters")
    device = "cuda:1" if torch.cuda.device_count() > 1 else "cpu"
    model = Tagger(50, len(args.tags)).to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr)
    for step in range(args.max_steps):
        padded, lengths, truth = batch(8, len(args.tags), device)
        logits = model(padded, lengths)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), truth, ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            torch.save(model.state_dict(), RUN / f"step-{step}.pt")
    print(dict(zip(args.tags, logits.softmax(-1).mean((0, 1)).tolist())))


if __name__ == "__main__":
    main()
