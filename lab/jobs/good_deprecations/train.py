import warnings
import numpy as np
import torch
warnings.simplefilter("always")

model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.Linear(10, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
scaler = torch.cuda.amp.GradScaler()                       # deprecated, and there is no CUDA here
criterion = torch.nn.MSELoss(reduce=True)
scheduler.step()                                           # before the optimizer: torch warns
for epoch in range(3):
    with torch.cuda.amp.autocast():
        out = model(torch.randn(8, 10))
    loss = criterion(out, torch.zeros(8, 1))               # broadcast: torch warns
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    optimizer.step()
    scheduler.step(epoch)
    print("epoch", epoch, "loss", loss.item())
mean = np.mean([])                                         # numpy warns, gives nan
ratio = np.float32(1) / np.float32(0)
print("mean of nothing:", mean, "ratio:", ratio)
torch.save(model, "model.pt")
