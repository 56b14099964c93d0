import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Characters(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = nn.Embedding(size, 16)
        self.head = nn.Linear(16, size)

    def forward(self, text):
        return self.head(self.embed(text))


def main():
    dist.init_process_group("gloo")
    text = open(f"text{dist.get_rank()}.txt").read()
    letters = sorted(set(text))
    number = {letter: n for n, letter in enumerate(letters)}
    coded = torch.tensor([number[letter] for letter in text])
    model = DistributedDataParallel(Characters(len(letters)))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(50):
        loss = nn.functional.cross_entropy(model(coded[:-1]), coded[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
