"""Three tasks on one trunk of lazy layers: the digit, whether it has a loop, and how much ink it takes.

The losses are a dictionary; their weighted sum is trained.
Should reach: val digit accuracy of at least 0.95.
"""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(9)
torch.set_num_threads(1)
WEIGHTS = {"digit": 1.0, "loop": 0.5, "ink": 0.5}


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.LazyConv2d(16, 3, padding=1), nn.LazyBatchNorm2d(), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(64), nn.ReLU()
        )
        self.heads = nn.ModuleDict({"digit": nn.LazyLinear(10), "loop": nn.LazyLinear(1), "ink": nn.LazyLinear(1)})

    def forward(self, images):
        features = self.trunk(images)
        return {name: head(features) for name, head in self.heads.items()}


def compute_losses(outputs, targets):
    return {
        "digit": F.cross_entropy(outputs["digit"], targets["digit"]),
        "loop": F.binary_cross_entropy_with_logits(outputs["loop"].squeeze(1), targets["loop"]),
        "ink": F.mse_loss(outputs["ink"].squeeze(1), targets["ink"]),
    }


digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
ink = images.mean((1, 2, 3))
targets = {
    "digit": torch.tensor(digits.target),
    "loop": torch.tensor([label in (0, 6, 8, 9) for label in digits.target], dtype=torch.float32),
    "ink": (ink - ink.mean()) / ink.std(),
}
order = torch.randperm(len(images))
train, val = order[:1400], order[1400:]

model = MultiTask()
model(images[:2])  # gives the lazy layers their sizes
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(10):
    model.train()
    sums = dict.fromkeys(WEIGHTS, 0.0)
    for index in train[torch.randperm(len(train))].split(32):
        losses = compute_losses(model(images[index]), {name: t[index] for name, t in targets.items()})
        total = sum(WEIGHTS[name] * loss for name, loss in losses.items())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        for name, loss in losses.items():
            sums[name] += loss.item() * len(index) / len(train)
    model.eval()
    with torch.no_grad():
        outputs = model(images[val])
        accuracy = (outputs["digit"].argmax(1) == targets["digit"][val]).float().mean().item()
        ink_error = F.mse_loss(outputs["ink"].squeeze(1), targets["ink"][val]).item()
    print(f"epoch {epoch}: " + " ".join(f"{k}={v:.4f}" for k, v in sums.items()), end="  ")
    print(f"val ink mse {ink_error:.4f}  val digit accuracy {accuracy:.4f}")
