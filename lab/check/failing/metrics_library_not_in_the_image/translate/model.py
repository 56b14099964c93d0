from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, source, prefix):
        _, state = self.encoder(self.embed(source))
        hidden, _ = self.decoder(self.embed(prefix), state)
        return self.out(hidden)
