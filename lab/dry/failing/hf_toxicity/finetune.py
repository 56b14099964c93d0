import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Comments(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.ids = torch.tensor(rng.integers(5, 200, (count, 24)))
        self.labels = torch.tensor(rng.integers(0, 2, count))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "attention_mask": torch.ones(24, dtype=torch.long), "labels": self.labels[index]}


def metrics(prediction):
    labels = prediction.label_ids
    predicted = prediction.predictions.argmax(-1)
    right = (predicted == labels).sum()
    positives = ((predicted == 1) & (labels == 1)).sum()
    return {"accuracy": right / len(labels), "recall": positives / (labels == 1).sum()}


def main():
    config = BertConfig(vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    model = BertForSequenceClassification(config)
    arguments = TrainingArguments(
        output_dir="toxicity",
        num_train_epochs=2,
        per_device_train_batch_size=16,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="f1",
        report_to=[],
        use_cpu=True,
    )
    trainer = Trainer(model, arguments, train_dataset=Comments(128, 0), eval_dataset=Comments(48, 1), compute_metrics=metrics)
    trainer.train()
    trainer.save_model("toxicity/final")


if __name__ == "__main__":
    main()
