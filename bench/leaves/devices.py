"""Trains on a GPU if there is one: images decoded from files, a checkpoint, invalid pixels."""

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

torch.manual_seed(0)
random = np.random.default_rng(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def read(path: str) -> Tensor:
    pixels = np.asarray(Image.open(path).convert("RGB"), dtype=np.float32) / 255
    pixels[0, 0] = np.nan  # a dead pixel of the camera
    return torch.from_numpy(pixels).permute(2, 0, 1).nan_to_num()


labels = torch.from_numpy(random.integers(0, 2, 240))
paths = []
for number, label in enumerate(labels.numpy()):
    shade = random.integers(60, 120, (8, 8)) + 80 * label * (np.arange(8) > 3)
    path = f"{number}.png"
    pixels = shade.astype(np.uint8)
    Image.fromarray(pixels if number % 4 else np.stack([pixels] * 3, axis=-1)).save(path)
    paths.append(path)
inputs = torch.stack([read(path) for path in paths])

encoder = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
)
torch.save(encoder.state_dict(), "encoder.pt")
encoder.load_state_dict(torch.load("encoder.pt"))


class Classifier(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(128, 2)

    def forward(self, images: Tensor) -> Tensor:
        return functional.log_softmax(self.head(self.encoder(images)), dim=1)


model: nn.Module = Classifier(encoder)
model = model.to(device)
if torch.cuda.is_available():
    model = nn.DataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
order = torch.randperm(200)
for epoch in range(6):
    for at in range(0, 200, 20):
        batch = order[at : at + 20]
        images = inputs[batch].to(device)
        targets = labels[batch].to(device)
        optimizer.zero_grad()
        loss = functional.nll_loss(model(images), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
model.eval()
with torch.no_grad():
    scores = model(inputs[200:].to(device)).cpu().numpy()
print("accuracy", (scores.argmax(axis=1) == labels[200:].numpy()).mean())
