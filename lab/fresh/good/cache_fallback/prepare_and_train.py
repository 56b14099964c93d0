import contextlib
import logging
import os
import socket
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import torch
from torch import nn

log = logging.getLogger("prepare")
MIRRORS = ["https://example.org/weights.bin", "http://10.0.0.1/weights.bin"]


def writable_cache():
    """The first folder that takes a file."""
    for candidate in ("/data/cache", os.environ.get("CACHE_DIR"), os.path.expanduser("~/.cache/job"), None):
        folder = Path(candidate or tempfile.mkdtemp())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / ".probe"
            probe.write_bytes(b"")
            probe.unlink()
            return folder
        except OSError as error:
            log.info("%s: %s", folder, error)
    raise RuntimeError("no folder can be written")


def fetch(urls):
    socket.setdefaulttimeout(2)
    for url in urls:
        try:
            with urllib.request.urlopen(url) as answer:
                return answer.read()
        except (urllib.error.URLError, OSError, ValueError):
            continue
    return None


def features(cache):
    path = cache / "features.npy"
    with contextlib.suppress(FileNotFoundError, ValueError):
        return np.load(path)
    made = np.random.default_rng(0).normal(size=(128, 5)).astype(np.float32)
    np.save(path, made)
    return made


def git_revision():
    try:
        import subprocess

        return subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
    except Exception:
        return "unknown"


def main():
    logging.basicConfig(level=logging.INFO)
    cache = writable_cache()
    weights = fetch(MIRRORS)
    model = nn.Linear(5, 1)
    if weights is not None:
        try:
            model.load_state_dict(torch.load(weights))
        except Exception as error:
            log.warning("weights of the mirror are not used: %s", error)
    x = torch.from_numpy(features(cache))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - x[:, :1]).square().mean()
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    for target in (Path("/data/results"), Path("results"), cache):
        try:
            target.mkdir(exist_ok=True)
            torch.save(model.state_dict(), target / "linear.pt")
        except (OSError, RuntimeError):
            continue
        log.info("saved to %s at %s: %f", target, git_revision(), float(loss))
        break


if __name__ == "__main__":
    main()
