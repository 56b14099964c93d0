"""The catalogue of launchers and schedulers: one TOML file for each, next to this module.

Everything that the project knows of a launcher is in its file: how `check` reads its command line, which
variables a process finds that it started, how its log files and log lines name ranks. A new launcher is a
new file. Options are listed if they take a value, each with what the value means for the job: a key of
`epochzero.check.launch.meanings.MEANINGS`, or nothing. What is not listed is a switch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from epochzero import compiled

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Option:
    """An option with a value.

    Attributes:
        name: the one of its names by which rules know it: the first long one.
        meaning: what its value says of the job; empty if it does not matter.
    """

    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class ProcessVariables:
    """The environment variables by which a process recognizes its launcher, job and rank.

    Attributes:
        system: name in reports.
        known_by: a variable that only this system sets.
        order: position among all systems; the lowest one that is known started the process. What
            starts ranks comes before the schedulers in whose jobs it runs.
        rank, world_size: variables; empty if it sets none.
        job: variables that together identify the job, the same for all of its ranks.
        restarts: variable with the number of times the system itself has restarted the job.
        grace_s: seconds that it gives the other ranks to exit after one has failed; 0 if it does not
            terminate them.
    """

    system: str
    known_by: str
    order: int
    rank: str = ""
    world_size: str = ""
    job: tuple[str, ...] = ()
    restarts: str = ""
    grace_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LogPrefix:
    r"""A prefix that the launcher writes in front of each line.

    Attributes:
        pattern: with the groups of `epochzero.logs.prefix`: ``rank``, ``host``, ``process``.
        example: a line that has it.
    """

    pattern: str
    example: str


@dataclass(frozen=True)
class Launcher:
    """What stands in front of a command or a Python script, or runs it on other machines.

    Attributes:
        names: of the program; two words if its second word makes it another (``docker compose``).
        starts: what its operands are: ``command``, ``script`` (Python), ``batch`` (a batch file),
            ``container`` (a command, after the image), ``services`` (of a compose file), ``make``
            (targets) or ``nothing``.
        modules: that do the same after ``python -m``.
        subcommands: one of which must be given, if any.
        operands: that precede what is started, such as the duration of ``timeout``.
        options: by each of their names.
        pairs: options with two values.
        switches: options without a value that change what is started: ``module`` or ``command``.
        otherwise: fields of the job that have these values by default.
        sets: environment variables that it sets, each with what its value is: one of `KNOWN_VALUES`,
            or empty.
        passes: by an option, the variables that it makes the launcher set, each with the option whose
            value it has.
        sees_folder: whether a container sees the current folder.
        runs_scripts: whether a Python file may take the place of a command.
        groups: words that may precede the subcommand: ``ray job submit``.
        tests: options with which it only tests whether the scheduler accepts a submission; empty if it has none.
        resources: a command that lists what the scheduler has, a line each.
        directives: how lines of a batch file begin that hold its options.
        flags: options without a value, if all of them are listed.
        submitted_from: variables that it sets to the folder in which it is called.
        home_unless: options without which the job starts in the home directory; empty if it never does.
        environments: folders of the project in which it keeps the Python that it starts.
        set_on_nodes: a variable that is set on the machines where it runs jobs; empty if that is
            the machine on which it is called.
        exports_environment: whether the job gets the environment of the submitting shell, or may get it.
        reserves: beginnings of the names of variables that only the system sets.
        may_set: beginnings of the names of other variables that it may set.
        elsewhere: what its processes have elsewhere: ``files`` (they see another file system),
            ``processes`` (they are no children of the launcher).
        processes: how its processes recognize it.
        log_prefixes: that it writes in front of lines.
        rank_logs: patterns of the paths of log files; their group is the rank.
        job_logs: patterns of the paths of log files that belong to no rank, whatever numbers they have.
    """

    names: tuple[str, ...]
    starts: str
    modules: tuple[str, ...] = ()
    subcommands: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    pairs: frozenset[str] = frozenset()
    switches: Mapping[str, str] = field(default_factory=dict)
    otherwise: Mapping[str, int] = field(default_factory=dict)
    sets: Mapping[str, str] = field(default_factory=dict)
    passes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sees_folder: bool = False
    runs_scripts: bool = False
    groups: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    submitted_from: tuple[str, ...] = ()
    home_unless: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    set_on_nodes: str = ""
    exports_environment: bool = False
    reserves: tuple[str, ...] = ()
    may_set: tuple[str, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    processes: tuple[ProcessVariables, ...] = ()
    log_prefixes: tuple[LogPrefix, ...] = ()
    rank_logs: tuple[str, ...] = ()
    job_logs: tuple[str, ...] = ()

    @property
    def starts_ranks(self) -> bool:
        """Whether it tells its processes how many they are."""
        return "processes" in self.sets.values()


COUNTS = ("processes", "processes_per_node", "nodes")
KNOWN_VALUES = (
    *COUNTS, "rank", "local_rank", "node_rank", "address", "port", "run", "restarts",
    "job", "step", "hosts",
)  # fmt: skip
"""What the value of a variable may be (`Launcher.sets`): a count of the job, a number of the process, the
address and port at which ranks meet, and identities that the system assigns."""


@cache
def every() -> tuple[Launcher, ...]:
    """All launchers, by the names of their files.

    Parsing the files takes longer than a short command may take to start, so the result is stored
    (`epochzero.compiled`).
    """
    contents = [path.read_bytes() for path in sorted(_FOLDER.glob("*.toml"))]
    key = compiled.key_of([b"launchers", *contents])
    if (item := compiled.load(key)) is not None:
        return tuple(_launcher(raw) for raw in json.loads(item))
    import tomllib

    parsed = [tomllib.loads(content.decode()) for content in contents]
    compiled.store(key, json.dumps(parsed).encode())
    return tuple(_launcher(raw) for raw in parsed)


@cache
def by_name() -> Mapping[str, Launcher]:
    """The launchers by the names of their programs."""
    return {name: launcher for launcher in every() for name in launcher.names}


@cache
def by_module() -> Mapping[str, Launcher]:
    """The launchers by the modules of ``python -m`` that do the same."""
    return {name: launcher for launcher in every() for name in launcher.modules}


def of(name: str) -> Launcher | None:
    """The launcher of a program or of a module of ``python -m``, as in ``Job.launchers``."""
    return by_name().get(name) or by_module().get(name)


@cache
def process_variables() -> tuple[ProcessVariables, ...]:
    """How processes recognize what started them, in the order in which to try."""
    found = chain.from_iterable(launcher.processes for launcher in every())
    return tuple(sorted(found, key=lambda variables: variables.order))


@cache
def rank_variables() -> Mapping[str, str]:
    """Variables that hold the rank of a process, in the order in which to try them, each with the one
    that holds the number of ranks. Processes that nothing counts are independent of each other.
    """
    found = process_variables()
    return {v.rank: v.world_size for v in found if v.rank and v.world_size}


def names_where(elsewhere: str) -> frozenset[str]:
    """The names of the launchers whose processes have this elsewhere; see `Launcher.elsewhere`."""
    return frozenset(name for name, tool in by_name().items() if elsewhere in tool.elsewhere)


@cache
def reserved_variables() -> tuple[str, ...]:
    """How the names of variables begin that launchers and schedulers set."""
    return tuple(chain.from_iterable(launcher.reserves for launcher in every()))


def allocation_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the schedulers in whose allocations a process runs; empty on a login node, where some are set too."""
    prefixes: list[str] = []
    for launcher in every():
        known_by = (variables.known_by for variables in launcher.processes)
        signs = (launcher.set_on_nodes, *launcher.submitted_from, *known_by)
        if launcher.set_on_nodes and any(environment.get(name) for name in signs):
            prefixes += launcher.reserves
    return {name: text for name, text in environment.items() if name.startswith(tuple(prefixes))}


@cache
def variables_with_value(value: str) -> frozenset[str]:
    """The variables that any launcher sets to this value; see `KNOWN_VALUES`."""
    return frozenset(name for tool in every() for name, its in tool.sets.items() if its == value)


_TUPLES = (
    "names", "modules", "subcommands", "operands", "groups", "tests", "resources", "directives", "submitted_from",
    "home_unless", "environments", "reserves", "may_set", "rank_logs", "job_logs",
)  # fmt: skip
_SETS = ("pairs", "flags", "elsewhere")


def _launcher(raw: Mapping[str, Any]) -> Launcher:
    """A launcher from its file; a field that does not exist is a TypeError."""
    fields = dict(raw)
    fields |= {name: tuple(fields[name]) for name in _TUPLES if name in fields}
    fields |= {name: frozenset(fields[name]) for name in _SETS if name in fields}
    fields["options"] = _by_alias(fields.get("options", {}))
    fields["switches"] = _split(fields.get("switches", {}))
    fields["processes"] = tuple(
        ProcessVariables(**{**each, "job": tuple(each.get("job", ()))})
        for each in fields.get("processes", ())
    )
    fields["log_prefixes"] = tuple(LogPrefix(**each) for each in fields.get("log_prefixes", ()))
    return Launcher(**fields)


def _split(raw: Mapping[str, str]) -> dict[str, str]:
    """What stands for several names, by each of them."""
    return {name: value for names, value in raw.items() for name in names.split()}


def _by_alias(raw: Mapping[str, str]) -> dict[str, Option]:
    options: dict[str, Option] = {}
    for names, meaning in raw.items():
        aliases: Iterable[str] = names.split()
        name = next((alias for alias in aliases if alias.startswith("--")), names.split()[0])
        options |= {alias: Option(name, meaning) for alias in aliases}
    return options
