import torch
from torch import nn

from beam import search


class Translator(nn.Module):
    def __init__(self, words=30, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.net = nn.Transformer(width, 4, 1, 1, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.net(self.embed(source), self.embed(target), tgt_mask=mask))


def batch(size):
    source = torch.randint(3, 30, (size, 6))
    target = torch.cat([torch.ones(size, 1, dtype=torch.long), source.flip(1), torch.full((size, 1), 2)], 1)
    return source, target


def main():
    torch.manual_seed(0)
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(150):
        source, target = batch(32)
        loss = nn.functional.cross_entropy(model(source, target[:, :-1]).transpose(1, 2), target[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())
    model.eval()
    source, target = batch(5)
    for one, reference in zip(source, target):
        print(search(model, one[None]), reference.tolist())


if __name__ == "__main__":
    main()
