import sys
from ast import literal_eval

import torch
from torch import nn

width = 16
depth = 2
steps = 60
learning_rate = 1e-3
compile_model = False
out = "model.pt"
config_keys = [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, (int, float, bool, str))]
for argument in sys.argv[1:]:
    if "=" not in argument:
        exec(open(argument).read())
    else:
        key, value = argument.removeprefix("--").split("=")
        if key not in globals():
            raise ValueError(f"Unknown config key: {key}")
        try:
            value = literal_eval(value)
        except (SyntaxError, ValueError):
            pass
        globals()[key] = value
config = {k: globals()[k] for k in config_keys}

layers = [nn.Linear(3, width)]
for _ in range(depth):
    layers += [nn.GELU(), nn.Linear(width, width)]
model = nn.Sequential(*layers, nn.GELU(), nn.Linear(width, 1))
if compile_model:
    model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), learning_rate)
for step in range(steps):
    x = torch.randn(batch_size, 3)
    loss = (model(x) - x.sin().sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
torch.save({"model": model.state_dict(), "config": config}, out)
print(config, loss.item())
