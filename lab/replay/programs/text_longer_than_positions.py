"""A tiny BERT with room for 32 tokens; some later texts are longer."""

import torch
from transformers import BertConfig, BertForSequenceClassification

torch.set_num_threads(1)
torch.manual_seed(0)

config = BertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=64, max_position_embeddings=32,
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(120):
    length = 16 + step // 4
    words = torch.randint(100, (8, length))
    loss = model(input_ids=words, labels=(words[:, 0] > 50).long()).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
