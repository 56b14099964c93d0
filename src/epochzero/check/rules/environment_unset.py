"""The program reads an environment variable that nothing sets."""

from collections.abc import Iterable, Mapping

from epochzero import launchers
from epochzero.check.launch.model import Job
from epochzero.check.program.events import Situation
from epochzero.check.program.values import Constant, External, constant_of
from epochzero.check.rule import (
    Claim,
    Claims,
    JobView,
    Program,
    Rule,
    Target,
    Unknown,
    claim_at,
    guarded,
)
from epochzero.check.rules.world import is_set

# Only a launcher sets these.
_OF_LAUNCHERS = frozenset(
    ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
)
_NO_PATH = "expected str, bytes or os.PathLike object, not NoneType"
# Functions that do not accept None -> their error.
_OF_TEXTS = {
    "builtins.int": "int() argument must be a string, a bytes-like object or a real number, not 'NoneType'",
    "builtins.float": "float() argument must be a string or a real number, not 'NoneType'",
    "builtins.open": _NO_PATH,
    "os.path.join": _NO_PATH,
    "os.makedirs": _NO_PATH,
    "pathlib.Path": _NO_PATH,
}


def _check(view: JobView) -> Claims:
    # Another program may start this one, with its own environment.
    if not view.job.certain:
        return
    for name, at in _read(view.program):
        if is_set(name, view.job) or not at.certain or guarded(at, KeyError):
            continue
        if view.target.environment is not None and name not in view.target.environment:
            if view.job.launch_script.activated:
                yield Unknown(
                    f"whether {name} is set", "the job's script activates an environment", at.place
                )
                continue
            why = "neither the job nor the target sets it"
            yield _claim(name, at, why, may=_may_be_exported(name, view.job, view.target))
        elif view.target.environment is None and name in _OF_LAUNCHERS and not view.job.launchers:
            yield _claim(
                name, at, "a launcher such as torchrun sets it, but the job uses none", may=True
            )
    if view.target.environment is not None and not view.job.launch_script.activated:
        yield from _without_default(view.program, view.target, view.target.environment)


def _without_default(program: Program, target: Target, environment: Mapping[str, str]) -> Claims:
    """``int(os.getenv("X"))``: None where a text is required."""
    asked: dict[tuple[str, int], str] = {}
    for call in program.calls:
        first = constant_of(call.arguments[0]) if call.arguments else None
        if call.name in ("os.getenv", "os.environ.get") and isinstance(first, str):
            alone = len(call.arguments) == 1 and not call.keywords
            if alone and first not in environment and not is_set(first, program.job):
                asked[_line(call.at)] = first
        name = asked.get(_line(call.at))
        none = any(isinstance(v, Constant) and v.value is None for v in call.arguments)
        if name and none and call.name in _OF_TEXTS and not guarded(call.at, TypeError):
            yield claim_at(
                call.at,
                category="type_mismatch",
                message=f"Neither the job nor the target sets {name}, so "
                f"{call.name.removeprefix('builtins.')} receives None.",
                consequence=f"TypeError: {_OF_TEXTS[call.name]}",
                fix=f"Set {name} where you start the job, or read it with a default.",
                severity="warning" if _may_be_exported(name, program.job, target) else None,
            )


def _may_be_exported(name: str, job: Job, target: Target) -> bool:
    """Whether another shell submits the job, whose environment the job would inherit."""
    submitted = any(
        launcher and launcher.exports_environment for launcher in map(launchers.of, job.launchers)
    )
    return submitted and name not in _OF_LAUNCHERS and not job.container and not target.here


def _line(at: Situation) -> tuple[str, int]:
    """The line of an event, whichever part of it that is."""
    return at.place.path, at.place.line


def _read(program: Program) -> Iterable[tuple[str, Situation]]:
    """The required variables, and where they are read."""
    stored: set[str] = set()
    environ = External("os.environ")
    for event in program.lookups:
        if event.on == environ and event.item:
            if event.stored or event.found:
                stored.add(event.name)
            elif event.name not in stored:
                yield event.name, event.at
    for call in program.calls:
        if call.name == "os.environ.pop" and len(call.arguments) == 1 and not call.keywords:
            name = call.arguments[0]
            if isinstance(name, Constant) and isinstance(name.value, str):
                yield name.value, call.at


def _claim(name: str, at: Situation, why: str, *, may: bool) -> Claim:
    launched = name in _OF_LAUNCHERS
    return claim_at(
        at,
        message=f"The environment variable {name} is not set: {why}.",
        consequence=f"KeyError: '{name}'",
        fix="Start the program with torchrun, or read the variable with a default."
        if launched
        else f"Set {name} where you start the job, or read it with os.environ.get and a default.",
        severity="warning" if may else None,
    )


RULE = Rule(
    category="key_not_found",
    why="Variables from a shell profile do not exist in a container. Variables that a launcher "
    "sets do not exist if the program starts without that launcher.",
    fix="Set the variable in the job, or specify a default value.",
    source="torchrun's documentation, section 'Environment Variables'; Zhang et al., ICSE 2020, "
    "section 3.2",
    check=_check,
    examples="""
        import os
        rank = int(os.environ['RANK'])  # <-
        ---- ignored if
        +$ torchrun --nproc_per_node=2 train.py
         import os
        ---- ignored if
        +$ flux run -n 2 python train.py
         import os
        -rank = int(os.environ['RANK'])  # <-
        +broker = os.environ['FLUX_URI']
        ----
        from omegaconf import OmegaConf

        cfg = OmegaConf.load('c.yaml')
        print(cfg.root)  # <-
        ==> c.yaml <==
        root: ${oc.env:DATA_ROOT}/imagenet
        ==> target.toml <==
        [environment]
        HOME = "/root"
        ---- ignored if
        -root: ${oc.env:DATA_ROOT}/imagenet
        +root: ${oc.env:DATA_ROOT,/data}/imagenet
        ----
        import os
        root = os.environ['DATA_ROOT']
        ----
        import os
        workers = int(os.getenv('WORKERS', '4'))
        ==> target.toml <==
        [environment]
        HOME = "/root"
        ---- ignored if
        +$ env DATA_ROOT=/data python train.py
         import os
        @@
        -workers = int(os.getenv('WORKERS', '4'))
        +root = os.environ['DATA_ROOT']
        ---- caught if
        -workers = int(os.getenv('WORKERS', '4'))
        +
        +workers = int(os.getenv('WORKERS'))  # <-
        ----
        import os
        if 'RANK' in os.environ:
            r = os.environ['RANK']
        try:
            w = os.environ['WORLD_SIZE']
        except KeyError:
            w = '1'
        os.environ['MASTER_ADDR'] = 'localhost'
        print(os.environ['MASTER_ADDR'])
        port = os.environ.get('MASTER_PORT')
    """,
)
