from torch import nn


class MLP(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, outputs),
        )

    def forward(self, x):
        return self.layers(x)
