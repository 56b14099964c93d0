"""Fine-tune an encoder on support tickets."""
import argparse
import json
from pathlib import Path

import numpy as np
import torch
import yaml
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding,
                          EarlyStoppingCallback, Trainer, TrainingArguments)


def merge(base, other):
    out = dict(base)
    for key, value in other.items():
        out[key] = merge(out[key], value) if isinstance(value, dict) and key in out else value
    return out


def settings():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--override", type=Path, action="append", default=[])
    args = parser.parse_args()
    config = yaml.safe_load(args.config.read_text())
    for path in args.override:
        config = merge(config, yaml.safe_load(path.read_text()))
    return config


class Tickets(torch.utils.data.Dataset):
    def __init__(self, path, tokenizer, column, labels):
        rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
        self.items = [tokenizer(row[column], truncation=True, max_length=128) for row in rows]
        for item, row in zip(self.items, rows):
            item["labels"] = labels.index(row["label"])

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def accuracy(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, -1) == prediction.label_ids).mean())}


def main():
    config = settings()
    labels = config["labels"]
    tokenizer = AutoTokenizer.from_pretrained(config["model_dir"])
    model = AutoModelForSequenceClassification.from_pretrained(config["model_dir"], num_labels=len(labels))
    sets = {name: Tickets(Path(config["data"]) / f"{name}.jsonl", tokenizer, config["text_column"], labels)
            for name in ("train", "dev", "test")}
    arguments = TrainingArguments(seed=11, **config["trainer"])
    trainer = Trainer(model, arguments, train_dataset=sets["train"], eval_dataset=sets["dev"],
                      data_collator=DataCollatorWithPadding(tokenizer), compute_metrics=accuracy,
                      callbacks=[EarlyStoppingCallback(2)])
    trainer.train()
    print(trainer.evaluate(sets["test"], metric_key_prefix="test"))
    trainer.save_model()


if __name__ == "__main__":
    main()
