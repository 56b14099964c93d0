"""CUDA_VISIBLE_DEVICES hides GPUs that the job uses, or names some that are not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from epochzero.check.builds import moves_to_cuda
from epochzero.check.findings import Finding
from epochzero.check.program.events import Called
from epochzero.check.program.model import Program
from epochzero.check.reach import Reach
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.situation import finding_at, guarded
from epochzero.check.rules.world import said_at, visible
from epochzero.check.target.model import Target

__all__ = ["RULE"]

_SCRIPT = "import torch\n\ntorch.cuda.set_device(0)\n"
_TWO_GPUS = 'gpus = "2 x H100"\n'


def _check(program: Program, target: Target) -> Iterable[Finding]:
    names = visible(program.job)
    if names is None:
        return
    said = f"CUDA_VISIBLE_DEVICES={program.job.environment['CUDA_VISIBLE_DEVICES']}"
    if not names:
        reach = Reach.of(program)
        for call in _needs_one(program):
            # What stands under a condition mostly asks whether there is a GPU.
            if reach.severity(call.at) == "error" and not guarded(call.at, RuntimeError):
                yield finding_at(
                    call.at,
                    "visible-devices",
                    "gpu_fault",
                    severity="error",
                    message=f"{said} hides all GPUs, and {call.name} needs one.",
                    consequence="RuntimeError: No CUDA GPUs are available",
                    fix="Leave CUDA_VISIBLE_DEVICES unset, or name the GPUs that the job may use.",
                )
                return
    if target.gpus is None:
        return
    missing = [name for name in names if name.isdigit() and int(name) >= len(target.gpus)]
    if missing:
        shown = f"{len(target.gpus)} GPU{'s' * (len(target.gpus) != 1)}"
        yield Finding(
            "visible-devices",
            "error",
            "gpu_fault",
            "initialization",
            said_at(program.job, "CUDA_VISIBLE_DEVICES"),
            f"{said} names GPU {missing[0]}, and a node of the target has {shown}.",
            "CUDA ignores that GPU and all after it: no GPU, or fewer than the processes need",
            "Name GPUs by the numbers that the target has, or leave the variable to the scheduler.",
        )


def _needs_one(program: Program) -> Iterator[Called]:
    """Calls that fail without a GPU; none where the program chooses its GPUs itself."""
    if not any(one.name == "CUDA_VISIBLE_DEVICES" and one.stored for one in program.lookups):
        yield from moves_to_cuda(program)
        yield from (call for call in program.calls if call.name == "torch.cuda.init")


RULE = Rule(
    id="visible-devices",
    title="CUDA_VISIBLE_DEVICES does not fit the GPUs that are there",
    category="gpu_fault",
    why="The variable is copied from a shared workstation, where it chose a free GPU, into a job "
    "that gets GPUs of its own. CUDA drops numbers that do not exist without a word.",
    fix="Leave CUDA_VISIBLE_DEVICES to the scheduler.",
    source="CUDA C++ Programming Guide, section 'CUDA Environment Variables'",
    check=_check,
    catches=(
        Case(
            {"train.py": _SCRIPT},
            target=_TWO_GPUS,
            command=("env", "CUDA_VISIBLE_DEVICES=4,5", "python", "train.py"),
            line=0,
            path="<command>",
        ),
        Case(
            {"train.py": _SCRIPT},
            command=("env", "CUDA_VISIBLE_DEVICES=", "python", "train.py"),
            line=3,
        ),
        Case(
            {"train.py": "import torch\n\nmodel = torch.nn.Linear(2, 2)\nmodel.to('cuda')\n"},
            command=("env", "CUDA_VISIBLE_DEVICES=-1", "python", "train.py"),
            line=4,
        ),
    ),
    leaves=(
        Case(
            {"train.py": _SCRIPT},
            target=_TWO_GPUS,
            command=("env", "CUDA_VISIBLE_DEVICES=0,1", "python", "train.py"),
        ),
        Case(
            {"train.py": _SCRIPT},
            command=("env", "CUDA_VISIBLE_DEVICES=4,5", "python", "train.py"),
        ),
        Case(
            {"train.py": f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n{_SCRIPT}"},
            command=("env", "CUDA_VISIBLE_DEVICES=", "python", "train.py"),
        ),
        Case(
            {
                "train.py": "import torch\n\nif torch.cuda.is_available():\n    torch.ones(2).cuda()\n"
            },
            command=("env", "CUDA_VISIBLE_DEVICES=", "python", "train.py"),
        ),
        Case(
            {"train.py": "import torch\nprint(torch.cuda.is_available())\n"},
            command=("env", "CUDA_VISIBLE_DEVICES=", "python", "train.py"),
        ),
    ),
)
