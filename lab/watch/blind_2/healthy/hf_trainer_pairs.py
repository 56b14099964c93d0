"""The Trainer of Transformers with a BERT from scratch on pairs of sequences that have the same or another topic."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(3)
CLS, SEP, PAD = 1, 2, 0
TOPICS = 4


class Pairs(Dataset):
    def __init__(self, n, rng):
        self.rows = []
        for _ in range(n):
            a = rng.integers(TOPICS)
            label = int(rng.integers(2))
            b = a if label else (a + rng.integers(1, TOPICS)) % TOPICS
            words = lambda topic: list(3 + topic * 8 + rng.integers(0, 8, size=5))
            first, second = words(a), words(b)
            ids = [CLS, *first, SEP, *second, SEP]
            types = [0] * 7 + [1] * 6
            self.rows.append((ids, types, label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, types, label = self.rows[i]
        return {
            "input_ids": torch.tensor(ids, dtype=torch.long),
            "token_type_ids": torch.tensor(types, dtype=torch.long),
            "labels": torch.tensor(label),
        }


def compute_metrics(pred):
    return {"accuracy": float((np.argmax(pred.predictions, -1) == pred.label_ids).mean())}


rng = np.random.default_rng(3)
config = BertConfig(
    vocab_size=36,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=16,
    num_labels=2,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=32,
    per_device_eval_batch_size=100,
    num_train_epochs=8,
    learning_rate=1e-3,
    warmup_steps=60,
    lr_scheduler_type="linear",
    eval_strategy="epoch",
    logging_steps=25,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=args,
    train_dataset=Pairs(2000, rng),
    eval_dataset=Pairs(400, rng),
    compute_metrics=compute_metrics,
)
trainer.train()
print(f"eval_accuracy {trainer.evaluate()['eval_accuracy']:.4f}")
