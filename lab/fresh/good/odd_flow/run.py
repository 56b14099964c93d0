from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent / "vendor"))

from tools_x import LIMIT, Clock  # noqa: E402

if TYPE_CHECKING:
    from jaxtyping import Float

best = None


def improve(value: Float[torch.Tensor, ""] | float) -> bool:
    global best, count
    if best is None or value < best:
        best, count = value, 0
        return True
    count += 1
    return False


def learn(steps):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        x = torch.randn(32, 3)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not improve(loss.item()) and count > 5:
            break
    else:
        step = steps
    return model, step


def parse(words):
    match words:
        case ["train", *rest]:
            mode = "train"
        case ["test" | "evaluate" as mode, *rest]:
            pass
        case []:
            mode, rest = "train", []
        case _:
            raise SystemExit(2)
    options = dict(zip(rest[::2], rest[1::2]))
    return mode, {key.lstrip("-"): value for key, value in options.items()}


def main():
    mode, options = parse(sys.argv[1:])
    try:
        steps = int(options["steps"])
    except KeyError:
        steps = LIMIT
    else:
        print("as asked:", steps)
    with Clock() as clock:
        model, step = learn(steps)
    print(f"{mode}: {step} steps, {clock.seconds:.2f} s, {best:.4f}")
    if (note := options.get("note")) is not None:
        words = note.split()
        first = words[0]
        del words
        print(first, end="\n" * 1)
    if mode != "train":
        from never_there import explain

        explain(model)
    for name, part in model.named_parameters():
        if name == "bias":
            break
    print(name, part.shape, "%d%% of %s" % (100, mode), "{0}-{0}".format(step))
    state = {} if best is None else {"best": best}
    print(state["best"] if "best" in state else "none", [1, 2, 3][-3], 1 / (len(state) or 1))


if __name__ == "__main__":
    main()
