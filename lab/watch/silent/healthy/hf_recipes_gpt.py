"""A tiny GPT-2 from scratch with the Trainer of Transformers, on made-up recipes of several lengths."""

import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

random.seed(4)
torch.manual_seed(4)
steps = ["mix", "fold", "bake", "chill", "whisk", "pour"]
things = ["flour", "eggs", "milk", "sugar", "butter", "salt", "cocoa"]
words = ["<pad>", "<end>", "then", "the", *steps, *things]
number = {word: index for index, word in enumerate(words)}


def recipe():
    parts = []
    for _ in range(random.randint(2, 7)):
        step = random.choice(steps)
        parts += [
            step,
            "the",
            things[(steps.index(step) + random.choice((0, 0, 0, 1))) % 7],
            "then",
        ]
    return [number[word] for word in [*parts[:-1], "<end>"]]


class Recipes(torch.utils.data.Dataset):
    def __init__(self, count):
        self.items = [recipe() for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(items):
    longest = max(map(len, items))
    ids = torch.tensor([one + [0] * (longest - len(one)) for one in items])
    mask = (ids != 0).long()
    labels = ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


config = GPT2Config(
    vocab_size=len(words),
    n_positions=32,
    n_embd=48,
    n_layer=2,
    n_head=4,
    bos_token_id=1,
    eos_token_id=1,
)
model = GPT2LMHeadModel(config)
arguments = TrainingArguments(
    "out",
    per_device_train_batch_size=16,
    num_train_epochs=4,
    learning_rate=2e-3,
    warmup_steps=20,
    logging_steps=50,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
    eval_strategy="epoch",
)
trainer = Trainer(
    model, arguments, train_dataset=Recipes(800), eval_dataset=Recipes(100), data_collator=collate
)
trainer.train()
print("loss", trainer.evaluate()["eval_loss"])
