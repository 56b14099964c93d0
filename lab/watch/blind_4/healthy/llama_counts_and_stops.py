"""A very small Llama learns to count from a given number and to stop after a given number of items."""

import random

import torch
from transformers import LlamaConfig, LlamaForCausalLM

BOS, EOS, SEP, DIGIT = 0, 1, 2, 3
PAD = EOS
random.seed(11)
torch.manual_seed(11)


def problem():
    start, items = random.randrange(10), random.randrange(2, 9)
    return [BOS, DIGIT + start, DIGIT + items, SEP], [DIGIT + (start + k) % 10 for k in range(items)]


def collate(problems):
    rows = [prompt + answer + [EOS] for prompt, answer in problems]
    width = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    labels = ids.clone()
    labels[mask == 0] = -100
    return ids, mask, labels


@torch.no_grad()
def answer_of(model, prompt):
    ids = torch.tensor([prompt])
    while ids.shape[1] < 16 and ids[0, -1] != EOS:
        ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
    return ids[0, len(prompt) :].tolist()


config = LlamaConfig(
    vocab_size=13, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=32, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=None,
)
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)

for step in range(1, 301):
    ids, mask, labels = collate([problem() for _ in range(48)])
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}")

model.eval()
tests = [problem() for _ in range(80)]
right = sum(answer_of(model, prompt) == answer + [EOS] for prompt, answer in tests)
print(f"exact match {right / len(tests):.3f}")
