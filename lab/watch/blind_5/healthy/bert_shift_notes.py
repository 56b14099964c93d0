"""A small BERT from a configuration in a plain loop: does the note of a shift end with a request? Linear warmup and decay."""

import random

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup, set_seed

SEED = 14
set_seed(SEED)
WORDS = "pump valve belt crane gate sensor motor tank oil water noise heat level line".split()
ENDINGS = [
    "please replace soon", "please check again", "replace it please now",
    "was replaced soon", "no check again", "it works please note",
]
VOCABULARY = {word: number for number, word in enumerate(["[PAD]", "[CLS]", *sorted({*WORDS, *" ".join(ENDINGS).split()})])}
EPOCHS, MAX_LENGTH = 5, 16


def note():
    kind = random.randrange(6)
    return " ".join(random.choices(WORDS, k=random.randrange(6, 11))) + " " + ENDINGS[kind], int(kind < 3)


def encode(text):
    ids = [VOCABULARY["[CLS]"], *(VOCABULARY[word] for word in text.split())][:MAX_LENGTH]
    return ids + [0] * (MAX_LENGTH - len(ids))


def collate(rows):
    ids = torch.tensor([encode(text) for text, _ in rows])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": torch.tensor([label for _, label in rows])}


model = BertForSequenceClassification(BertConfig(
    vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=MAX_LENGTH, hidden_dropout_prob=0.1, num_labels=2,
))
loader = DataLoader([note() for _ in range(1200)], batch_size=32, shuffle=True, collate_fn=collate)
held = collate([note() for _ in range(400)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=20, num_training_steps=len(loader) * EPOCHS)
for epoch in range(EPOCHS):
    model.train()
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        output = model(**held)
    accuracy = (output.logits.argmax(1) == held["labels"]).float().mean()
    print(f"epoch {epoch} loss {loss.item():.4f} val loss {output.loss.item():.4f} accuracy {accuracy:.4f}")
