"""Token tags with a small DistilBERT; the loss is weighted in a subclass of the trainer."""
import argparse
import json
import os
import random

import numpy as np
import torch
from transformers import (DistilBertConfig, DistilBertForTokenClassification, EarlyStoppingCallback, Trainer,
                          TrainerCallback, TrainingArguments, set_seed)

LABELS = ["O", "LOW", "HIGH"]


class Numbers(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.rows = [[rng.randrange(3, 50) for _ in range(rng.randint(4, 14))] for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids = self.rows[i]
        return {"input_ids": ids, "labels": [0 if v < 20 else 1 if v < 40 else 2 for v in ids]}


def collate(rows):
    longest = max(len(r["input_ids"]) for r in rows)
    def pad(name, value):
        return torch.tensor([r[name] + [value] * (longest - len(r[name])) for r in rows])
    ids = pad("input_ids", 0)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": pad("labels", -100)}


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = torch.tensor([0.5, 1.0, 2.0], device=outputs.logits.device)
        loss = torch.nn.functional.cross_entropy(outputs.logits.flatten(0, 1), labels.flatten(), weight=weight,
                                                 ignore_index=-100)
        inputs["labels"] = labels
        return (loss, {"loss": loss, **outputs}) if return_outputs else loss


def only_logits(logits, labels):
    logits = logits[0] if isinstance(logits, (tuple, list)) else logits
    return logits.argmax(-1)


def metrics(p):
    known = p.label_ids != -100
    guess, truth = p.predictions[known], p.label_ids[known]
    out = {"accuracy": float((guess == truth).mean())}
    for k, name in enumerate(LABELS):
        found = ((guess == k) & (truth == k)).sum()
        out[name.lower()] = float(found / max((truth == k).sum(), 1))
    return out


class Lines(TrainerCallback):
    def __init__(self, path):
        self.path = path

    def on_log(self, args, state, control, logs=None, **kwargs):
        with open(self.path, "a") as f:
            f.write(json.dumps({"step": state.global_step, **(logs or {})}) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--out", default="tag-out")
    args = p.parse_args()
    set_seed(1)
    config = DistilBertConfig(vocab_size=50, dim=32, n_layers=2, n_heads=2, hidden_dim=64, num_labels=3,
                              max_position_embeddings=32, output_hidden_states=True,
                              id2label=dict(enumerate(LABELS)), label2id={n: i for i, n in enumerate(LABELS)})
    model = DistilBertForTokenClassification(config)
    os.makedirs(args.out, exist_ok=True)
    arguments = TrainingArguments(args.out, num_train_epochs=args.epochs, per_device_train_batch_size=16,
                                  learning_rate=1e-3, eval_strategy="epoch", save_strategy="epoch",
                                  save_total_limit=1, load_best_model_at_end=True, logging_steps=20,
                                  metric_for_best_model="high", report_to=[], remove_unused_columns=False)
    trainer = Weighted(model, arguments, data_collator=collate, train_dataset=Numbers(300, 0),
                       eval_dataset=Numbers(80, 1), compute_metrics=metrics,
                       preprocess_logits_for_metrics=only_logits,
                       callbacks=[EarlyStoppingCallback(5), Lines(os.path.join(args.out, "log.jsonl"))])
    trainer.train()
    result = trainer.predict(Numbers(40, 2))
    print(result.metrics["test_accuracy"], np.asarray(result.predictions).shape)
    trainer.save_model(os.path.join(args.out, "best"))
    again = DistilBertForTokenClassification.from_pretrained(os.path.join(args.out, "best"))
    print(again.config.id2label[2], trainer.state.best_metric)


if __name__ == "__main__":
    main()
