"""A frozen language model gets low-rank adapters and a new head that ranks tickets; both are stored and loaded again."""

import random

import torch
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from transformers import LlamaConfig, LlamaForSequenceClassification

random.seed(113)
torch.manual_seed(113)
WORDS, LENGTH = 60, 12


def tickets(count):
    words = torch.randint(6, WORDS, (count, LENGTH))
    level = torch.randint(0, 3, (count,))
    place = torch.randint(0, LENGTH, (count,))
    words[torch.arange(count), place] = 1 + level
    return words, level


config = LlamaConfig(
    vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=32, pad_token_id=0, num_labels=3, initializer_range=0.2,
)
base = LlamaForSequenceClassification(config)
trunk = {name: value.clone() for name, value in base.state_dict().items() if not name.startswith("score")}
adapters = LoraConfig(
    task_type=TaskType.SEQ_CLS, r=4, lora_alpha=8, lora_dropout=0.05, target_modules=["q_proj", "v_proj", "o_proj"]
)
model = get_peft_model(base, adapters)
model.print_trainable_parameters()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)

model.train()
for step in range(1, 241):
    words, level = tickets(48)
    loss = F.cross_entropy(model(input_ids=words).logits, level)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step} loss {loss.item():.4f}")

model.save_pretrained("adapter")
fresh = LlamaForSequenceClassification(config)
fresh.load_state_dict(trunk, strict=False)
served = PeftModel.from_pretrained(fresh, "adapter").eval()
with torch.no_grad():
    words, level = tickets(600)
    hits = (served(input_ids=words).logits.argmax(1) == level).float().mean().item()
print(f"accuracy {hits:.4f}")
