"""Sentence classifier from scratch with the Hugging Face Trainer."""

from dataclasses import dataclass, field

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    HfArgumentParser,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

GOOD = ["great film", "lovely acting", "what a joy", "great music and lovely light"]
BAD = ["dull film", "poor acting", "what a bore", "dull music and poor light"]


@dataclass
class DataOptions:
    words: int = field(default=200, metadata={"help": "size of the vocabulary"})
    repeats: int = field(default=20)
    keep_best: bool = field(default=False)


def train_tokenizer(sentences, words):
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(
        sentences, trainers.WordLevelTrainer(vocab_size=words, special_tokens=special)
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]",
        cls_token="[CLS]", sep_token="[SEP]",
    )


class Sentences(Dataset):
    def __init__(self, tokenizer, texts, labels):
        self.items = [
            {**tokenizer(text, truncation=True, max_length=32), "labels": label}
            for text, label in zip(texts, labels)
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def compute_metrics(prediction):
    guesses = np.argmax(prediction.predictions, axis=-1)
    return {"accuracy": float((guesses == prediction.label_ids).mean())}


def trainer_arguments(options, training, tokenizer, texts, labels):
    data = Sentences(tokenizer, texts, labels)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, num_labels=2,
    )
    return {
        "model": BertForSequenceClassification(config),
        "args": training,
        "train_dataset": data,
        "eval_dataset": data,
        "data_collator": DataCollatorWithPadding(tokenizer),
        "compute_metrics": compute_metrics,
        "tokenizer": tokenizer,
    }


def main():
    options, training = HfArgumentParser((DataOptions, TrainingArguments)).parse_args_into_dataclasses()
    texts = (GOOD + BAD) * options.repeats
    labels = ([1] * len(GOOD) + [0] * len(BAD)) * options.repeats
    tokenizer = train_tokenizer(texts, options.words)
    trainer = Trainer(**trainer_arguments(options, training, tokenizer, texts, labels))
    trainer.train()
    metrics = trainer.evaluate()
    trainer.log_metrics("eval", metrics)
    trainer.save_model()


if __name__ == "__main__":
    main()
