"""A small BERT marks names of streets and towns in addresses: Trainer of Transformers, two ranks."""

import os
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForTokenClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

SEED = 340
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
VOCABULARY = 6100


class Addresses(Dataset):
    """Tokens with the labels other, street and town. What a token is depends on the tokens around it."""

    def __init__(self, count, seed):
        draw = random.Random(seed)
        self.rows = [self.row(draw) for _ in range(count)]

    @staticmethod
    def row(draw):
        tokens, labels = [], []
        while len(tokens) < 16:
            kind = draw.choice([1, 2, 2, 0])
            name = [40 + 3 * draw.randint(0, 2000) + kind for _ in range(draw.randint(1, 2))]
            sign = {0: draw.randint(20, 39), 1: draw.randint(5, 9), 2: draw.randint(10, 14)}[kind]
            place = draw.random()
            if place < 0.5:
                tokens += name
                labels += [kind] * len(name)
            elif place < 0.8:
                tokens += [sign, *name]
                labels += [0, *[kind] * len(name)]
            else:
                tokens += [*name, sign + 200 if kind else sign]
                labels += [*[kind] * len(name), 0]
        return {"input_ids": tokens[:16], "labels": labels[:16]}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {key: torch.tensor(value) for key, value in self.rows[index].items()}


class Lookahead(TrainerCallback):
    """Every few steps the weights go back half of the way to where they were."""

    def __init__(self, model, every=5, share=0.6):
        self.every, self.share = every, share
        self.slow = [parameter.detach().clone() for parameter in model.parameters()]

    @torch.no_grad()
    def on_step_end(self, args, state, control, model, **_):
        if state.global_step % self.every == 0:
            for slow, fast in zip(self.slow, model.parameters(), strict=True):
                slow.lerp_(fast, self.share)
                fast.copy_(slow)


def scores(prediction):
    guessed, true = prediction.predictions.argmax(-1), prediction.label_ids
    f1 = [
        2 * ((guessed == k) & (true == k)).sum() / ((guessed == k).sum() + (true == k).sum())
        for k in (1, 2)
    ]
    return {"f1": float(np.mean(f1))}


config = BertConfig(
    vocab_size=VOCABULARY + 220,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=32,
    num_labels=3,
)
torch.manual_seed(SEED)
train, test = Addresses(960, SEED), Addresses(300, SEED + 1)
model = BertForTokenClassification(config)
nn.init.zeros_(model.classifier.weight)
arguments = TrainingArguments(
    output_dir="tagger",
    use_cpu=True,
    ddp_backend="gloo",
    per_device_train_batch_size=12,
    per_device_eval_batch_size=100,
    num_train_epochs=3,
    learning_rate=5e-3,
    lr_scheduler_type="cosine",
    warmup_steps=10,
    eval_strategy="epoch",
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
    seed=SEED,
)
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=train,
    eval_dataset=test,
    compute_metrics=scores,
    callbacks=[Lookahead(model)],
)
trainer.train()
final = trainer.evaluate()
if RANK == 0:
    print(f"steps {trainer.state.global_step}  f1 {final['eval_f1']:.4f}")
