"""A small masked language model of Transformers; a batch in which nothing is masked has no loss."""

import torch
from transformers import BertConfig, BertForMaskedLM

torch.set_num_threads(1)

config = BertConfig(
    vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=16,
)
model = BertForMaskedLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(1500):
    words = torch.randint(5, 60, (4, 8))
    masked = torch.rand(words.shape) < 0.12
    labels = words.masked_fill(~masked, -100)
    loss = model(input_ids=words.masked_fill(masked, 3), labels=labels).loss
    if torch.isnan(loss):
        raise ValueError(f"loss is NaN in step {step}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
