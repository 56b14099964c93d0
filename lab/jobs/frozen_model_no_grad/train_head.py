"""Linear probing: freeze the encoder, train only the classification head."""
import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 64))
head = nn.Linear(64, 4)
model = nn.Sequential(encoder, head)

for parameter in model.parameters():
    parameter.requires_grad = False

trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
print(f"trainable parameters: {trainable} of {sum(p.numel() for p in model.parameters())}")

optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
features = torch.randn(128, 20)
labels = torch.randint(4, (128,))
for epoch in range(5):
    logits = model(features)
    loss = nn.functional.cross_entropy(logits, labels)
    print(f"epoch {epoch}: loss={loss.item():.4f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
