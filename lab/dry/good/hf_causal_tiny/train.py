from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer
from transformers import TrainingArguments
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXT = ["the cell divides", "the enzyme binds the cell", "a protein folds", "the protein binds a ligand"] * 30


def tokenizer():
    raw = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.train_from_iterator(TEXT, trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]", "[EOS]"]))
    return PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]")


class Sentences(Dataset):
    def __init__(self, tok):
        self.rows = [tok(text)["input_ids"] + [tok.eos_token_id] for text in TEXT]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index]}


def main():
    tok = tokenizer()
    config = GPT2Config(vocab_size=len(tok), n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)
    model = GPT2LMHeadModel(config)
    arguments = TrainingArguments("lm", max_steps=20, per_device_train_batch_size=8, report_to=[], use_cpu=True, save_steps=10)
    trainer = Trainer(model, arguments, train_dataset=Sentences(tok), data_collator=DataCollatorForLanguageModeling(tok, mlm=False))
    trainer.train()
    assert Path("lm/checkpoint-20/model.safetensors").exists()
    trainer.train(resume_from_checkpoint="lm/checkpoint-10")
    model = GPT2LMHeadModel.from_pretrained("lm/checkpoint-20").eval()
    out = model.generate(torch.tensor([tok("the")["input_ids"]]), max_new_tokens=5, pad_token_id=1)
    print(tok.decode(out[0]))


if __name__ == "__main__":
    main()
