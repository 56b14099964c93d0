from torch import nn


class CharModel(nn.Module):
    def __init__(self, symbols, embedding, hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(symbols, embedding)
        self.rnn = nn.LSTM(embedding, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, symbols)

    def forward(self, tokens, state=None):
        hidden, state = self.rnn(self.embedding(tokens), state)
        return self.head(hidden), state
