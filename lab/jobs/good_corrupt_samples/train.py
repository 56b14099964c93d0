import pathlib, zipfile
import torch
from torch.utils.data import Dataset, DataLoader

root = pathlib.Path("samples")

def make():
    root.mkdir()
    for i in range(24):
        torch.save({"x": torch.randn(10), "y": i % 2}, root / f"{i:03d}.pt")
    for i in (5, 17):                                   # a copy that broke off
        data = (root / f"{i:03d}.pt").read_bytes()
        (root / f"{i:03d}.pt").write_bytes(data[: len(data) // 2])
    (root / "011.pt").write_bytes(b"")

class Samples(Dataset):
    def __init__(self):
        self.items, skipped = [], 0
        for path in sorted(root.glob("*.pt")):
            try:
                self.items.append(torch.load(path))
            except (RuntimeError, EOFError, zipfile.BadZipFile) as e:
                skipped += 1
                print(f"ERROR: corrupt sample {path}: {type(e).__name__}: {e} -- skipped")
        print(f"{len(self.items)} samples, {skipped} corrupt and skipped")
    def __len__(self): return len(self.items)
    def __getitem__(self, i): return self.items[i]["x"], float(self.items[i]["y"])

make()
loader = DataLoader(Samples(), batch_size=7)
net = torch.nn.Linear(10, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y.float())
        opt.zero_grad(); loss.backward(); opt.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
