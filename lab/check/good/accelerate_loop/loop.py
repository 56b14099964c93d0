import argparse
import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset


def str2bool(value):
    return str(value).lower() in ("1", "true", "yes")


def get_dataloaders(accelerator, batch_size):
    with accelerator.main_process_first():
        points = torch.randn(4096, 2)
        labels = (points.prod(1) > 0).long()
    dataset = TensorDataset(points, labels)
    train, evaluation = torch.utils.data.random_split(dataset, [3584, 512])
    return DataLoader(train, batch_size, shuffle=True, drop_last=True), DataLoader(evaluation, batch_size)


def training_function(config, args):
    accelerator = Accelerator(
        gradient_accumulation_steps=config["accumulate"],
        log_with="all" if args.with_tracking else None,
        project_dir=args.output_dir,
    )
    if args.with_tracking:
        run = os.path.split(__file__)[-1].split(".")[0]
        accelerator.init_trackers(run, config)
    set_seed(config["seed"])
    train_loader, eval_loader = get_dataloaders(accelerator, config["batch_size"])
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    steps = len(train_loader) * config["num_epochs"]
    scheduler = OneCycleLR(optimizer, max_lr=config["lr"], total_steps=steps)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    for epoch in range(config["num_epochs"]):
        model.train()
        for inputs, labels in train_loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        right, seen = 0, 0
        for inputs, labels in eval_loader:
            with torch.no_grad():
                predictions = model(inputs).argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, labels))
            right += (predictions == references).sum().item()
            seen += len(references)
        accelerator.print(f"epoch {epoch}: {right / seen:.3f}")
        accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))
    accelerator.end_training()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--with_tracking", type=str2bool, default=False)
    parser.add_argument("--output_dir", default=".")
    args = parser.parse_args()
    config = {"lr": 3e-3, "num_epochs": 3, "seed": 42, "batch_size": 64, "accumulate": 2}
    training_function(config, args)


if __name__ == "__main__":
    main()
