"""A checkpoint contains objects other than weights, but only weights are loaded."""

from epochzero.check.program.events import LibraryCall
from epochzero.check.program.values import Constant
from epochzero.check.rule import Claims, JobView, Program, Rule, Target, claim_at, guarded
from epochzero.check.view.api import installed, reached
from epochzero.check.view.checkpoints import loads_of, refused_globals

_LEFT_TO_THE_VARIABLE = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def _check(view: JobView) -> Claims:
    if view.does_anywhere("add_safe_globals", "safe_globals"):
        return
    for loaded in loads_of(view.program, view.target):
        call = loaded.call
        refused = [refused_globals(held) for held in loaded.held]
        if (
            not loaded.sure
            or not all(refused)
            or not _only_weights(call, view.program, view.target)
        ):
            continue
        if guarded(call.at, RuntimeError, Exception):
            continue
        yield claim_at(
            call.at,
            severity=view.reach.severity(call.at),
            message="torch.load accepts only weights here, but the checkpoint contains "
            f"{refused[0][0]}: {loaded.held[0].evidence}.",
            consequence="_pickle.UnpicklingError: Weights only load failed. Unsupported global: GLOBAL "
            f"{refused[0][0]} was not an allowed global by default.",
        )


def _only_weights(call: LibraryCall, program: Program, target: Target) -> bool:
    """Whether a call certainly loads only weights: by its argument, or by the default since torch 2.6."""
    weights_only_value = call.keywords.get("weights_only")
    if weights_only_value is not None:
        return isinstance(weights_only_value, Constant) and weights_only_value.value is True
    forced = _LEFT_TO_THE_VARIABLE in {*program.job.environment, *(target.environment or ())}
    return call.complete and not forced and "pickle_module" not in call.keywords and _is_new(target)


def _is_new(target: Target) -> bool:
    torch = installed(target, "torch")
    return bool(torch) and reached(torch, "2.6")


RULE = Rule(
    category="framework_api_misuse",
    why="Since PyTorch 2.6, torch.load accepts only tensors, numbers, strings and containers of "
    "these types by default. A program can save a checkpoint with the parsed arguments, a NumPy "
    "array or a whole model. By default, torch.load rejects such a checkpoint.",
    fix="Save only state_dict() and plain numbers. If you trust the file, load it with "
    "weights_only=False.",
    source="PyTorch 2.6 release notes, Flip default of torch.load to weights_only=True; documentation of "
    "torch.serialization",
    check=_check,
    examples="""
        import argparse
        import torch

        model = torch.nn.Linear(2, 2)
        args = argparse.ArgumentParser().parse_args()
        torch.save({'model': model.state_dict(), 'args': args}, 'last.pt')
        state = torch.load('last.pt')  # <-
        ==> target.toml <==
        distributions = { torch = "2.7.1" }
        ---- caught if
        -args = argparse.ArgumentParser().parse_args()
        -torch.save({'model': model.state_dict(), 'args': args}, 'last.pt')
        +torch.save(model, 'last.pt')
        ---- caught if
        -args = argparse.ArgumentParser().parse_args()
        -torch.save({'model': model.state_dict(), 'args': args}, 'last.pt')
        +class Net(torch.nn.Module):
        +    pass
        +
        +
        +torch.save(Net(), 'last.pt')
        ---- ignored if
        -distributions = { torch = "2.7.1" }
        +distributions = { torch = "2.5.1" }
        ---- ignored if
        -state = torch.load('last.pt')
        +torch.load('last.pt', weights_only=False)
        ---- ignored if
        -torch.save({'model': model.state_dict(), 'args': args}, 'last.pt')
        +torch.save({'model': model.state_dict(), 'args': vars(args)}, 'last.pt')
        ---- ignored if
        -args = argparse.ArgumentParser().parse_args()
        -torch.save({'model': model.state_dict(), 'args': args}, 'last.pt')
        +torch.save({'model': model.state_dict(), 'epoch': 3}, 'last.pt')
        ---- ignored if
         torch.save({'model': model.state_dict(), 'args': args}, 'last.pt')
        +torch.serialization.add_safe_globals([argparse.Namespace])
        ---- ignored if
        +$ env TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 python train.py
         import argparse
        ---- ignored if
        -args = argparse.ArgumentParser().parse_args()
        -torch.save({'model': model.state_dict(), 'args': args}, 'last.pt')
        +import numpy as np
        +torch.save({'best': float(np.mean([1, 2]))}, 'last.pt')
        ---- caught if
        -state = torch.load('last.pt')  # <-
        -==> target.toml <==
        -distributions = { torch = "2.7.1" }
        +torch.load('last.pt', weights_only=True)  # <-
    """,
)
