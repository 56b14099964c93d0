"""This machine as a target: each part found out on its own, so that one that fails costs only itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from epochzero.check.target import system
from epochzero.check.target.api import LIBRARIES, read_api
from epochzero.check.target.interpreter import Interpreter, running
from epochzero.check.target.model import NetworkAccess, Target
from epochzero.check.target.packages import installed
from epochzero.check.target.torch_build import torch_build
from epochzero.errors import InputError

MOST_API_NAMES = 750_000
"""Those of the usual libraries, and the outermost of transformers."""

Tell = Callable[[str], None]


def this_machine(
    environment: Mapping[str, str],
    *,
    name: str = "this machine",
    interpreter: Interpreter | None = None,
    libraries: Sequence[str] = (),
    tell: Tell = lambda part: None,
) -> Target:
    """The machine on which this runs, as an interpreter and this user see it.

    No library is imported and nothing is written. A part that cannot be found out stays unknown,
    and is named in ``notes``.

    Args:
        environment: variables; secrets are left out of the target.
        name: of the target.
        interpreter: whose distributions and modules are looked for; the running one when None.
        libraries: modules whose public API is read; those that are not there are left out.
        tell: called with the name of each part before it is found out.
    """
    interpreter = interpreter or running()
    folders = interpreter.folders
    parts = _Parts(tell)
    api, stop = parts.ask(
        "api", lambda: read_api(libraries, folders, most_names=MOST_API_NAMES), ({}, "")
    )
    if stop:
        parts.notes.append(
            f"api: reading stopped before {stop}, when {MOST_API_NAMES:,} names were read;"
            " --api reads fewer libraries to their end"
        )
    build = parts.ask("torch", lambda: torch_build(folders), None)
    gpus = parts.ask("gpus", lambda: system.gpus(environment), system.NO_GPUS)
    parts.notes += gpus.notes
    limits = parts.ask("limits", system.limits, system.SystemLimits())
    return Target(
        name=name,
        python=interpreter.version,
        distributions=parts.ask(
            "distributions", lambda: MappingProxyType(installed(folders)), None
        ),
        api=MappingProxyType(api),
        shared_libraries=parts.ask(
            "shared_libraries", lambda: system.shared_libraries(environment), None
        ),
        programs=parts.ask("programs", lambda: system.programs(environment.get("PATH", "")), None),
        gpus=gpus.gpus,
        driver=gpus.driver,
        cuda=gpus.cuda,
        cuda_of_torch=build.cuda if build else None,
        gpu_architectures=build.architectures if build else None,
        mounts=parts.ask("mounts", lambda: system.mounts(environment), None),
        user=parts.ask("user", lambda: system.user(environment), None),
        environment=MappingProxyType(system.without_secrets(environment)),
        memory_bytes=limits.memory_bytes,
        shared_memory_bytes=parts.ask("shared_memory_bytes", system.shared_memory, None),
        cpus=limits.cpus,
        processes=limits.processes,
        open_files=limits.open_files,
        ports=parts.ask("ports", system.ports, None),
        working_folder=parts.ask("working_folder", os.getcwd, ""),
        here=True,
        notes=tuple(parts.notes),
    )


def with_interpreter(target: Target, interpreter: Interpreter | None) -> Target:
    """The same machine as another interpreter finds it; one that is None is not known."""
    if interpreter is None:
        return replace(
            target,
            python=None,
            distributions=None,
            api=MappingProxyType({}),
            cuda_of_torch=None,
            gpu_architectures=None,
        )
    parts = _Parts(lambda part: None)
    build = parts.ask("torch", lambda: torch_build(interpreter.folders), None)
    found = parts.ask(
        "distributions", lambda: MappingProxyType(installed(interpreter.folders)), None
    )
    return replace(
        target,
        python=interpreter.version,
        distributions=found,
        api=MappingProxyType({}),
        cuda_of_torch=build.cuda if build else None,
        gpu_architectures=build.architectures if build else None,
        notes=(*target.notes, *parts.notes),
    )


def capture(
    environment: Mapping[str, str],
    *,
    name: str,
    interpreter: Interpreter | None = None,
    libraries: Sequence[str] = LIBRARIES,
    probe: bool = False,
    folders: Sequence[Path] = (),
    tell: Tell = lambda part: None,
) -> Target:
    """This machine as a target for other machines: with the API of libraries, and the network.

    Args:
        environment: variables; secrets are left out.
        name: of the target.
        interpreter: as for `this_machine`.
        libraries: likewise.
        probe: ask whether hosts on the internet can be reached, for at most a second.
        folders: of which it is noted what lies in them.
        tell: as for `this_machine`.

    Raises:
        InputError: a folder cannot be listed.
    """
    found = this_machine(
        environment, name=name, interpreter=interpreter, libraries=libraries, tell=tell
    )
    if probe:
        tell("network")
        found = replace(found, network=system.network())
    else:
        found = replace(found, network=NetworkAccess(), notes=(*found.notes, "network: not probed"))
    for folder in folders:
        tell(str(folder))
        found = _with_listing(found, folder.absolute())
    return found


def _with_listing(target: Target, folder: Path) -> Target:
    try:
        files, listed = system.listing(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed: {error.strerror or error}") from error
    return replace(target, files={**target.files, **files}, listed=(*target.listed, *listed))


class _Parts:
    """Asks for the parts of a target, and notes those that fail."""

    def __init__(self, tell: Tell) -> None:
        self.notes: list[str] = []
        self._tell = tell

    def ask(self, part: str, find: Callable[[], Any], otherwise: Any) -> Any:
        """What ``find`` gives, or ``otherwise`` and a note."""
        self._tell(part)
        try:
            return find()
        except Exception as error:  # whatever a platform comes up with costs this part only
            self.notes.append(f"{part}: {type(error).__name__}: {error}"[:300])
            return otherwise
