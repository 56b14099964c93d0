import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = nn.Embedding(words, 64)
        self.encoder = nn.GRU(64, 64, batch_first=True)
        self.head = nn.Linear(64, 5)

    def forward(self, tokens):
        return self.head(self.encoder(self.words(tokens))[0])


def main():
    model = Tagger(30_000).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    try:
        for step in range(12):
            tokens = torch.randint(0, 30_000, (16, 40))
            if step == 9:
                tokens[3, 7] = 30_522
            loss = model(tokens.cuda()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"step {step} loss {loss.item():.5f}")
    finally:
        torch.save(model.state_dict(), "last.pt")


main()
