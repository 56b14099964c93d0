"""The job imports a module that the target does not have."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from epochzero.check.launch.model import Job
from epochzero.check.program.events import LibraryImport, Situation
from epochzero.check.program.modules import lies_in
from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Constant
from epochzero.check.rule import (
    Claim,
    Claims,
    JobView,
    Program,
    Rule,
    SourceLocation,
    Target,
    Unknown,
    claim_at,
    guarded,
)
from epochzero.check.rules.distributions import Installed, distributions_of, providers
from epochzero.check.rules.standard import lacks_module, standard_modules
from epochzero.check.target.packages import likely_modules, normalized
from epochzero.file_access import is_folder

# Modules that belong to an interpreter or are installed in every environment.
_ALWAYS = {"__main__", "_distutils_hack", "pkg_resources", "setuptools", "pip"}
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPAQUE_INSTALL = re.compile(
    r"(?:^|\s)(?:-r|--requirement|-e|--editable|\.|git\+|https?:|file:|\$)"
)
MOST_NAMES = 3
"""If several distributions provide a module, at most this many of their names are reported."""
LOCKED_SHARE = 20
"""A list with a larger share than one in so many without a version is no lock file."""
_PATH_CALLS = {"sys.path.append", "sys.path.insert", "sys.path.extend", "site.addsitedir"}


def _check(view: JobView) -> Claims:
    installed = view.target.distributions
    if installed is None:
        return
    asked_for = _asked_for(view.program)
    doubt = _doubt(view.program, view.target)
    fallbacks = _fallbacks(view.program, view.target, installed)
    reach = view.reach
    seen: set[str] = set()
    for event in (*_run(view.program), *view.imports):
        top = event.module.partition(".")[0]
        if top in seen or top in asked_for or not _is_missing(top, event, installed):
            continue
        is_reached = fallbacks.get(_line(event.at.place))
        is_asked = not event.at.certain and reach.is_behind_test(event.at)
        if (
            is_reached is False
            or (is_asked and not is_reached)
            or _installed_by_job(view.program, top)
        ):
            continue
        seen.add(top)
        if why := doubt or _may_be_written(view.program, top):
            yield Unknown(f"whether the target has {top}", why, event.at.place)
        elif folder := _own(view.job, top):
            claim = _not_importable(event, top, view.job, folder)
            adds = _may_add_path(view.program)
            what = f"whether {top} can be imported"
            yield Unknown(what, adds, event.at.place) if adds else claim
        else:
            sure = replace(event, at=replace(event.at, certain=True)) if is_reached else event
            yield _claim(sure, top, view.target, installed)


def _may_be_written(program: Program, top: str) -> str:
    """Why a module may come from the job itself; empty if nothing indicates it."""
    name = f"{top}.py"
    named = any(name in module.text for module in program.modules.values())
    return f"the job may create {name}, which it names" if named else ""


def _fallbacks(
    program: Program, target: Target, installed: Installed
) -> Mapping[SourceLocation, bool]:
    """Whether the imports of a handler are reached, by line, where the preceding import decides it.

    They certainly are if that import certainly fails, and are not if its module is installed.
    """
    found: dict[SourceLocation, bool] = {}
    events = {
        _line(imported.at.place): imported for imported in program.imports if imported.at.certain
    }
    for module in program.modules.values():
        for block in code_of(module).of(ast.Try):
            first = events.get(_line(module.place(block.body[0])))
            if (
                first is None
                or len(block.handlers) != 1
                or not guarded(first.at, ModuleNotFoundError)
            ):
                continue
            is_absent = _is_absent(first.module.partition(".")[0], installed)
            if is_absent or (
                len(block.body) == 1 and not first.names and _has(first.module, target)
            ):
                handler = block.handlers[0].body
                # The other statements there may install the module.
                if all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in handler):
                    found |= {_line(module.place(inner)): is_absent for inner in handler}
    return found


def _line(place: SourceLocation) -> SourceLocation:
    return SourceLocation(place.path, place.line)


def _has(module: str, target: Target) -> bool:
    """Whether the target has the module apart from its distributions."""
    return target.python is None or not lacks_module(module, target.python[:2])


def _run(program: Program) -> Iterable[LibraryImport]:
    """The module of ``python -m``, if it is not one of the job's own."""
    job = program.job
    if job.module and not (job.script or job.fault or program.modules):
        yield LibraryImport(job.module, (), Situation(job.at))


def _is_missing(top: str, event: LibraryImport, installed: Installed) -> bool:
    return _is_absent(top, installed) and not guarded(event.at, ModuleNotFoundError)


def _is_absent(top: str, installed: Installed) -> bool:
    return (
        bool(top)
        and top not in standard_modules()
        and top not in _ALWAYS
        and not providers(top, installed)
    )


def _asked_for(program: Program) -> set[str]:
    """Modules whose presence the program checks before it imports them."""
    return {
        value.value.partition(".")[0]
        for call in program.calls
        if call.name in {"importlib.util.find_spec", "pkgutil.find_loader"}
        for value in call.arguments[:1]
        if isinstance(value, Constant) and isinstance(value.value, str)
    }


def _installed_by_job(program: Program, top: str) -> bool:
    """Whether the job installs a distribution that provides the module before it runs the program."""
    text = " ".join(
        (
            *(install.text for install in program.job.launch_script.installs),
            *program.job.launch_script.requires,
        )
    )
    named = {normalized(name) for name in _NAMED.findall(text)}
    return any(normalized(name) in named for name in (*distributions_of(top), top))


def _doubt(program: Program, target: Target) -> str:
    """Why modules may come from a source other than the installed distributions; empty if they cannot."""
    folder = program.job.folder
    for install in program.job.launch_script.installs:
        if _OPAQUE_INSTALL.search(install.text):
            return f"the job first runs `pip install {install.text.strip()}`"
    for variables, whose in (
        (program.job.environment, "the job"),
        (target.environment or {}, "the target"),
    ):
        path = variables.get("PYTHONPATH", "")
        if path is None or not all(is_folder(folder / part) for part in path.split(":")):
            return f"PYTHONPATH of {whose} names directories that cannot be read on this machine"
    for call in program.calls:
        added = call.arguments[-1:] if call.name in _PATH_CALLS else ()
        if not all(_is_here(value, folder) for value in added):
            return "the program adds a directory to sys.path that cannot be read on this machine"
    return ""


def _may_add_path(program: Program) -> str:
    """Which call of a library may add the directory of the file that it is given to sys.path; empty if none."""
    files = {str(module.file) for module in program.modules.values()}
    for call in program.calls:
        values = (*call.arguments, *call.keywords.values())
        is_given = any(isinstance(value, Constant) and value.value in files for value in values)
        if is_given and call.name.partition(".")[0] not in standard_modules():
            return f"{call.name} gets the path of the file and may add a directory to sys.path"
    return ""


def _is_here(value: object, folder: Path) -> bool:
    if not isinstance(value, Constant) or not isinstance(value.value, str):
        return False
    return is_folder(folder / value.value)


def _claim(event: LibraryImport, top: str, target: Target, installed: Installed) -> Claim:
    names = distributions_of(top)
    install = top if top in names else " or ".join(names[:MOST_NAMES]) or top.replace("_", "-")
    fix = f"install {install}."
    if near := _near(top, installed):
        fix = f"write {near}, which is installed, if you mean that module; otherwise {fix}"
    # For some distributions only the name is known, so one may provide an unexpected module.
    sure = bool(names) or all(dist.modules is not None for dist in installed.values())
    # A list that leaves versions open is no lock file: what its packages depend on is installed, too.
    # In a lock file, only the few packages of the project itself have no version.
    without = [distribution.name for distribution in installed.values() if not distribution.version]
    is_open = without[0] if len(without) * LOCKED_SHARE > len(installed) else ""
    doubt = f" A package of the list may depend on it: {is_open} has no version." if is_open else ""
    return claim_at(
        event.at,
        message=f"The job imports {top}, but no installed distribution provides it.{doubt}",
        consequence=f"ModuleNotFoundError: No module named '{top}'",
        fix=fix[0].upper() + fix[1:],
        severity=None if sure and not is_open else "warning",
    )


def _own(job: Job, top: str) -> Path | None:
    """The job directory that contains a module but is not on Python's search path."""
    start = job.script.parent if job.script else job.folder
    above = [folder for folder in (start, *start.parents) if folder.is_relative_to(job.base)]
    folders = [job.folder, job.base, *above]
    folders += [folder / "src" for folder in folders]
    return next((folder for folder in folders if lies_in(folder, top)), None)


def _not_importable(event: LibraryImport, top: str, job: Job, folder: Path) -> Claim:
    looked = job.folder if job.module or job.script is None else job.script.parent
    path = Path(os.path.relpath(folder, job.folder)).as_posix()
    fix = f"set PYTHONPATH={path} when you start the job"
    if job.script and not job.module and folder == job.folder and job.script.suffix == ".py":
        name = ".".join(job.script.relative_to(folder).with_suffix("").parts)
        fix = f"start it as `{job.program} -m {name}`, or {fix}"
    return claim_at(
        event.at,
        message=f"{top} is in {_shown(folder, job)} and cannot be imported from there: Python "
        f"searches {_shown(looked, job)}.",
        consequence=f"ModuleNotFoundError: No module named '{top}'",
        fix=f"{fix[0].upper()}{fix[1:]}.",
    )


def _shown(folder: Path, job: Job) -> str:
    if folder == job.base or not folder.is_relative_to(job.base):
        return "the job directory" if folder == job.base else str(folder)
    return f"{folder.relative_to(job.base).as_posix()}/"


def _near(top: str, installed: Installed) -> str:
    """An installed module with almost the same name."""
    modules = {module for dist in installed.values() for module in likely_modules(dist)}
    public = [module for module in modules if not module.startswith("_")]
    return next(iter(get_close_matches(top, public, n=1, cutoff=0.8)), "")


RULE = Rule(
    category="library_not_found",
    why="Modules from the development machine may be missing in the image that runs the job. An "
    "import inside an evaluation or plotting function may fail only after the last epoch.",
    fix="Install the distribution in the image, or choose an image that contains it.",
    source="Zhang et al., ICSE 2020, Table 1: Library Not Found, 309 of 4,960 failures",
    check=_check,
    examples="""
        $ python -m lightning run  # <-
        ==> train.py <==
        ==> target.toml <==
        [distributions.numpy]
        version = "2.1.0"
        modules = ["numpy"]
        ---- ignored if
        -$ python -m lightning run
        +$ python -m numpy.testing
        ---- caught if
        -$ python -m lightning run  # <-
        -==> train.py <==
        +import os
        +import yaml  # <-
        ---- caught if
        -$ python -m lightning run  # <-
        -==> train.py <==
        +import model
        +==> model.py <==
        +from einops import rearrange  # <-
        ---- ignored if
        -$ python -m lightning run
        -==> train.py <==
        +$ uv run train.py
        +# /// script
        +# dependencies = ["einops>=0.8"]
        +# ///
        +import einops
        ---- ignored if
        -$ python -m lightning run
        -==> train.py <==
        +import importlib
        +
        +
        +def optional(name):
        +    try:
        +        return importlib.import_module(name)
        +    except ImportError:
        +        return None
        +
        +
        +def plot():
        +    seaborn = optional('seaborn')
        +    if seaborn is None:
        +        return
        +    from matplotlib import pyplot
        +    pyplot.show()
        +
        +
        +plot()
        ---- ignored if
        -$ python -m lightning run
        -==> train.py <==
        +from typing import TYPE_CHECKING
        +if TYPE_CHECKING:
        +    import torch
        ----
        $ python app/train.py
        ==> app/train.py <==
        import app.model  # <-
        ==> app/model.py <==
        ==> target.toml <==
        [distributions.numpy]
        version = "2.1.0"
        modules = ["numpy"]
        ---- ignored if
        -$ python app/train.py
        +$ env PYTHONPATH=. python app/train.py
        ---- ignored if
        -$ python app/train.py
        +$ bash run.sh
        +==> run.sh <==
        +pip install -e .
        +python app/train.py
        ----
        $ python app/train.py
        ==> app/train.py <==
        import rootutils

        rootutils.setup_root(__file__, pythonpath=True)
        from app import model
        ==> app/model.py <==
        ==> target.toml <==
        [distributions.rootutils]
        version = "1.0.7"
        modules = ["rootutils"]
        ----
        with open('g.py', 'w') as f:
            f.write('x = 1')
        import g

        print(g.x)
        ==> target.toml <==
        [distributions]
        ----
        try:
            import tomllib
        except ImportError:
            import tomli as tomllib
        ==> target.toml <==
        python = "3.11"
        [distributions.numpy]
        version = "2.1.0"
        modules = ["numpy"]
        ----
        import yaml
    """,
)
