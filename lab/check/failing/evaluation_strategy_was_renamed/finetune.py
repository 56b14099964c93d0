"""Trainer over a synthetic classification task."""

import argparse

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

from small_model import SmallClassifier


class Sequences(Dataset):
    """Sequences whose class is whether their first token is odd."""

    def __init__(self, count, length=24, vocabulary=1000, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(0, vocabulary, (count, length), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {"input_ids": ids, "labels": ids[0] % 2}


def metrics(prediction):
    labels = prediction.label_ids
    return {"accuracy": float((prediction.predictions.argmax(-1) == labels).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", default="out")
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    settings = TrainingArguments(
        output_dir=args.output_dir,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=args.batch_size,
        evaluation_strategy="epoch",
        save_strategy="epoch",
        learning_rate=5e-4,
        report_to=[],
    )
    trainer = Trainer(
        model=SmallClassifier(),
        args=settings,
        train_dataset=Sequences(4000),
        eval_dataset=Sequences(500, seed=1),
        compute_metrics=metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
