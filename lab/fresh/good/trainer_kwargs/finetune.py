"""Fine-tune an encoder; takes configurations of all the years."""
import argparse
import dataclasses
import inspect
import json
from pathlib import Path

import numpy as np
import torch
import transformers
import yaml
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding

RENAMED = {"evaluation_strategy": "eval_strategy", "per_gpu_train_batch_size": "per_device_train_batch_size"}


def arguments(values):
    known = {f.name: f for f in dataclasses.fields(transformers.TrainingArguments) if f.init}
    chosen = {}
    for name, value in values.items():
        name = name if name in known else RENAMED.get(name, name)
        if name not in known:
            print("ignored:", name)
            continue
        if name == "learning_rate":
            value = float(value)
        chosen[name] = value
    return transformers.TrainingArguments(**chosen)


def tokenizer_option(tokenizer):
    """The trainer's keyword was called tokenizer once."""
    names = inspect.signature(transformers.Trainer.__init__).parameters
    return {("processing_class" if "processing_class" in names else "tokenizer"): tokenizer}


class Rows(torch.utils.data.Dataset):
    def __init__(self, path, tokenizer, labels):
        self.items = []
        if not path.exists():
            return
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("label") not in labels:
                continue
            encoded = tokenizer(row["subject"], truncation=True, max_length=128)
            self.items.append({**encoded, "labels": labels.index(row["label"])})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def metrics(p):
    predictions = p.predictions[0] if isinstance(p.predictions, tuple) else p.predictions
    return {"accuracy": float((np.argmax(predictions, -1) == p.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="missing.yaml")
    config = yaml.safe_load(Path(parser.parse_args().config).read_text())
    tokenizer = AutoTokenizer.from_pretrained(config["model_dir"])
    model = AutoModelForSequenceClassification.from_pretrained(
        config["model_dir"], num_labels=len(config["labels"]))
    parts = {n: Rows(Path(config["data"], n + ".jsonl"), tokenizer, config["labels"])
             for n in ("train", "dev", "extra")}
    trainer = transformers.Trainer(model, arguments(config["trainer"]), train_dataset=parts["train"],
                                   eval_dataset=parts["dev"], compute_metrics=metrics,
                                   data_collator=DataCollatorWithPadding(tokenizer), **tokenizer_option(tokenizer))
    trainer.train()
    if len(parts["extra"]):
        print(trainer.predict(parts["extra"]).metrics)
    trainer.save_model()


if __name__ == "__main__":
    main()
