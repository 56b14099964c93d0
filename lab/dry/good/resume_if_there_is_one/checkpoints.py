import torch


def newest(folder):
    return max(folder.glob("epoch_*.pt"), default=None)


def write(path, **state):
    path.parent.mkdir(exist_ok=True)
    torch.save(state, path)


def prune(folder, keep):
    for path in sorted(folder.glob("epoch_*.pt"))[:-keep]:
        path.unlink()
