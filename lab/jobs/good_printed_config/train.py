import json
import pathlib

import torch


def load(path):
    text = pathlib.Path(path).read_text()
    print("Experiment configuration:")
    print(text)
    return json.loads(text)


def main():
    config = load("experiment.json")
    torch.manual_seed(config["seed"])
    model = torch.nn.GRU(8, config["model"]["hidden"], batch_first=True)
    opt = torch.optim.SGD(model.parameters(), lr=config["optimizer"]["lr"])
    for epoch in range(config["epochs"]):
        out, _ = model(torch.randn(16, 12, 8))
        loss = out.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(json.dumps({"epoch": epoch, "loss": round(loss.item(), 5), "errors": 0, "failed_batches": 0}))
    print("exit status: 0")


main()
