"""Names in telegraphic messages, tagged word by word with a small DistilBERT and the Trainer of Transformers; words have one or two pieces."""

import os

os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
import torch
import torch.nn.functional as F
from transformers import DistilBertConfig, DistilBertForTokenClassification, Trainer, TrainerCallback, TrainingArguments, set_seed

set_seed(6)
rng = np.random.default_rng(6)
LABELS = ["O", "PERSON", "PLACE"]
PAD, CLS, SEP = 0, 1, 2
FILLERS, TITLES, INS, NAMES = range(3, 40), range(40, 46), range(46, 52), range(52, 90)


def message():
    words, tags = [], []
    for _ in range(rng.integers(3, 7)):
        kind = rng.integers(3)
        if kind == 0:
            words.append([int(rng.choice(FILLERS))])
            tags.append(0)
            continue
        lead = TITLES if kind == 1 else INS
        words.append([int(rng.choice(lead))])
        tags.append(0)
        words.append([int(p) for p in rng.choice(NAMES, rng.integers(1, 3))])
        tags.append(int(kind))
    return words, tags


def encode(words, tags):
    ids, labels = [CLS], [-100]
    for pieces, tag in zip(words, tags):
        ids += pieces
        labels += [tag] + [-100] * (len(pieces) - 1)
    return {"input_ids": ids + [SEP], "labels": labels + [-100]}


def collate(features):
    width = max(len(f["input_ids"]) for f in features)
    def fill(name, value):
        return torch.tensor([f[name] + [value] * (width - len(f[name])) for f in features])
    ids = fill("input_ids", PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": fill("labels", -100)}


class TaggingTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs["labels"]
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        logits = outputs.logits
        loss = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100)
        return (loss, outputs) if return_outputs else loss


def metrics(prediction):
    true = prediction.label_ids
    guess = prediction.predictions.argmax(-1)
    counted = true != -100
    names = counted & (true > 0)
    hits = ((guess == true) & names).sum()
    f1 = 2 * hits / (names.sum() + (counted & (guess > 0)).sum())
    return {"f1": float(f1), "accuracy": float((guess == true)[counted].mean())}


class Show(TrainerCallback):
    def on_evaluate(self, args, state, control, metrics, **kwargs):
        print(f"step {state.global_step} loss {metrics['eval_loss']:.4f} f1 {metrics['eval_f1']:.4f}")


@torch.no_grad()
def tag(model, words):
    """A tag for each word of a message: that of its first piece."""
    ids = [CLS] + [piece for pieces in words for piece in pieces] + [SEP]
    starts = np.cumsum([1] + [len(pieces) for pieces in words[:-1]])
    logits = model.eval()(input_ids=torch.tensor([ids])).logits[0]
    return logits.argmax(-1)[torch.tensor(starts)].tolist()


train = [encode(*message()) for _ in range(1200)]
messages = [message() for _ in range(300)]
test = [encode(*one) for one in messages]
config = DistilBertConfig(vocab_size=90, max_position_embeddings=32, dim=48, n_layers=2, n_heads=4, hidden_dim=96, num_labels=3)
model = DistilBertForTokenClassification(config)
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=16, per_device_eval_batch_size=100, learning_rate=2e-3,
    warmup_steps=20, eval_strategy="epoch", save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, logging_steps=1000,
)
trainer = TaggingTrainer(
    model=model, args=arguments, train_dataset=train, eval_dataset=test, data_collator=collate, compute_metrics=metrics,
    callbacks=[Show()],
)
trainer.train()
right = [guess == truth for words, tags in messages for guess, truth in zip(tag(model, words), tags)]
print(f"words tagged rightly: {np.mean(right):.4f}")
