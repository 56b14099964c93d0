import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel, Trainer, TrainingArguments


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, i):
        return {"input_ids": torch.full((12,), 3 + i), "labels": torch.tensor(i % 2)}


config = BertConfig(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
BertModel(config).save_pretrained("base")
model = BertForSequenceClassification.from_pretrained("base", num_labels=2)     # a new head: transformers warns
args = TrainingArguments(output_dir="out", num_train_epochs=2, per_device_train_batch_size=4, logging_steps=3,
                         learning_rate=1e-3, fp16=False, use_cpu=True, report_to=[], save_strategy="no",
                         eval_strategy="epoch", dataloader_pin_memory=True)
trainer = Trainer(model=model, args=args, train_dataset=Data(), eval_dataset=Data())
trainer.train()
print(trainer.evaluate())
