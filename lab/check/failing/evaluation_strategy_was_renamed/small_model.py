from torch import nn


class SmallClassifier(nn.Module):
    def __init__(self, vocabulary=1000, width=64, classes=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.encode = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, classes)

    def forward(self, input_ids, labels=None):
        _, state = self.encode(self.embed(input_ids))
        logits = self.out(state[-1])
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
