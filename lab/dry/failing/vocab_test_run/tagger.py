"""Part-of-speech tags with a bidirectional LSTM in Lightning."""
import argparse

import lightning as L
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

IGNORE = -100


def sentences(path):
    with open(path, encoding="utf-8") as f:
        for block in f.read().strip().split("\n\n"):
            yield [tuple(line.split("\t")) for line in block.splitlines()]


class Codes:
    def __init__(self, train):
        self.words = {"<pad>": 0, "<unk>": 1}
        self.tags = {}
        for sentence in train:
            for word, tag in sentence:
                self.words.setdefault(word.lower(), len(self.words))
                self.tags.setdefault(tag, len(self.tags))

    def encode(self, sentence):
        words = torch.tensor([self.words.get(w.lower(), 1) for w, _ in sentence])
        tags = torch.tensor([self.tags[t] for _, t in sentence])
        return words, tags

    def collate(self, batch):
        words, tags = zip(*map(self.encode, batch))
        return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=IGNORE)


class Tagger(L.LightningModule):
    def __init__(self, words, tags, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, tags)
        self.right = self.seen = 0

    def forward(self, words):
        return self.out(self.lstm(self.embed(words))[0])

    def training_step(self, batch, _):
        words, tags = batch
        loss = nn.functional.cross_entropy(self(words).transpose(1, 2), tags, ignore_index=IGNORE)
        self.log("loss", loss, prog_bar=True)
        return loss

    def test_step(self, batch, _):
        words, tags = batch
        known = tags != IGNORE
        self.right += (self(words).argmax(-1)[known] == tags[known]).sum().item()
        self.seen += known.sum().item()

    def on_test_epoch_end(self):
        self.log("accuracy", self.right / self.seen)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 2e-3)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--train", required=True)
    p.add_argument("--test", required=True)
    p.add_argument("--max-epochs", type=int, default=10)
    args = p.parse_args()
    L.seed_everything(0)
    train, test = list(sentences(args.train)), list(sentences(args.test))
    codes = Codes(train)
    model = Tagger(len(codes.words), len(codes.tags))
    trainer = L.Trainer(max_epochs=args.max_epochs, logger=False, enable_checkpointing=False, accelerator="cpu")
    trainer.fit(model, DataLoader(train, 16, shuffle=True, collate_fn=codes.collate))
    trainer.test(model, DataLoader(test, 4, collate_fn=codes.collate))


if __name__ == "__main__":
    main()
