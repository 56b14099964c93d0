"""This machine as a target; each part is determined separately, so that a failure affects only that part."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from epochzero.check.target import system
from epochzero.check.target.api import LIBRARIES, read_api
from epochzero.check.target.interpreter import PythonInstallation, running
from epochzero.check.target.model import NetworkAccess, Target
from epochzero.check.target.packages import installed
from epochzero.check.target.torch_build import torch_build
from epochzero.errors import InputError

MOST_API_NAMES = 750_000
"""The public API of common libraries, and the outermost module of transformers."""

OnProgress = Callable[[str], None]


def this_machine(
    environment: Mapping[str, str],
    *,
    name: str = "this machine",
    interpreter: PythonInstallation | None = None,
    libraries: Sequence[str] = (),
    on_progress: OnProgress = lambda part: None,
) -> Target:
    """Describe this machine as an interpreter and the current user see it.

    No library is imported and nothing is written. A part that cannot be determined stays unknown and is named in ``notes``.

    Args:
        environment: variables; secrets are omitted from the target.
        name: of the target.
        interpreter: Python whose distributions and modules are read; None for the running one.
        libraries: modules whose public API is read; missing ones are skipped.
        on_progress: called with the name of each part before it is determined.
    """
    interpreter = interpreter or running()
    folders = interpreter.folders
    parts = _Parts(on_progress)
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


def with_interpreter(target: Target, interpreter: PythonInstallation | None) -> Target:
    """The same machine with another interpreter; None for an unknown one."""
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
    interpreter: PythonInstallation | None = None,
    libraries: Sequence[str] = LIBRARIES,
    probe: bool = False,
    folders: Sequence[Path] = (),
    on_progress: OnProgress = lambda part: None,
) -> Target:
    """Describe this machine for use on other machines: with the API of libraries, and the network.

    Args:
        environment: variables; secrets are omitted.
        name: of the target.
        interpreter: as for `this_machine`.
        libraries: likewise.
        probe: test whether hosts on the internet can be reached, for at most a second.
        folders: directories whose content is recorded.
        on_progress: as for `this_machine`.

    Raises:
        InputError: a directory cannot be listed.
    """
    found = this_machine(
        environment,
        name=name,
        interpreter=interpreter,
        libraries=libraries,
        on_progress=on_progress,
    )
    if probe:
        on_progress("network")
        found = replace(found, network=system.network())
    else:
        found = replace(found, network=NetworkAccess(), notes=(*found.notes, "network: not probed"))
    for folder in folders:
        on_progress(str(folder))
        found = _with_listing(found, folder.absolute())
    return found


def _with_listing(target: Target, folder: Path) -> Target:
    try:
        files, listed = system.listing(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be listed: {error.strerror or error}") from error
    return replace(target, files={**target.files, **files}, listed=(*target.listed, *listed))


class _Parts:
    """Determine the parts of a target, and record those that fail."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.notes: list[str] = []
        self._on_progress = on_progress

    def ask(self, part: str, find: Callable[[], Any], otherwise: Any) -> Any:
        """Return the result of ``find``, or ``otherwise`` and record a note."""
        self._on_progress(part)
        try:
            return find()
        except Exception as error:  # whatever a platform comes up with costs this part only
            self.notes.append(f"{part}: {type(error).__name__}: {error}"[:300])
            return otherwise
