from dataclasses import dataclass, field

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    set_seed,
)


@dataclass
class ModelArguments:
    hidden_size: int = field(default=32, metadata={"help": "Width of the encoder."})
    num_labels: int = field(default=3)


class Reviews(Dataset):
    def __init__(self, number, seed):
        random = np.random.default_rng(seed)
        self.tokens = random.integers(3, 150, (number, 20))
        self.stars = self.tokens[:, 0] % 3

    def __len__(self):
        return len(self.stars)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.stars[index]}


def collate(samples):
    names = samples[0].keys()
    return {name: torch.tensor(np.stack([sample[name] for sample in samples])) for name in names}


def compute_metrics(prediction):
    logits, labels = prediction
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


def main():
    model_args, training_args = HfArgumentParser(
        (ModelArguments, TrainingArguments)
    ).parse_args_into_dataclasses()
    set_seed(training_args.seed)
    config = BertConfig(
        vocab_size=150,
        hidden_size=model_args.hidden_size,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=model_args.num_labels,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=training_args,
        train_dataset=Reviews(120, 0),
        eval_dataset=Reviews(30, 1),
        data_collator=collate,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    trainer.save_model()
    metrics = trainer.evaluate()
    trainer.log_metrics("eval", metrics)
    trainer.save_metrics("eval", metrics)


if __name__ == "__main__":
    main()
