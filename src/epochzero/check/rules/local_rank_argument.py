"""The program reads the local rank from the command line, where the launcher does not pass it."""

from epochzero.check.program.parsers.model import OptionSpec, ParserSpec
from epochzero.check.program.values import Constant
from epochzero.check.rule import Claims, JobView, Program, Rule, Target, claim_at_start
from epochzero.check.view.api import installed, reached

_LAUNCH = "torch.distributed.launch"
_TORCHRUN = ("torchrun", "torch.distributed.run")
_OLD, _NEW = "--local_rank", "--local-rank"


def _check(view: JobView) -> Claims:
    job = view.job
    parser = next((p.spec for p in view.program.parsed if p.spec.kind == "argparse"), None)
    if parser is None:
        return
    option = next(
        (option for option in parser.options if {_OLD, _NEW}.intersection(option.flags)),
        None,
    )
    if _LAUNCH in job.launchers and "use_env" not in job.command and "use-env" not in job.command:
        yield from _refused(parser, option, _passed(view.target))
    alone = job.allocation.processes_per_node == 1
    if option is not None and not alone and any(text in job.launchers for text in _TORCHRUN):
        yield from _not_given(view.program, option)


def _passed(target: Target) -> tuple[str, ...]:
    """What torch.distributed.launch adds to the command line: with a dash since PyTorch 2.0."""
    torch = installed(target, "torch")
    if not torch:
        return (_OLD, _NEW)
    return (_NEW,) if reached(torch, "2.0") else (_OLD,)


def _refused(parser: ParserSpec, option: OptionSpec | None, passed: tuple[str, ...]) -> Claims:
    flags = () if option is None else option.flags
    if set(passed).intersection(flags) or parser.known_only or not parser.complete:
        return
    yield claim_at_start(
        parser.place if option is None else option.place,
        message=f"torch.distributed.launch adds {passed[-1]}, which the parser does not define.",
        consequence=f"error: unrecognized arguments: {passed[-1]}=0",
        fix=f"Start the job with torchrun and read LOCAL_RANK, or define both {_OLD} and {_NEW}.",
    )


def _not_given(program: Program, option: OptionSpec) -> Claims:
    value = program.options.get("local_rank")
    reads = any("LOCAL_RANK" in module.text for module in program.modules.values())
    if reads or not isinstance(value, Constant) or program.job.says(value.origin):
        return
    yield claim_at_start(
        option.place,
        severity="warning",
        message=f"torchrun does not pass the local rank as an argument: it is {value.value!r} in "
        "every process.",
        consequence="All processes of a node use the same GPU: out of memory, or NCCL reports a duplicate GPU",
        fix="Read int(os.environ['LOCAL_RANK']).",
    )


RULE = Rule(
    category="illegal_argument",
    why="torch.distributed.launch passes --local-rank to the script (--local_rank before PyTorch "
    "2.0). torchrun adds no argument and sets LOCAL_RANK. A script for one launcher may fail "
    "under the other: its parser rejects the arguments, or all its processes train on one GPU.",
    fix="Start the job with torchrun and read LOCAL_RANK from the environment.",
    source="PyTorch documentation, torchrun, Transitioning from torch.distributed.launch to torchrun",
    check=_check,
    examples="""
        $ python -m torch.distributed.launch --nproc_per_node=2 train.py
        import argparse
        import os
        import torch

        parser = argparse.ArgumentParser()
        parser.add_argument('--local_rank', type=int, default=0)  # <-
        args = parser.parse_args()
        torch.cuda.set_device(args.local_rank)
        ==> target.toml <==
        distributions = { torch = "2.4.0" }
        ---- ignored if
        -parser.add_argument('--local_rank', type=int, default=0)
        +parser.add_argument('--local-rank', '--local_rank', type=int, default=0)
        ----
        $ torchrun --nproc_per_node=2 train.py
        import argparse
        import os
        import torch

        parser = argparse.ArgumentParser()
        parser.add_argument('--local_rank', type=int, default=0)  # <-
        args = parser.parse_args()
        torch.cuda.set_device(args.local_rank)
        ---- ignored if
        -$ torchrun --nproc_per_node=2 train.py
        +$ python -m torch.distributed.launch --use_env --nproc_per_node=2 train.py
        @@
        -parser.add_argument('--local_rank', type=int, default=0)
        @@
        -torch.cuda.set_device(args.local_rank)
        ---- ignored if
        -torch.cuda.set_device(args.local_rank)
        +args.local_rank = int(os.environ['LOCAL_RANK'])
        ---- ignored if
        -parser.add_argument('--local_rank', type=int, default=0)
        @@
        -torch.cuda.set_device(args.local_rank)
        +torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
        ---- ignored if
        -$ torchrun --nproc_per_node=2 train.py
    """,
)
