"""A small GPT-2 that answers requests such as "c4" with "cccc" and has to know when it is done."""
import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel

SEED = 79
random.seed(SEED)
torch.manual_seed(SEED)
TEXT = "abcdefghij123456:"
IDS = {letter: number for number, letter in enumerate(TEXT)}
END = PAD = len(TEXT)


def request():
    letter, count = random.choice("abcdefghij"), random.randint(1, 6)
    other = random.choice("abcdefghij")
    return f"{letter}{count}{other}:", letter * count + other


def collate(pairs):
    """Ids, mask and labels; the request and the padding are no labels."""
    rows = [[IDS[letter] for letter in asked + answer] + [END] for asked, answer in pairs]
    length = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (length - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    labels = ids.clone()
    labels[mask == 0] = -100
    for number, (asked, _) in enumerate(pairs):
        labels[number, : len(asked)] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


@torch.no_grad()
def answer(model, asked, limit=12):
    ids = [IDS[letter] for letter in asked]
    found = []
    for _ in range(limit):
        following = model(torch.tensor([ids + found])).logits[0, -1].argmax().item()
        if following == END:
            break
        found.append(following)
    return "".join(TEXT[number] for number in found)


config = GPT2Config(
    vocab_size=len(TEXT) + 1, n_positions=24, n_embd=48, n_layer=2, n_head=4,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=END, eos_token_id=END,
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=260)
for step in range(260):
    batch = collate([request() for _ in range(32)])
    loss = model(**batch).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 52 == 51:
        print(f"step {step + 1}: loss {loss.item():.4f}")
model.eval()
asked = [request() for _ in range(60)]
print(f"answers that are right: {sum(answer(model, question) == wanted for question, wanted in asked) / len(asked):.4f}")
