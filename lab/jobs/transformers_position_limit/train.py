import logging
import torch
from transformers import GPT2Config, GPT2LMHeadModel

logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(message)s")
config = GPT2Config(vocab_size=300, n_positions=128, n_embd=32, n_layer=2, n_head=2)
model = GPT2LMHeadModel(config)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
curriculum = [32, 64, 128, 256]        # sequence length grows during training
for stage, length in enumerate(curriculum):
    for step in range(3):
        ids = torch.randint(0, 300, (4, length))
        loss = model(input_ids=ids, labels=ids).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    logging.info("stage %d length %d loss %.3f", stage, length, loss.item())
