from torch import nn


class Scorer(nn.Module):
    """Scores each token by how much it belongs to a summary."""

    def __init__(self, words=200, width=32, heads=4, depth=2):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, heads, 64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.score = nn.Linear(width, 1)

    def forward(self, tokens, padding):
        hidden = self.encoder(self.words(tokens), src_key_padding_mask=padding)
        return self.score(hidden).squeeze(-1)
