import argparse
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader

from ocr import LineDataset, LineNet
from ocr.render import ALPHABET


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = LineNet(len(ALPHABET)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ctc = nn.CTCLoss(zero_infinity=True)
    loader = DataLoader(LineDataset(), batch_size=args.batch, num_workers=4)
    for step, (images, targets) in enumerate(itertools.islice(loader, args.steps)):
        output = model(images.to(device)).transpose(0, 1)
        inputs = torch.full((len(images),), output.shape[0], dtype=torch.long)
        lengths = torch.full((len(images),), targets.shape[1], dtype=torch.long)
        loss = ctc(output, targets.to(device), inputs, lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, f"{loss.item():.3f}")
    torch.save(model.state_dict(), "/outputs/ocr.pt")


if __name__ == "__main__":
    main()
