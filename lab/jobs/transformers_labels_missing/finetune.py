"""Fine-tune a tiny BERT from scratch on two classes with the Trainer."""
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Reviews(torch.utils.data.Dataset):
    def __init__(self, n=64):
        self.ids = torch.randint(5, 500, (n, 16))
        self.stars = torch.randint(0, 2, (n,))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "stars": self.stars[i]}


config = BertConfig(vocab_size=500, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=64, num_labels=2)
model = BertForSequenceClassification(config)
args = TrainingArguments(output_dir="out", num_train_epochs=1, per_device_train_batch_size=8,
                         logging_steps=4, report_to=[], use_cpu=True, save_strategy="no")
Trainer(model=model, args=args, train_dataset=Reviews()).train()
