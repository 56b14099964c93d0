"""A tiny GPT-2 from scratch under the Trainer learns to add three digits; gradient accumulation and clipping by arguments.

Only the answer counts in the loss: the question's labels are -100.
Should reach: exact answers of at least 0.90 on sums not seen in training.
"""

import os

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

torch.set_num_threads(1)
set_seed(0)
# Tokens: 0 to 22 numbers, 23 plus, 24 equals, 25 end. Three numbers of 0 to 7 are added.
PLUS, EQUALS, END, LARGEST = 23, 24, 25, 7


def example(a, b, c):
    ids = torch.tensor([a, PLUS, b, PLUS, c, EQUALS, a + b + c, END])
    labels = ids.clone()
    labels[:6] = -100
    return {"input_ids": ids, "labels": labels}


numbers = range(LARGEST + 1)
everything = [example(a, b, c) for a in numbers for b in numbers for c in numbers]
order = torch.randperm(len(everything), generator=torch.Generator().manual_seed(0)).tolist()
train_set = [everything[i] for i in order[:440]]
test_set = [everything[i] for i in order[440:]]

model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=26, n_positions=8, n_embd=64, n_layer=2, n_head=4, bos_token_id=END, eos_token_id=END,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.05,
    )
)
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=30, per_device_train_batch_size=22, gradient_accumulation_steps=2,
    learning_rate=4e-3, weight_decay=0.2, max_grad_norm=1.0, warmup_steps=30, lr_scheduler_type="cosine",
    logging_steps=50, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, seed=0,
)
trainer = Trainer(model=model, args=arguments, train_dataset=train_set, eval_dataset=test_set)
trainer.train()

model.eval()
with torch.no_grad():
    ids = torch.stack([e["input_ids"] for e in test_set])
    answers = model(ids[:, :6]).logits[:, -1].argmax(-1)
print(f"test loss {trainer.evaluate()['eval_loss']:.4f}")
print(f"exact answers {(answers == ids[:, 6]).float().mean().item():.4f}")
