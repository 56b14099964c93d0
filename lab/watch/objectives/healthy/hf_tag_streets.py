"""Tags the words of addresses with a small BERT and the Trainer of Transformers."""

import os
from random import Random

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments

torch.manual_seed(6)
torch.set_num_threads(1)
random = Random(6)
PAD, SIZE, LONGEST = 0, 60, 14
TAGS = ["name", "street", "number", "city"]


def address() -> tuple[list[int], list[int]]:
    words, tags = [], []
    for tag, count in ((0, random.randint(1, 3)), (1, random.randint(1, 3)), (2, 1), (3, random.randint(1, 2))):
        for place in range(count):
            shared = random.random() < 0.4
            words.append(random.randint(1, 12) if shared else 13 + 11 * tag + random.randint(0, 10))
            tags.append(tag)
    return words, tags


class Addresses(torch.utils.data.Dataset):
    def __init__(self, count: int) -> None:
        self.rows = [address() for _ in range(count)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        words, tags = self.rows[index]
        missing = LONGEST - len(words)
        return {
            "input_ids": torch.tensor(words + [PAD] * missing),
            "attention_mask": torch.tensor([1] * len(words) + [0] * missing),
            "labels": torch.tensor(tags + [-100] * missing),
        }


def accuracy(prediction) -> dict[str, float]:
    tags = prediction.predictions.argmax(-1)
    rows = [address_tags for _, address_tags in test.rows]
    right = [np.mean(tags[at, : len(row)] == np.array(row)) for at, row in enumerate(rows)]
    return {"accuracy": float(np.mean(right))}


train, test = Addresses(480), Addresses(120)
config = BertConfig(
    vocab_size=SIZE, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=16, num_labels=len(TAGS),
)
model = BertForTokenClassification(config)
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=24, learning_rate=3e-3, logging_steps=10,
    save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, seed=6, lr_scheduler_type="linear",
    warmup_steps=8,
)
trainer = Trainer(model=model, args=arguments, train_dataset=train, eval_dataset=test, compute_metrics=accuracy)
trainer.train()
print(f"accuracy {trainer.evaluate()['eval_accuracy']:.4f}")
