"""The program uses a GPU index that the job does not have."""

from collections.abc import Iterator

from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.values import Constant, Instance, Items, Value, integer_of
from epochzero.check.rule import Claims, JobView, Rule, claim_at, guarded
from epochzero.check.rules.world import chosen, gpus_of_a_node
from epochzero.check.view.builds import moves_to_cuda
from epochzero.check.view.torch_usage import PARALLEL_WRAPPERS


def _check(view: JobView) -> Claims:
    seen = gpus_of_a_node(view.job, view.target)
    own = chosen(view.program)
    if own is not None:
        names = own[0]
        seen = (
            None
            if names is None
            else (len(names), "CUDA_VISIBLE_DEVICES, as the program sets it, shows")
        )
    if seen is None or not seen[0]:
        return
    reach = view.reach
    for call in (
        *moves_to_cuda(view.program),
        *(c for c in view.calls if c.name in PARALLEL_WRAPPERS),
    ):
        index = max(_indices(call), default=0)
        if index >= seen[0] and not guarded(call.at, RuntimeError):
            gpus = f"{seen[0]} GPU{'s' * (seen[0] != 1)}"
            yield claim_at(
                call.at,
                severity=reach.severity(call.at),
                message=f"GPU {index} is used, but {seen[1]} {gpus}: the highest index is "
                f"{seen[0] - 1}.",
                consequence="RuntimeError: CUDA error: invalid device ordinal",
            )


def _indices(call: LibraryCall) -> Iterator[int]:
    """The GPU indices that a call uses."""
    values: list[Value | None] = [call.keywords.get("device")]
    if call.name.rpartition(".")[2] in ("to", "cuda", "set_device"):
        values += call.arguments[:1]
    elif call.name in PARALLEL_WRAPPERS:
        devices = argument(call, 1, "device_ids")
        values = [*devices.values] if isinstance(devices, Items) else []
    for value in values:
        index = _index(value)
        if index is not None:
            yield index


def _index(value: Value | None) -> int | None:
    """The index of ``3``, ``"cuda:3"``, ``torch.device("cuda:3")`` and ``torch.device("cuda", 3)``."""
    if isinstance(value, Instance) and value.made_by == "torch.device" and value.arguments:
        return (
            integer_of(value.arguments[1])
            if len(value.arguments) > 1
            else _index(value.arguments[0])
        )
    if isinstance(value, Constant) and isinstance(value.value, str):
        device, _, index = value.value.partition(":")
        return int(index) if device == "cuda" and index.isdecimal() else None
    return integer_of(value)


RULE = Rule(
    category="gpu_fault",
    why="The index is often chosen on a workstation where GPU 0 is in use. A job with two GPUs "
    "sees them as GPUs 0 and 1, regardless of their physical indices.",
    fix="Use 'cuda' without an index to select the GPU of the process, or request more GPUs.",
    source="PyTorch documentation, CUDA semantics; CUDA C++ Programming Guide, Device enumeration",
    check=_check,
    examples="""
        import torch

        model = torch.nn.Linear(2, 2)
        model.to('cuda:3')  # <-
        ==> target.toml <==
        gpus = "2 x H100"
        ---- caught if
        -model.to('cuda:3')  # <-
        +model = torch.nn.DataParallel(model, device_ids=[0, 1, 2, 3])  # <-
        ---- ignored if
        -model.to('cuda:3')
        +model.to('cuda')
        +model.cuda()
        ---- ignored if
        -==> target.toml <==
        -gpus = "2 x H100"
        ---- ignored if
        -model.to('cuda:3')
        +try:
        +    model.cuda(7)
        +except RuntimeError:
        +    pass
        ---- ignored if
        -model.to('cuda:3')
        +print(model(torch.rand(3, 2)).to(torch.float32), model.to('cpu'))
        ---- ignored if
        -model.to('cuda:3')
        +model = torch.nn.DataParallel(model)
        ---- caught if
        -model = torch.nn.Linear(2, 2)
        -model.to('cuda:3')  # <-
        +x = torch.zeros(2, device='cuda:2')  # <-
        ----
        $ env CUDA_VISIBLE_DEVICES=2 python train.py
        import torch

        model = torch.nn.Linear(2, 2)
        device = torch.device('cuda:1')


        def main():
            model.to(device)  # <-


        main()
        ----
        $ sbatch run.sh
        import torch

        torch.cuda.set_device(4)  # <-
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --gres=gpu:4
        python train.py
        ----
        import os

        os.environ['CUDA_VISIBLE_DEVICES'] = '2,3'
        import torch

        model = torch.nn.Linear(2, 2)
        model.cuda(2)  # <-
    """,
)
