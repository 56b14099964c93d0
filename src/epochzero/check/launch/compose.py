"""Compose files: the services of ``docker compose``, each a container.

Source: Compose Specification. `<<`, ``extends`` within the file and ``${NAME:-default}`` are followed; profiles and
overlays of several files are not.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import yaml

from epochzero.check.launch.containers import SHARED_MEMORY_BYTES, Container
from epochzero.check.launch.meanings import MEANINGS, bytes_of, count_of, with_source
from epochzero.check.launch.model import Job, Word
from epochzero.check.launch.nodes import entries, entry, listed, place_of, written
from epochzero.check.launch.setting import Script, read_text
from epochzero.errors import InputError
from epochzero.file_access import is_file

NAMES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
"""Default names of the file, in the order of the search."""
MOST_EXTENDED, MOST_MERGED = 3, 10
_Keys: TypeAlias = dict[str, yaml.Node]
_REFERENCE = re.compile(r"\$(?:\$|(\w+)|\{(\w+)(?:(:?[-?+])([^{}]*))?\})")
_SAID = {
    "user": ("--user", ""),
    "network_mode": ("--network", ""),
    "runtime": ("--runtime", ""),
    "privileged": ("--privileged", ""),
    "gpus": ("--gpus", "docker_gpus"),
    "mem_limit": ("--memory", "memory"),
    "cpus": ("--cpus", "cpus"),
    "shm_size": ("--shm-size", "shared_memory"),
    "ipc": ("--ipc", "ipc"),
    "tmpfs": ("--tmpfs", "tmpfs"),
}
"""Keys of a service, with docker's equivalent option and the meaning of its value."""


def is_compose(text: str) -> bool:
    """Whether a YAML text has services.

    Raises:
        yaml.YAMLError: it is not valid YAML.
    """
    first = next(yaml.compose_all(text, Loader=yaml.SafeLoader), None)
    return entry(first, "services") is not None


def services_of(
    script: Script, draft: Job, folder: Path, given: Mapping[str, str] | None
) -> Mapping[str, Container]:
    """Return the services of a compose file, by name.

    Args:
        script: the file.
        draft: the job so far.
        folder: absolute directory of the file, to which its paths are relative.
        given: the environment in which it is started; None if unknown.

    Raises:
        yaml.YAMLError: it is not valid YAML.
    """
    document = yaml.compose(script.text, Loader=yaml.SafeLoader)
    reader = _File(script, entry(document, "services"), folder, given)
    return {name: reader.container(node, draft) for name, node in entries(reader.services)}


@dataclass(frozen=True)
class _File:
    """A compose file."""

    script: Script
    services: yaml.Node | None
    folder: Path
    given: Mapping[str, str] | None

    def container(self, node: yaml.Node, draft: Job) -> Container:
        """What a service runs, and its resources."""
        keys = self.keys(node)
        draft = replace(
            draft,
            launchers=(*draft.launchers, "compose"),
            container=written(keys.get("image")) or "the one that is built",
            environment={**draft.environment, **self.environment(keys)},
        ).with_allocation(nodes=1, shared_memory_bytes=SHARED_MEMORY_BYTES)
        draft = self.volumes(keys.get("volumes"), self.devices(keys, draft))
        for key, (option, meaning) in _SAID.items():
            for item in _one_or_listed(keys.get(key)):
                word = self.word(item)
                draft = with_source(draft, "compose", option, word)
                draft = MEANINGS[meaning](draft, word) if meaning else draft
        words = (*self.words(keys.get("entrypoint")), *self.words(keys.get("command")))
        started = keys.get("working_dir")
        place = place_of(self.script, node)
        return Container(
            draft, place, words, folder=None if started is None else self.word(started)
        )

    def keys(self, node: yaml.Node, seen: frozenset[yaml.Node] = frozenset()) -> _Keys:
        """The entries of a service, including inherited ones; its own win."""
        own = dict(entries(node))
        extended, merged = own.get("extends"), own.pop("<<", None)
        name = written(entry(extended, "service")) or written(extended)
        base = entry(self.services, name) if entry(extended, "file") is None else None
        found: _Keys = {}
        for item in (base, merged, *islice(listed(merged), MOST_MERGED)):
            if item is not None and item not in seen and len(seen) < MOST_EXTENDED:
                found |= self.keys(item, seen | {node})
        return found | own

    def word(self, node: yaml.Node, text: str | None = None) -> Word:
        """A scalar, or a part of it, with its variables replaced."""
        known = True

        def value(found: re.Match[str]) -> str:
            nonlocal known
            name, operator, otherwise = found[1] or found[2], found[3] or "", found[4] or ""
            if name is None:
                return "$"
            entry_ = self.variables.get(name)
            known = known and self.given is not None and not operator.endswith("+")
            return otherwise if entry_ is None or (not entry_ and operator[:1] == ":") else entry_

        replaced = _REFERENCE.sub(value, written(node) if text is None else text)
        return Word(replaced, place_of(self.script, node), known)

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that the file may use: those of ``.env`` in its directory, overridden by the environment."""
        return {**_variables_in(self.folder / ".env"), **(self.given or {})}

    def words(self, node: yaml.Node | None) -> tuple[Word, ...]:
        """A command: a list, or a text that is split like a shell command."""
        if not isinstance(node, yaml.ScalarNode):
            return tuple(self.word(element) for element in listed(node))
        try:
            return tuple(self.word(node, text) for text in shlex.split(node.value))
        except ValueError:
            return (replace(self.word(node), known=False),)

    def environment(self, keys: Mapping[str, yaml.Node]) -> dict[str, str | None]:
        """The variables that the container receives."""
        found: dict[str, str | None] = {}
        for file in _one_or_listed(keys.get("env_file")):
            found |= _variables_in(self.folder / (written(file) or written(entry(file, "path"))))
        node = keys.get("environment")
        for key, value in entries(node):
            word = self.word(value)
            found[key] = word.text if word.known else None
        for element in listed(node):
            name, equals, _ = written(element).partition("=")
            word = self.word(element)
            found[name] = word.text.partition("=")[2] if word.known and equals else None
        return found

    def volumes(self, node: yaml.Node | None, draft: Job) -> Job:
        """The mounts of the container; a named volume is not a directory of this machine."""
        for element in listed(node):
            entry_ = {key: self.word(value).text for key, value in entries(element)}
            outside, inside = entry_.get("source", ""), entry_.get("target", "")
            mode = "ro" if entry_.get("read_only") == "true" else "rw"
            if not entry_:
                outside, _, rest = self.word(element).text.partition(":")
                inside, _, mode = rest.partition(":")
            if outside.startswith("."):
                outside = os.path.abspath(self.folder / outside)
            elif entry_.get("type") == "tmpfs":
                outside = "tmpfs"
            elif not outside.startswith(("/", "~")):
                outside = f"volume {outside}"
            mount = f"source={outside},target={inside},{mode}"
            draft = MEANINGS["mount"](draft, Word(mount, place_of(self.script, element)))
        return draft

    def devices(self, keys: Mapping[str, yaml.Node], draft: Job) -> Job:
        """GPUs and memory that are reserved in the swarm syntax."""
        resources = entry(keys.get("deploy"), "resources")
        memory = entry(resources, "limits", "memory")
        if memory is not None:
            draft = draft.with_allocation(memory_bytes=bytes_of(self.word(memory).text))
        for device in listed(entry(resources, "reservations", "devices")):
            if "gpu" in [written(element) for element in listed(entry(device, "capabilities"))]:
                word = self.word(device, written(entry(device, "count")) or "all")
                named = listed(entry(device, "device_ids"))
                draft = with_source(draft, "compose", "--gpus", word)
                draft = draft.with_allocation(gpus_per_node=len(named) or count_of(word.text))
        return draft


def _one_or_listed(node: yaml.Node | None) -> Sequence[yaml.Node]:
    """The items of a list, or the single node."""
    return listed(node) or ([node] if node is not None else [])


def _variables_in(file: Path) -> dict[str, str]:
    """The variables of a file of ``NAME=value`` lines; none if it cannot be read."""
    try:
        lines = read_text(file).splitlines() if is_file(file) else []
    except InputError:
        return {}
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines)
    return {
        name.strip(): value.strip().strip("\"'")
        for name, equals, value in pairs
        if equals and not name.startswith("#")
    }
