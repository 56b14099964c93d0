import sys

import torch

from rolls import PITCHES, apply, make

saved = torch.load(sys.argv[1], weights_only=True)
model = make(saved["width"], saved["heads"]).eval()
model.load_state_dict(saved["model"])
with torch.no_grad():
    p = torch.sigmoid(apply(model, torch.zeros(1, 8, PITCHES)))
print("epoch %(epoch)d width %(width)d" % saved, "entropy", float(-(p * p.log()).sum()))
