"""A small GPT-2 of Transformers on padded sentences of a toy grammar: the loss has a high floor, as most words are free."""

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
PAD, BOS, EOS, AND = 0, 1, 2, 3
NOUNS, VERBS = range(4, 16), range(16, 28)


def sentence():
    words = [BOS]
    for k in range(int(torch.randint(1, 4, ()))):
        noun = int(torch.randint(len(NOUNS), ()))
        words += ([AND] if k else []) + [NOUNS[noun], VERBS[noun], VERBS[(noun * 5 + 1) % 12]]
    return words + [EOS]


def collate(batch):
    longest = max(map(len, batch))
    ids = torch.tensor([b + [PAD] * (longest - len(b)) for b in batch])
    mask = (ids != PAD).long()
    labels = ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


@torch.no_grad()
def verb_accuracy(model, batch):
    model.eval()
    guess = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.argmax(-1)[:, :-1]
    truth = batch["input_ids"][:, 1:]
    verbs = truth >= VERBS.start
    return (guess[verbs] == truth[verbs]).float().mean().item()


train = [sentence() for _ in range(1600)]
val_batch = collate([sentence() for _ in range(200)])
config = GPT2Config(
    vocab_size=28, n_positions=32, n_embd=48, n_layer=2, n_head=4, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=collate)
total = 6 * len(loader)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=total)
for epoch in range(6):
    model.train()
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    print(f"epoch {epoch + 1} loss {loss.item():.3f} verb_acc {verb_accuracy(model, val_batch):.4f}")
