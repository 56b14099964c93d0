"""A thousand products, each known from twelve noisy photos of its features: a wide softmax, few examples a class.

Should reach: val accuracy of at least 0.75; guessing gives 0.001. The loss starts at log 1000 = 6.9.
"""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
torch.set_num_threads(1)
PRODUCTS, FEATURES, PHOTOS = 1000, 64, 12

style = torch.randn(PRODUCTS, 16) @ torch.randn(16, FEATURES) / 4
y_train = torch.arange(PRODUCTS).repeat(PHOTOS)
y_val = torch.arange(PRODUCTS).repeat(2)
x_train = style[y_train] + 0.9 * torch.randn(len(y_train), FEATURES)
x_val = style[y_val] + 0.9 * torch.randn(len(y_val), FEATURES)

model = nn.Sequential(
    nn.Linear(FEATURES, 256),
    nn.LayerNorm(256),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(256, PRODUCTS),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
steps = 10 * (len(x_train) // 200)
warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=60)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps - 60)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, cosine], milestones=[60])

for epoch in range(10):
    model.train()
    epoch_loss = []
    for rows in torch.randperm(len(x_train)).split(200):
        loss = F.cross_entropy(model(x_train[rows]), y_train[rows], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        epoch_loss.append(loss.item())
    model.eval()
    with torch.inference_mode():
        logits = model(x_val)
        val_loss = F.cross_entropy(logits, y_val)
        top1 = (logits.argmax(1) == y_val).float().mean()
    print(f"epoch {epoch}: loss {sum(epoch_loss) / len(epoch_loss):.3f}, val loss {val_loss:.3f}, val accuracy {top1:.4f}")
