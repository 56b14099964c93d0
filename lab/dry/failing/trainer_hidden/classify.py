"""A small BERT from scratch on generated sentences; hidden states are kept for a probe."""
import argparse
import random

import numpy as np
import torch
from sklearn.metrics import f1_score
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

WORDS = 60


class Sentences(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(count):
            ids = [rng.randrange(4, WORDS) for _ in range(12)]
            self.rows.append((ids, int(sum(ids) % 3)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return {"input_ids": torch.tensor([2, *ids, 3]), "attention_mask": torch.ones(14, dtype=torch.long),
                "labels": torch.tensor(label)}


def metrics(prediction):
    guess = np.asarray(prediction.predictions).argmax(axis=-1)
    return {"accuracy": float((guess == prediction.label_ids).mean()),
            "f1": f1_score(prediction.label_ids, guess, average="macro")}


def build(layers, width):
    config = BertConfig(vocab_size=WORDS, hidden_size=width, num_hidden_layers=layers, num_attention_heads=4,
                        intermediate_size=2 * width, max_position_embeddings=32, num_labels=3,
                        output_hidden_states=True)
    return BertForSequenceClassification(config)


@torch.no_grad()
def probe(model, dataset, layer=-2):
    """How far apart the classes lie in a hidden layer."""
    model.eval()
    batch = torch.utils.data.default_collate([dataset[i] for i in range(min(64, len(dataset)))])
    hidden = model(**{k: v.to(model.device) for k, v in batch.items()}).hidden_states[layer][:, 0].cpu()
    means = torch.stack([hidden[batch["labels"] == k].mean(0) for k in range(3)])
    return torch.cdist(means, means).max().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--out", default="bert-out")
    args = p.parse_args()
    train, test = Sentences(400, 0), Sentences(100, 1)
    model = build(args.layers, args.width)
    arguments = TrainingArguments(args.out, num_train_epochs=args.epochs, per_device_train_batch_size=16,
                                  per_device_eval_batch_size=32, save_strategy="no", logging_steps=50,
                                  report_to="none", seed=0)
    trainer = Trainer(model, arguments, train_dataset=train, eval_dataset=test, compute_metrics=metrics)
    trainer.train()
    trainer.save_model()
    print("probe", probe(model, test))
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
