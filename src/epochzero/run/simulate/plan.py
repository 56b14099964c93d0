"""From a target and a command to the simulated command and the table that is printed before."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

from epochzero import launchers
from epochzero.check.target import read_target
from epochzero.check.target.model import Target
from epochzero.injected import isolation
from epochzero.run.simulate.aspects import aspects_of
from epochzero.run.simulate.companions import REQUEST_VARIABLE
from epochzero.run.simulate.contradictions import refuse_contradictions
from epochzero.run.simulate.model import Request, SimulationOptions, SimulationPlan
from epochzero.run.simulate.packages import PackageDifferences, build_environment, compare
from epochzero.run.simulate.places import Places, places_of
from epochzero.run.simulate.ranks import in_ranks

_INSIDE = Path(__file__).parent / "inside"
_ISOLATED = Path(isolation.__file__)
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
_FLAGS = re.compile(r"-[bBdEIOPqsSuv]+")
"""Options of Python without a value."""
_REQUEST_FILE = "simulate.json"
_LEDGER = "written.jsonl"
_TRIAL_S = 20.0
_PASSED = frozenset(
    [
        "PATH",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "TERM",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
    ]
)
"""Variables without which this machine's programs are not found, or nobody can read what they print."""
_OURS = "EPOCHZERO_"
_FIRST_GROUP = 60_000


def options_of(
    target: Target | str | Path,
    command: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    *,
    ranks: int | None = None,
    build_in: Path | None = None,
) -> SimulationOptions:
    """What is simulated, if it can be: called before anything starts.

    Args:
        target: the platform, its file, or GPUs by name.
        command: of the job.
        folder: where it would run.
        environment: as it is here.
        ranks: see `SimulationOptions`.
        build_in: folder of virtual environments, in which one with the target's packages is made; None for
            the packages of this machine.

    Raises:
        InputError: the target contradicts itself or asks for what cannot be set here, or ``ranks`` are asked
            for and the command has none.
    """
    known = target if isinstance(target, Target) else read_target(target)
    refuse_contradictions(known)
    if ranks is not None:
        in_ranks(command, folder, environment, ranks, None)
    built = build_environment(known, command, environment, build_in) if build_in else None
    return SimulationOptions(known, ranks, built=built)


def plan(
    options: SimulationOptions,
    command: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    attempt: Path,
) -> SimulationPlan:
    """What is run, with the request written to the attempt's folder.

    Raises:
        InputError: the command has no ranks, which `options_of` says before.
    """
    target = options.target
    variables = _environment(target, environment)
    if options.built is not None:
        path = os.pathsep.join((str(options.built / "bin"), variables.get("PATH", "")))
        variables |= {"PATH": path, "VIRTUAL_ENV": str(options.built)}
    ranks: tuple[Mapping[str, str], ...] = ()
    program = list(command)
    if options.ranks is not None:
        each = len(target.gpus) if target.gpus else None
        program, ranks = in_ranks(command, folder, variables, options.ranks, each)
    compared = compare(target, program, variables)
    places = places_of(target, folder, program, variables, attempt, namespaces=True)
    request = _request(target, places, folder, attempt, compared, ranks)
    refused = "they were not requested" if not options.namespaces else _refused(request, attempt)
    if refused:
        places = places_of(target, folder, program, variables, attempt, namespaces=False)
        request = _without_namespaces(request, target, places)
    file = _written(request, attempt)
    return SimulationPlan(
        name=target.name,
        request=request,
        command=(*_inside(file), *_reached(program)),
        environment={**variables, REQUEST_VARIABLE: str(file)},
        aspects=aspects_of(target, request, places, compared, environment, variables, refused),
        memory_bytes=target.memory_bytes,
        time_limit_s=target.time_limit_s,
    )


def _environment(target: Target, here: Mapping[str, str]) -> dict[str, str]:
    """The target's variables, and of ours those that the job needs to be found and read."""
    variables = dict(here)
    if target.environment is not None:
        # The value of a secret is not in a target: it is this machine's.
        there = {name: text or here.get(name, "") for name, text in target.environment.items()}
        passed = {n: v for n, v in here.items() if n in _PASSED or n.startswith(_OURS)}
        variables = {**there, **passed}
    user = target.user
    if user is not None:
        names = {"HOME": user.home, "USER": user.name, "LOGNAME": user.name}
        variables |= {name: text for name, text in names.items() if text}
    if target.gpus == ():
        variables["CUDA_VISIBLE_DEVICES"] = ""
    return variables


def _request(
    target: Target,
    places: Places,
    folder: str,
    attempt: Path,
    compared: PackageDifferences | None,
    ranks: tuple[Mapping[str, str], ...],
) -> Request:
    scratch = attempt / "simulated"
    scratch.mkdir(exist_ok=True)
    limits = {"open_files": target.open_files, "cpus": target.cpus}
    # The kernel does not hold root to a number of processes.
    held = os.geteuid() != 0
    if held:
        limits["processes"] = target.processes
    gpus = target.gpus
    return Request(
        namespaces=True,
        scratch=str(scratch),
        hidden=places.hidden,
        shown=places.shown,
        mounts=places.mounts,
        metered=places.metered,
        ledger=str(attempt / _LEDGER),
        unseen=places.unseen,
        shared_memory=target.shared_memory_bytes,
        user=_user(target),
        network=target.network.internet is not False,
        limits={name: count for name, count in limits.items() if count is not None},
        python_processes=None if held else target.processes,
        modules=compared.modules if compared else (),
        own_modules=compared.own_modules if compared else (),
        distributions=compared.distributions if compared else (),
        gpus=None if gpus is None else tuple(asdict(gpu) for gpu in gpus),
        folders=(folder,),
        ranks=ranks,
    )


def _user(target: Target) -> dict[str, Any] | None:
    """Who the job is; None where the target gives no numbers."""
    user = target.user
    if user is None or user.uid is None or user.gid is None:
        return None
    groups = {name: _group(name, number) for number, name in enumerate(user.groups)}
    name = user.name or f"user{user.uid}"
    return {"name": name, "uid": user.uid, "gid": user.gid, "home": user.home, "groups": groups}


def _group(name: str, number: int) -> int:
    """The number of a group: as this machine has it, else one that is free."""
    import grp

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return _FIRST_GROUP + number


def _without_namespaces(request: Request, target: Target, places: Places) -> Request:
    """The same with what is available without namespaces."""
    limits = {name: count for name, count in request.limits.items() if name != "processes"}
    return replace(
        request,
        namespaces=False,
        hidden=(),
        mounts=places.mounts,
        metered=places.metered,
        unseen=places.unseen,
        user=None,
        shared_memory=None,
        limits=limits,
        python_processes=target.processes,
    )


def _refused(request: Request, attempt: Path) -> str:
    """Why the system refuses the namespaces; empty if it does not."""
    file = _written(replace(request, limits={}), attempt)
    try:
        tried = subprocess.run(
            _inside(file), env={}, capture_output=True, timeout=_TRIAL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the trial took longer than {_TRIAL_S:.0f} s"
    if tried.returncode:
        return tried.stderr.decode(errors="replace").strip().splitlines()[-1]
    return tried.stdout.decode(errors="replace")


def _reached(program: Sequence[str]) -> Sequence[str]:
    """The command through `epochzero.injected.isolation` if its Python ignores PYTHONPATH.

    What starts a command on this machine, such as ``taskset -c 0``, may precede it.
    """
    names = [os.path.basename(word) for word in program]
    at = next((n for n, name in enumerate(names) if _PYTHON.fullmatch(name)), None)
    starters = (s for s in launchers.every() if s.starts == "command" and not s.elsewhere)
    if at is None or (at and names[0] not in chain.from_iterable(s.names for s in starters)):
        return program
    flags = list(takewhile(_FLAGS.fullmatch, program[at + 1 :]))
    rest = program[at + 1 + len(flags) :]
    if not rest or not any("I" in flag or "E" in flag for flag in flags):
        return program
    if rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        return program
    return (*program[: at + 1], *flags, str(_ISOLATED), *rest)


def _inside(file: Path) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(_INSIDE), str(file))


def _written(request: Request, attempt: Path) -> Path:
    file = attempt / _REQUEST_FILE
    file.write_text(request.to_json(), encoding="utf-8")
    return file
