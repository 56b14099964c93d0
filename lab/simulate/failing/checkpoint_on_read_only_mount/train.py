import sys

import torch

torch.set_num_threads(1)
model = torch.nn.Linear(4, 2)
torch.save(model.state_dict(), f"{sys.argv[1]}/model.pt")
print("saved")
