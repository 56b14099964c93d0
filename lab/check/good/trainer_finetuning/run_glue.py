import csv
import logging
import os
import sys
from dataclasses import dataclass, field
from typing import Optional

import numpy as np
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    set_seed,
)

logger = logging.getLogger(__name__)


@dataclass
class ModelArguments:
    model_name_or_path: str = field(metadata={"help": "model or path"})
    cache_dir: Optional[str] = field(default=None)


@dataclass
class DataArguments:
    train_file: Optional[str] = field(default=None)
    validation_file: Optional[str] = field(default=None)
    max_length: int = field(default=128)

    def __post_init__(self):
        if self.train_file is None:
            raise ValueError("a training file is needed")


class Sentences(torch.utils.data.Dataset):
    def __init__(self, path, tokenizer, max_length):
        with open(path, newline="", encoding="utf-8") as handle:
            self.rows = list(csv.DictReader(handle))
        self.tokenizer = tokenizer
        self.max_length = max_length

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        encoded = self.tokenizer(row["sentence"], truncation=True, max_length=self.max_length, padding="max_length")
        return {**encoded, "labels": int(row["label"])}


def compute_metrics(prediction):
    return {"accuracy": float(np.mean(prediction.predictions.argmax(-1) == prediction.label_ids))}


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        model_args, data_args, training_args = parser.parse_json_file(json_file=os.path.abspath(sys.argv[1]))
    else:
        model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    logging.basicConfig(level=logging.INFO)
    set_seed(training_args.seed)
    tokenizer = AutoTokenizer.from_pretrained(model_args.model_name_or_path, cache_dir=model_args.cache_dir)
    model = AutoModelForSequenceClassification.from_pretrained(
        model_args.model_name_or_path, num_labels=2, cache_dir=model_args.cache_dir
    )
    train_set = Sentences(data_args.train_file, tokenizer, data_args.max_length)
    eval_set = train_set
    if data_args.validation_file is not None:
        eval_set = Sentences(data_args.validation_file, tokenizer, data_args.max_length)
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train_set if training_args.do_train else None,
        eval_dataset=eval_set if training_args.do_eval else None,
        compute_metrics=compute_metrics,
        processing_class=tokenizer,
    )
    if training_args.do_train:
        result = trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)
        trainer.save_model()
        trainer.log_metrics("train", result.metrics)
    if training_args.do_eval:
        metrics = trainer.evaluate()
        trainer.save_metrics("eval", metrics)
        logger.info("%s", metrics)


if __name__ == "__main__":
    main()
