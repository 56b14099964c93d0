import logging
from pathlib import Path

import hydra
import torch
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

log = logging.getLogger(__name__)


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg: DictConfig) -> float:
    log.info(OmegaConf.to_yaml(cfg))
    torch.manual_seed(cfg.seed)
    model = instantiate(cfg.model)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.trainer.lr)
    if "note" in cfg:
        log.info("note: %s", cfg.note)
    loss = torch.tensor(float("inf"))
    for step in range(cfg.trainer.max_steps):
        x = torch.randn(64, 4)
        loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % cfg.trainer.get("log_every", 20) == 0:
            log.info("step %d loss %.4f", step, loss)
    folder = Path(cfg.trainer.out)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"model": model.state_dict(), "cfg": OmegaConf.to_container(cfg)}, folder / "last.pt")
    return float(loss)


if __name__ == "__main__":
    main()
