"""A checkpoint contains objects other than weights, but only weights are loaded."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from epochzero.check.checkpoints import loads_of, refused_globals
from epochzero.check.program.events import Called
from epochzero.check.program.values import Constant
from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
    guarded,
)
from epochzero.check.torch_usage import does_anywhere

_LEFT_TO_THE_VARIABLE = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def _check(program: Program, target: Target) -> Claims:
    if does_anywhere(program, "add_safe_globals", "safe_globals"):
        return
    for loaded in loads_of(program, target):
        call = loaded.call
        refused = [refused_globals(held) for held in loaded.held]
        if not loaded.sure or not all(refused) or not _only_weights(call, program, target):
            continue
        if guarded(call.at, RuntimeError, Exception):
            continue
        yield claim_at(
            call.at,
            severity=Reach.of(program).severity(call.at),
            message="torch.load accepts only weights here, but the checkpoint contains "
            f"{refused[0][0]}: {loaded.held[0].said_by}.",
            consequence="_pickle.UnpicklingError: Weights only load failed. Unsupported global: GLOBAL "
            f"{refused[0][0]} was not an allowed global by default.",
            fix="Save only state_dict() and plain numbers. If you trust the file, load it with "
            "weights_only=False.",
        )


def _only_weights(call: Called, program: Program, target: Target) -> bool:
    """Whether a call certainly loads only weights: by its argument, or by the default since torch 2.6."""
    weights_only_value = call.keywords.get("weights_only")
    if weights_only_value is not None:
        return isinstance(weights_only_value, Constant) and weights_only_value.value is True
    forced = _LEFT_TO_THE_VARIABLE in {*program.job.environment, *(target.environment or ())}
    return call.complete and not forced and "pickle_module" not in call.keywords and _is_new(target)


def _is_new(target: Target) -> bool:
    torch = (target.distributions or {}).get("torch")
    try:
        return torch is not None and Version(torch.version) >= Version("2.6")
    except InvalidVersion:
        return False


_MODEL = "import argparse\nimport torch\n\nmodel = torch.nn.Linear(2, 2)\n"
_ARGUMENTS = (
    f"{_MODEL}args = argparse.ArgumentParser().parse_args()\n"
    "torch.save({'model': model.state_dict(), 'args': args}, 'last.pt')\n"
)
_LOAD = "state = torch.load('last.pt')\n"
_NEW = 'distributions = { torch = "2.7.1" }\n'
_OLD = 'distributions = { torch = "2.5.1" }\n'

RULE = Rule(
    title="A checkpoint contains objects other than weights, but only weights are loaded",
    category="framework_api_misuse",
    why="Since PyTorch 2.6, torch.load rejects everything except tensors, numbers, texts and "
    "containers of them. A checkpoint that contains the parsed arguments, a NumPy array or a "
    "whole model can be written but not loaded.",
    fix="Save state_dict() and plain values, or load files that you trust with "
    "weights_only=False.",
    source="PyTorch 2.6 release notes, Flip default of torch.load to weights_only=True; documentation of "
    "torch.serialization",
    check=_check,
    catches=(
        Case({"train.py": _ARGUMENTS + _LOAD}, target=_NEW, line=7),
        Case({"train.py": f"{_MODEL}torch.save(model, 'last.pt')\n{_LOAD}"}, target=_NEW, line=6),
        Case({"train.py": f"{_MODEL}import numpy as np\ntorch.save({{'best': np.mean([1, 2])}}, 'last.pt')\n{_LOAD}"},
             target=_NEW, line=7),
        Case({"train.py": _ARGUMENTS + "torch.load('last.pt', weights_only=True)\n"}, line=7),
        Case({"train.py": f"{_MODEL}class Net(torch.nn.Module):\n    pass\n\n\ntorch.save(Net(), 'last.pt')\n{_LOAD}"},
             target=_NEW, line=10),
    ),
    leaves=(
        Case({"train.py": _ARGUMENTS + _LOAD}, target=_OLD),
        Case({"train.py": _ARGUMENTS + _LOAD}),
        Case({"train.py": _ARGUMENTS + "torch.load('last.pt', weights_only=False)\n"}, target=_NEW),
        Case({"train.py": _ARGUMENTS.replace("'args': args", "'args': vars(args)") + _LOAD}, target=_NEW),
        Case({"train.py": f"{_MODEL}torch.save({{'model': model.state_dict(), 'epoch': 3}}, 'last.pt')\n{_LOAD}"},
             target=_NEW),
        Case({"train.py": f"{_ARGUMENTS}torch.serialization.add_safe_globals([argparse.Namespace])\n{_LOAD}"},
             target=_NEW),
        Case({"train.py": f"{_ARGUMENTS}{_LOAD}"}, target=_NEW,
             command=("env", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1", "python", "train.py")),
        Case({"train.py": f"{_MODEL}import numpy as np\ntorch.save({{'best': float(np.mean([1, 2]))}}, 'last.pt')\n"
              f"{_LOAD}"}, target=_NEW),
    ),
)  # fmt: skip
