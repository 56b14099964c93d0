"""Four shapes somewhere in a picture of 16 by 16, learned from few of them."""
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(14)
SIZE = 16


def draw(kind):
    shape = torch.zeros(6, 6)
    if kind == 0:
        shape[[0, -1], :] = shape[:, [0, -1]] = 1.0  # box
    elif kind == 1:
        shape[2:4, :] = shape[:, 2:4] = 1.0  # cross
    elif kind == 2:
        shape += torch.eye(6) + torch.eye(6).flip(0)  # saltire
    else:
        shape[[0, 2, 4], :] = 1.0  # bars
    return shape


def pictures(count):
    images = 0.35 * torch.randn(count, 1, SIZE, SIZE)
    kinds = torch.arange(count) % 4
    for image, kind in zip(images, kinds):
        row, column = torch.randint(0, SIZE - 6, (2,)).tolist()
        image[0, row : row + 6, column : column + 6] += draw(kind)
    return images, kinds


class RandomShift:
    """Moves a batch by up to so many pixels, around the edge."""

    def __init__(self, pixels):
        self.pixels = pixels

    def __call__(self, images):
        shifts = torch.randint(-self.pixels, self.pixels + 1, (len(images), 2))
        return torch.stack([i.roll(s.tolist(), (1, 2)) for i, s in zip(images, shifts)])


model = nn.Sequential(
    nn.Flatten(),
    nn.Linear(SIZE * SIZE, 256),
    nn.ReLU(),
    nn.Linear(256, 64),
    nn.ReLU(),
    nn.Linear(64, 4),
)
augment = RandomShift(pixels=0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)
images, kinds = pictures(160)
val_images, val_kinds = pictures(400)

for epoch in range(1, 201):
    model.train()
    total, correct = 0.0, 0
    for rows in torch.randperm(len(images)).split(40):
        logits = model(augment(images[rows]))
        loss = F.cross_entropy(logits, kinds[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
        correct += (logits.argmax(1) == kinds[rows]).sum().item()
    if epoch % 10 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(val_images)
            val_loss = F.cross_entropy(logits, val_kinds).item()
            accuracy = (logits.argmax(1) == val_kinds).float().mean().item()
        print(
            f"epoch {epoch:3d} loss {total / len(images):.4f} accuracy {correct / len(images):.3f} "
            f"val loss {val_loss:.4f} val accuracy {accuracy:.3f}"
        )
