"""Noisy parity with a configurable optimizer."""

import logging

import hydra
import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn

log = logging.getLogger(__name__)


def parity(count: int, bits: int = 12):
    x = torch.randint(0, 2, (count, bits)).float()
    return x, (x[:, :4].sum(1) % 2).long()


def make_optimizer(config: DictConfig, parameters):
    if config.name == "sgd":
        return torch.optim.SGD(parameters, lr=config.lr, momentum=config.momentum)
    if config.name == "adam":
        return torch.optim.Adam(parameters, lr=config.lr)
    raise ValueError(f"no optimizer {config.name}")


@torch.no_grad()
def accuracy(model, x, y) -> float:
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> None:
    log.info("\n%s", OmegaConf.to_yaml(config))
    torch.manual_seed(config.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(
        nn.Linear(12, config.model.hidden), nn.ReLU(), nn.Dropout(config.model.dropout),
        nn.Linear(config.model.hidden, 2),
    ).to(device)
    optimizer = make_optimizer(config.optimizer, model.parameters())
    x, y = (t.to(device) for t in parity(20_000))
    held = [t.to(device) for t in parity(2_000)]
    for epoch in range(config.training.epochs):
        model.train()
        for rows in torch.randperm(len(x), device=device).split(config.training.batch_size):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.training.clip)
            optimizer.step()
        log.info("epoch %d accuracy %.3f", epoch, accuracy(model, *held))
    torch.save(model.state_dict(), "parity.pt")


if __name__ == "__main__":
    main()
