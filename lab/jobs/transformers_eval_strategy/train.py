import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class Toy(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        return {"input_ids": torch.full((8,), i % 50), "labels": torch.tensor(i % 2)}


args = TrainingArguments(
    output_dir="out",
    num_train_epochs=2,
    save_strategy="epoch",
    load_best_model_at_end=True,
    metric_for_best_model="eval_loss",
    use_cpu=True,
    report_to=[],
)
model = DistilBertForSequenceClassification(DistilBertConfig(vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=32))
Trainer(model=model, args=args, train_dataset=Toy(), eval_dataset=Toy()).train()
