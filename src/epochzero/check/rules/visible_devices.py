"""CUDA_VISIBLE_DEVICES does not match the available GPUs."""

from collections.abc import Iterable, Iterator

from epochzero.check.program.events import LibraryCall, Lookup
from epochzero.check.rule import (
    Claim,
    Claims,
    JobView,
    Program,
    Reach,
    Rule,
    claim_at,
    claim_at_start,
    guarded,
)
from epochzero.check.rules.world import chosen, said_at, visible
from epochzero.check.view.builds import moves_to_cuda

_STARTS = frozenset(
    [
        "torch.cuda.current_device",
        "torch.cuda.device_count",
        "torch.cuda.get_device_name",
        "torch.cuda.get_device_properties",
        "torch.cuda.init",
        "torch.cuda.is_available",
        "torch.cuda.set_device",
    ]
)
"""Calls that initialize the CUDA driver, which reads the variable once."""


def _check(view: JobView) -> Claims:
    own = chosen(view.program)
    if own is not None:
        yield from _hidden(view.program, *own)
        return
    names = visible(view.job)
    if names is None:
        return
    setting = f"CUDA_VISIBLE_DEVICES={view.job.environment['CUDA_VISIBLE_DEVICES']}"
    if not names:
        yield from _needed(view.program, setting, view.calls)
        return
    if view.target.gpus is None:
        return
    missing = [name for name in names if name.isdigit() and int(name) >= len(view.target.gpus)]
    if missing:
        shown = f"{len(view.target.gpus)} GPU{'s' * (len(view.target.gpus) != 1)}"
        yield claim_at_start(
            said_at(view.job, "CUDA_VISIBLE_DEVICES"),
            message=f"{setting} names GPU {missing[0]}, but a node of the target has {shown}.",
            consequence="CUDA ignores that GPU and all after it: the job sees no GPU, or fewer than its "
            "processes need",
            fix="Use the GPU indices of the target, or leave the variable to the scheduler.",
        )


def _hidden(program: Program, names: tuple[str, ...] | None, store: Lookup) -> Iterator[Claim]:
    """Problems with the GPUs that the program itself selects."""
    at = list(program.events).index(store)
    before, after = program.events[:at], program.events[at:]
    moves = {id(call) for call in moves_to_cuda(program)}
    asked = [
        value
        for value in before
        if isinstance(value, LibraryCall) and (value.name in _STARTS or id(value) in moves)
    ]
    if asked:
        yield claim_at(
            store.at,
            severity="warning",
            message="CUDA_VISIBLE_DEVICES is set too late: CUDA reads it earlier, at "
            f"{asked[0].at.place.path}:{asked[0].at.place.line}, in {asked[0].name}.",
            consequence="The job uses the first GPU, where another job may run",
            fix="Set it before the job first uses CUDA, preferably in the environment of the "
            "command.",
        )
    elif names == ():
        yield from _needed(
            program,
            "The program itself",
            [value for value in after if isinstance(value, LibraryCall)],
        )


def _needed(program: Program, who: str, calls: Iterable[LibraryCall]) -> Iterator[Claim]:
    """The first of these calls that needs a GPU while all are hidden."""
    reach = Reach.of(program)
    needing = {id(call) for call in moves_to_cuda(program)}
    for call in calls:
        # A condition around such code usually tests for a GPU.
        needs = id(call) in needing or call.name == "torch.cuda.init"
        if needs and reach.severity(call.at) == "error" and not guarded(call.at, RuntimeError):
            yield claim_at(
                call.at,
                severity="error",
                message=f"{who} hides all GPUs, but {call.name} needs one.",
                consequence="RuntimeError: No CUDA GPUs are available",
                fix="Leave CUDA_VISIBLE_DEVICES unset, or set it to the GPUs that the job may use.",
            )
            return


RULE = Rule(
    category="gpu_fault",
    why="Users often set CUDA_VISIBLE_DEVICES on a shared workstation to select a free GPU. Such a "
    "setting is often copied into a job that has its own GPUs. CUDA silently drops indices that do "
    "not exist. CUDA reads the variable only once, so later changes have no effect.",
    fix="Let the scheduler set CUDA_VISIBLE_DEVICES.",
    source="CUDA C++ Programming Guide, section 'CUDA Environment Variables'",
    check=_check,
    examples="""
        $ env CUDA_VISIBLE_DEVICES=4,5 python train.py  # <-
        import torch

        torch.cuda.set_device(0)
        ==> target.toml <==
        gpus = "2 x H100"
        ---- ignored if
        -$ env CUDA_VISIBLE_DEVICES=4,5 python train.py
        +$ env CUDA_VISIBLE_DEVICES=0,1 python train.py
        ---- ignored if
        -==> target.toml <==
        -gpus = "2 x H100"
        ----
        $ env CUDA_VISIBLE_DEVICES=-1 python train.py
        import torch

        model = torch.nn.Linear(2, 2)
        model.to('cuda')  # <-
        ----
        import os
        import torch

        print(torch.cuda.is_available())


        def main(gpu):
            os.environ['CUDA_VISIBLE_DEVICES'] = str(gpu)  # <-


        main(2)
        ----
        import os
        os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
        import torch

        torch.cuda.set_device(0)  # <-
        ---- ignored if
        +$ env CUDA_VISIBLE_DEVICES= python train.py
         import os
        @@
        -os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
        +os.environ['CUDA_VISIBLE_DEVICES'] = '0'
        ---- ignored if
        -torch.cuda.set_device(0)
        +if torch.cuda.is_available():
        +    torch.cuda.set_device(0)
        ----
        $ env CUDA_VISIBLE_DEVICES= python train.py
        import torch

        if torch.cuda.is_available():
            torch.ones(2).cuda()
    """,
)
