import torch

torch.set_num_threads(1)
model = torch.nn.Linear(4096, 4096, bias=False).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
model(torch.ones(1, 4096, device="cuda")).sum().backward()
optimizer.step()
print("one step")
