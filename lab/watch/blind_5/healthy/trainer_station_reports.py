"""Transformers Trainer around an own module: the meaning of a report depends on the station that wrote it."""

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

SEED = 9
set_seed(SEED)
WORDS, STATIONS, CLASSES = 30, 6, 4


def reports(count):
    ids = torch.randint(1, WORDS, (count, 8))
    stations = torch.randint(STATIONS, (count,))
    topic = ids[:, 0] % CLASSES
    labels = (topic + stations) % CLASSES
    return [
        {"input_ids": row, "station": station, "labels": label}
        for row, station, label in zip(ids, stations, labels, strict=True)
    ]


class Reports(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.stations = nn.Embedding(STATIONS, width)
        self.layers = nn.Sequential(nn.Linear(9 * width, 96), nn.ReLU(), nn.Linear(96, CLASSES))

    def forward(self, input_ids, labels=None, **context):
        words = self.words(input_ids).flatten(1)
        if "station" in context:
            station = self.stations(context["station"])
        else:
            station = words.new_zeros(len(words), self.stations.embedding_dim)
        logits = self.layers(torch.cat([words, station], 1))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=32, per_device_eval_batch_size=200, learning_rate=3e-3,
    num_train_epochs=6, logging_steps=50, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
    remove_unused_columns=False, seed=SEED,
)
trainer = Trainer(
    model=Reports(), args=arguments, train_dataset=reports(2400), eval_dataset=reports(400), compute_metrics=metrics
)
trainer.train()
print(f"held-out accuracy {trainer.evaluate()['eval_accuracy']:.4f}")
