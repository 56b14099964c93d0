"""Causal language model, pretrained when a local copy is there and new otherwise."""

import inspect
import json
import os
import sys
from types import SimpleNamespace

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed


class Letters(Dataset):
    def __init__(self, text, length=32):
        codes = torch.tensor([min(ord(letter), 127) for letter in text])
        self.parts = codes[: len(codes) // length * length].view(-1, length)

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, index):
        return {"input_ids": self.parts[index], "labels": self.parts[index]}


class Print(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and logs:
            print({key: value for key, value in logs.items() if isinstance(value, (int, float))})


def load_model(folder):
    if folder and os.path.isdir(folder):
        return GPT2LMHeadModel.from_pretrained(folder)
    return GPT2LMHeadModel(GPT2Config(vocab_size=128, n_positions=64, n_embd=32, n_layer=1, n_head=2))


def training_arguments(settings):
    known = inspect.signature(TrainingArguments).parameters
    options = {
        "output_dir": settings.output,
        "max_steps": settings.steps,
        "per_device_train_batch_size": settings.batch,
        "report_to": [],
        "save_strategy": "no",
        "logging_steps": 2,
    }
    name = "eval_strategy" if "eval_strategy" in known else "evaluation_strategy"
    options[name] = "steps"
    options["eval_steps"] = 2
    if "overwrite_output_dir" in known:
        options["overwrite_output_dir"] = True
    if torch.cuda.is_available() and torch.cuda.is_bf16_supported():
        options["bf16"] = True
    return TrainingArguments(**options)


def main():
    with open(sys.argv[1] if len(sys.argv) > 1 else "run.json") as handle:
        settings = SimpleNamespace(**json.load(handle))
    set_seed(0)
    data = Letters("all work and no play makes a dull model. " * 30)
    trainer = Trainer(
        model=load_model(settings.pretrained),
        args=training_arguments(settings),
        train_dataset=data,
        eval_dataset=data,
        callbacks=[Print()],
    )
    trainer.train(resume_from_checkpoint=None)
    metrics = trainer.evaluate()
    print(metrics["eval_loss"])
    trainer.save_model(os.path.join(settings.output, "final"))


if __name__ == "__main__":
    main()
