"""Handwritten digits with bfloat16 autocast, a gradient scaler and two batches a step."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(21)
images, digits = load_digits(return_X_y=True)
images = torch.tensor(images).float().view(-1, 1, 8, 8) / 16 - 0.5
digits = torch.tensor(digits)
order = torch.randperm(len(digits))
images, digits = images[order], digits[order]

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(512, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=40)
accumulate = 2

for epoch in range(5):
    model.train()
    for number, part in enumerate(torch.randperm(1500).split(25)):
        with torch.autocast("cpu", torch.bfloat16):
            scores = model(images[part])
            loss = nn.functional.cross_entropy(scores.float(), digits[part]) / accumulate
        scaler.scale(loss).backward()
        if (number + 1) % accumulate == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.inference_mode():
        right = (model(images[1500:]).argmax(1) == digits[1500:]).float().mean()
    print(f"epoch {epoch} loss {accumulate * loss.item():.3f} accuracy {right.item():.3f}")
