"""A tiny BERT from scratch under the Trainer: are there more animals or more plants in the sentence?

Should reach: final accuracy of at least 0.95.
"""

import os

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

torch.set_num_threads(1)
set_seed(0)
PAD, CLS, ANIMALS, PLANTS, OTHERS, WORDS = 0, 1, (2, 14), (14, 26), (26, 50), 50


class Sentences(Dataset):
    """Sentences of 6 to 14 words; a third of the words are animals or plants."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(count):
            length = rng.integers(6, 15)
            winners = rng.integers(1, 4)
            losers = rng.integers(0, winners)
            label = int(rng.integers(2))
            kinds = [ANIMALS] * winners + [PLANTS] * losers if label == 0 else [PLANTS] * winners + [ANIMALS] * losers
            kinds += [OTHERS] * (length - len(kinds))
            words = [rng.integers(*kind) for kind in kinds]
            rng.shuffle(words)
            ids = [CLS, *words] + [PAD] * (14 - length)
            mask = [1] * (1 + length) + [0] * (14 - length)
            self.items.append({"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": label})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


config = BertConfig(
    vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=16, num_labels=2, pad_token_id=PAD,
)
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=32, per_device_eval_batch_size=200,
    learning_rate=2e-3, warmup_steps=30, weight_decay=0.01, eval_strategy="epoch", save_strategy="no",
    logging_steps=25, report_to=[], use_cpu=True, disable_tqdm=True, seed=0,
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=arguments,
    train_dataset=Sentences(2000, seed=0),
    eval_dataset=Sentences(400, seed=1),
    compute_metrics=compute_metrics,
)
trainer.train()
metrics = trainer.evaluate()
print(f"final loss {metrics['eval_loss']:.4f} final accuracy {metrics['eval_accuracy']:.4f}")
