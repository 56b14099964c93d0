"""Finetunes a small BERT on reviews with the Transformers Trainer."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Reviews(Dataset):
    def __init__(self, number, seed):
        random = np.random.default_rng(seed)
        self.tokens = random.integers(5, 200, size=(number, 24))
        self.stars = (self.tokens.mean(axis=1) > 102).astype(int)

    def __len__(self):
        return len(self.stars)

    def __getitem__(self, index):
        tokens = torch.tensor(self.tokens[index])
        return {
            "input_ids": tokens,
            "attention_mask": torch.ones_like(tokens),
            "labels": torch.tensor(self.stars[index]),
        }


def measures(prediction):
    said = prediction.predictions.argmax(axis=-1)
    right = (said == prediction.label_ids).mean()
    both = ((said == 1) & (prediction.label_ids == 1)).sum()
    return {"accuracy": right, "macro_f1": 2 * both / max(said.sum() + prediction.label_ids.sum(), 1)}


config = BertConfig(
    vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
arguments = TrainingArguments(
    output_dir="output",
    num_train_epochs=3,
    per_device_train_batch_size=32,
    eval_strategy="epoch",
    save_strategy="epoch",
    load_best_model_at_end=True,
    metric_for_best_model="f1",
    report_to="none",
    use_cpu=True,
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=arguments,
    train_dataset=Reviews(320, 0),
    eval_dataset=Reviews(64, 1),
    compute_metrics=measures,
)
trainer.train()
