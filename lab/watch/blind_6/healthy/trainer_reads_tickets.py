"""Fine-tunes a small BERT on support tickets with the Trainer of Transformers."""
import random

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

SEED = 21
set_seed(SEED)
TEAMS = {
    "billing": ["invoice", "refund", "charged", "price", "receipt"],
    "network": ["router", "slow", "signal", "offline", "cable"],
    "account": ["password", "login", "locked", "email", "profile"],
    "device": ["screen", "battery", "broken", "button", "noise"],
}
FILLER = ["the", "my", "please", "help", "since", "again", "today", "with", "it", "is", "was", "very", "still", "and"]
words = sorted({word for team in TEAMS.values() for word in team} | set(FILLER))
vocabulary = {"[PAD]": 0, "[CLS]": 1} | {word: number for number, word in enumerate(words, 2)}


def ticket():
    label = random.randrange(len(TEAMS))
    teams = list(TEAMS.values())
    text = [random.choice(FILLER) for _ in range(random.randint(5, 9))]
    text += random.sample(teams[label], 2) + [random.choice(random.choice(teams))]
    random.shuffle(text)
    return {"text": " ".join(text), "labels": label}


class Tickets(torch.utils.data.Dataset):
    def __init__(self, count):
        self.items = [ticket() for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        item = self.items[index]
        return {"input_ids": [1, *(vocabulary[word] for word in item["text"].split())], "labels": item["labels"]}


def collate(items):
    length = max(len(item["input_ids"]) for item in items)
    ids = torch.tensor([item["input_ids"] + [0] * (length - len(item["input_ids"])) for item in items])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor([item["labels"] for item in items])}


def accuracy(prediction):
    return {"accuracy": float(np.mean(prediction.predictions.argmax(-1) == prediction.label_ids))}


config = BertConfig(
    vocab_size=len(vocabulary), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=32, num_labels=len(TEAMS), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    output_dir="tickets",
    num_train_epochs=5,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=100,
    learning_rate=2e-3,
    lr_scheduler_type="linear",
    warmup_steps=20,
    weight_decay=0.01,
    logging_steps=25,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    seed=SEED,
    use_cpu=True,
)
trainer = Trainer(
    model=model, args=arguments, data_collator=collate, train_dataset=Tickets(800), eval_dataset=Tickets(300),
    compute_metrics=accuracy,
)
trainer.train()
print(f"held-out accuracy: {trainer.evaluate()['eval_accuracy']:.4f}")
