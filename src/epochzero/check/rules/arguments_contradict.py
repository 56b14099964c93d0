"""The program rejects this combination of arguments."""

import re

from epochzero.check.program.values import Constant
from epochzero.check.rule import Claims, JobView, Program, Rule, claim_at, guarded
from epochzero.check.rules.command_line import argument_claims

_ENDINGS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort"})
_REFUSALS = {
    "builtins.AssertionError": ("The program requires a condition that is false", "AssertionError"),
    "argparse.ArgumentParser().error": ("The program rejects its arguments", "SystemExit: 2"),
}
"""Calls that end a program that checks its arguments: what is wrong, and how the job ends."""


def _check(view: JobView) -> Claims:
    yield from argument_claims(view.program, {"conflict"}, "Remove one of them.")
    # The parser would have ended the job before.
    if any(problem.fatal for parsed in view.program.parsed for problem in parsed.problems):
        return
    for call in view.calls:
        if call.name in _ENDINGS and not call.at.certain:
            return  # The program may have ended earlier.
        is_written = call.name != "builtins.AssertionError" or "assert" in call.at.place.code
        if call.name not in _REFUSALS or not is_written or not call.at.certain:
            continue
        wrong, end = _REFUSALS[call.name]
        if not guarded(call.at, AssertionError if end == "AssertionError" else SystemExit):
            code = call.at.place.code
            yield claim_at(
                call.at,
                message=f"{wrong}: {code}{_given(view.program, code)}",
                consequence=end,
            )


def _given(program: Program, code: str) -> str:
    """The values of the options that a line of code reads."""
    values = [
        f"{name} = {value.value!r}"
        for name, value in program.options.items()
        if isinstance(value, Constant) and re.search(rf"\.{re.escape(name)}\b", code)
    ]
    return f"; {', '.join(values)}" if values else ""


RULE = Rule(
    category="illegal_argument",
    why="Programs check combinations of arguments after startup. If the arguments are known, the "
    "result of the check is also known.",
    fix="Change the arguments or the configuration to meet the condition.",
    source="Zhang et al., ICSE 2020, section 3.3: Illegal Argument",
    check=_check,
    examples="""
        $ torchrun --nproc_per_node=8 train.py
        import os

        world = int(os.environ['WORLD_SIZE'])
        def steps(batch):
            assert batch % world == 0  # <-
            return batch // world
        steps(500)
        ----
        $ torchrun --nproc_per_node=8 train.py
        import argparse
        import torch.distributed as dist

        p = argparse.ArgumentParser()
        p.add_argument('--batch-size', type=int, default=250)
        a = p.parse_args()
        dist.init_process_group('nccl')
        world = dist.get_world_size()
        assert a.batch_size % world == 0  # <-
        ----
        import os


        def run():
            if os.path.exists('a'):
                return
            assert 1 > 2


        run()
        ----
        try:
            assert 1 > 2
        except AssertionError:
            pass
        ----
        $ python train.py --low 9
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--low', type=int, default=1)
        p.add_argument('--high', type=int, default=9)
        p.add_argument('--amp', action='store_true')
        args = p.parse_args()
        args.low = 0
        assert args.low < args.high
        ---- ignored if
        -$ python train.py --low 9
        +$ python train.py --low 3 --amp
        @@
         p.add_argument('--amp', action='store_true')
        +def check(args):
        +    if args.amp and args.low > 3:
        +        raise ValueError('no')
        +    assert args.low < args.high, 'order'
        +
        +
        @@
        -args.low = 0
        -assert args.low < args.high
        +check(args)
        ---- caught if
        -$ python train.py --low 9
        +$ python train.py --amp
        @@
        -args.low = 0
        -assert args.low < args.high
        +if args.amp and args.high % 2:
        +    p.error('--amp needs an even --high')  # <-
        ---- ignored if
        -args.low = 0
        +import os
        +if os.path.exists('x'):
        +    exit()
    """,
)
