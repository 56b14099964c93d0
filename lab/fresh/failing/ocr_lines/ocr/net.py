from torch import nn


class LineNet(nn.Module):
    """Convolutions over the line, a GRU along it, one symbol per column."""

    def __init__(self, symbols, hidden=128):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.rnn = nn.GRU(64 * 8, hidden, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, symbols + 1)

    def forward(self, images):
        features = self.features(images)
        columns = features.permute(0, 3, 1, 2).flatten(2)
        states, _ = self.rnn(columns)
        return self.head(states).log_softmax(-1)
