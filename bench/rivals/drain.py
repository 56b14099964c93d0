"""Drain3: mines the templates of all lines. It names no cause; its speed is what is compared."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

__all__ = ["available", "mine", "version"]

_MASKS = (
    (r"((?<=[^A-Za-z0-9])|^)(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})((?=[^A-Za-z0-9])|$)", "IP"),
    (r"((?<=[^A-Za-z0-9])|^)(0x[a-fA-F0-9]+)((?=[^A-Za-z0-9])|$)", "HEX"),
    (r"((?<=[^A-Za-z0-9])|^)([\-\+]?\d+(?:[.:]\d+)*(?:E[+-]?\d+)?)((?=[^A-Za-z0-9])|$)", "NUM"),
)


def available() -> bool:
    """Whether Drain3 is installed."""
    return importlib.util.find_spec("drain3") is not None


def version() -> str:
    """The installed version, or "not run"."""
    return importlib.metadata.version("drain3") if available() else "not run"


def mine(path: Path) -> int:
    """The number of templates in a log."""
    drain3: Any = importlib.import_module("drain3")
    masking: Any = importlib.import_module("drain3.masking")
    configuration: Any = importlib.import_module("drain3.template_miner_config")
    config = configuration.TemplateMinerConfig()
    config.masking_instructions = [masking.MaskingInstruction(*mask) for mask in _MASKS]
    miner = drain3.TemplateMiner(config=config)
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            miner.add_log_message(line.rstrip())
    return len(miner.drain.clusters)
