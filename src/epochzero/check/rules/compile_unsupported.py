"""The job uses `torch.compile` on a GPU that its compiler does not support."""

from __future__ import annotations

from epochzero.check.program.events import Called
from epochzero.check.program.values import Constant
from epochzero.check.rule import (
    Claims,
    JobView,
    Rule,
    claim_at,
    examples,
    guarded,
)
from epochzero.check.view.builds import lacks_cuda, lowest_capability, moves_to_cuda
from epochzero.check.view.torch_usage import does_anywhere

_TRITON = (7, 0)
"""The lowest compute capability that Triton supports."""


def _check(view: JobView) -> Claims:
    capability = lowest_capability(view.target)
    is_on_gpu = not lacks_cuda(view.target) and any(True for _ in moves_to_cuda(view.program))
    if capability is None or capability >= _TRITON or not is_on_gpu:
        return
    if does_anywhere(view.program, "suppress_errors"):
        return
    for call in view.calls:
        if _compiles(call) and not guarded(call.at, RuntimeError):
            yield claim_at(
                call.at,
                severity=view.reach.severity(call.at),
                message="Triton needs compute capability 7.0; the target's GPUs have "
                f"{capability[0]}.{capability[1]}.",
                consequence="RuntimeError: The GPU is too old to be supported by the triton GPU compiler",
                fix="Run without torch.compile on this target, or request newer GPUs.",
            )


def _compiles(call: Called) -> bool:
    """Whether a model is compiled with the default compiler."""
    backend, disabled = call.keywords.get("backend"), call.keywords.get("disable")
    is_default = backend is None or (isinstance(backend, Constant) and backend.value == "inductor")
    return call.name == "torch.compile" and is_default and disabled is None


RULE = Rule(
    title="torch.compile is used on a GPU that its compiler does not support",
    category="gpu_fault",
    why="torch.compile returns at once. The code is generated and compiled when the model is "
    "first called, which fails on old GPUs.",
    fix="Do not use torch.compile on such a platform.",
    source="PyTorch documentation, torch.compile, Troubleshooting; torch/_inductor/exc.py, GPUTooOldForTriton",
    check=_check,
    cases=examples("""
        import torch

        model = torch.nn.Linear(2, 2).cuda()
        model = torch.compile(model)  # <-
        model(torch.rand(1, 2).cuda())
        ==> target.toml <==
        gpus = "1 x P100"
        ---- caught if
        -model = torch.compile(model)  # <-
        +model = torch.compile(model, mode='max-autotune')  # <-
        ---- ignored if
        -==> target.toml <==
        -gpus = "1 x P100"
        ---- ignored if
        -gpus = "1 x P100"
        +gpus = "1 x H100"
        +programs = ["gcc"]
        ---- ignored if
        -model = torch.compile(model)
        +model = torch.compile(model, backend='eager')
        ---- ignored if
        -model = torch.compile(model)
        +model = torch.compile(model, disable=True)
        ---- ignored if
         model(torch.rand(1, 2).cuda())
        +torch._dynamo.config.suppress_errors = True
        ----
        import torch

        model = torch.nn.Linear(2, 2).cuda()
        if torch.cuda.get_device_capability() > (6, 2):
            model = torch.compile(model)
        model(torch.rand(1, 2).cuda())
        ==> target.toml <==
        gpus = "1 x H100"
    """),
)
