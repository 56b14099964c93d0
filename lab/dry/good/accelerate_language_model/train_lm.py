import math

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_scheduler


def main():
    accelerator = Accelerator(gradient_accumulation_steps=2)
    torch.manual_seed(0)
    blocks = torch.randint(0, 100, (96, 32))
    train = DataLoader([{"input_ids": b, "labels": b} for b in blocks[:80]], batch_size=8, shuffle=True)
    valid = DataLoader([{"input_ids": b, "labels": b} for b in blocks[80:]], batch_size=8)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=32, n_embd=32, n_layer=2, n_head=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    epochs = 2
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=2, num_training_steps=epochs * len(train))
    model, optimizer, train, valid, scheduler = accelerator.prepare(model, optimizer, train, valid, scheduler)
    for epoch in range(epochs):
        model.train()
        for batch in train:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        losses = []
        for batch in valid:
            with torch.no_grad():
                losses.append(accelerator.gather_for_metrics(model(**batch).loss.repeat(len(batch["labels"]))))
        perplexity = math.exp(torch.cat(losses).mean().item())
        accelerator.print(f"epoch {epoch}: perplexity {perplexity:.2f}")
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained("model", save_function=accelerator.save)


if __name__ == "__main__":
    main()
