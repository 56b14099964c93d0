"""A small BERT from scratch with the Hugging Face Trainer: the intent of a generated request."""

import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(53)
INTENTS = [list(range(10 + 8 * k, 18 + 8 * k)) for k in range(6)]


class Requests(Dataset):
    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            label = random.randrange(6)
            words = random.sample(INTENTS[label], 2) + random.choices(range(60, 100), k=random.randint(2, 9))
            words.append(random.choice(INTENTS[random.randrange(6)]))
            random.shuffle(words)
            ids = [1, *words][:14]
            mask = [1] * len(ids) + [0] * (14 - len(ids))
            self.rows.append((ids + [0] * (14 - len(ids)), mask, label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, mask, label = self.rows[i]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": torch.tensor(label)}


def compute_metrics(result):
    return {"accuracy": float((np.argmax(result.predictions, axis=-1) == result.label_ids).mean())}


config = BertConfig(
    vocab_size=100, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=16, num_labels=6, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)
model = BertForSequenceClassification(config)
args = TrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=32, learning_rate=2e-3, warmup_steps=30,
    eval_strategy="epoch", logging_steps=50, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
)
trainer = Trainer(
    model=model, args=args, train_dataset=Requests(1600), eval_dataset=Requests(400), compute_metrics=compute_metrics
)
trainer.train()
print(f"eval accuracy {trainer.evaluate()['eval_accuracy']:.4f}")
