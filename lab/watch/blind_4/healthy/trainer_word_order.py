"""Transformers Trainer on a small BERT from a configuration: which of two persons acts on the other?"""

import random

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(4)
random.seed(4)
CLS, ANN, BOB, VERBS, FILL = 1, 2, 3, range(4, 10), range(10, 40)


def sentence():
    first, second = random.sample([ANN, BOB], 2)
    body = [random.choice(FILL) for _ in range(random.randrange(3))] + [first, random.choice(VERBS), second]
    body += [random.choice(FILL) for _ in range(random.randrange(3))]
    return {"input_ids": [CLS, *body], "label": int(first == ANN)}


def collate(rows):
    width = max(len(row["input_ids"]) for row in rows)
    ids = torch.tensor([row["input_ids"] + [0] * (width - len(row["input_ids"])) for row in rows])
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "position_ids": torch.arange(width).expand_as(ids),
        "labels": torch.tensor([row["label"] for row in rows]),
    }


def metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


train, held = [sentence() for _ in range(2400)], [sentence() for _ in range(400)]
config = BertConfig(
    vocab_size=40, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=2,
)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=32, per_device_eval_batch_size=200, learning_rate=2e-3,
    num_train_epochs=3, lr_scheduler_type="linear", warmup_steps=20, logging_steps=25, save_strategy="no",
    report_to=[], disable_tqdm=True, use_cpu=True, seed=4, remove_unused_columns=False,
)
trainer = Trainer(
    model=model, args=arguments, train_dataset=train, eval_dataset=held, data_collator=collate, compute_metrics=metrics
)
trainer.train()
print(f"held-out accuracy {trainer.evaluate()['eval_accuracy']:.4f}")
