"""Containers that a Kubernetes manifest or a compose file starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import yaml

from epochzero.check.launch import compose, kubernetes
from epochzero.check.launch.containers import Container
from epochzero.check.launch.model import Word
from epochzero.check.launch.options import apply_options, enter_inside, run_other_subcommand, take
from epochzero.check.launch.setting import Record, Script, Setting
from epochzero.check.launch.shell_commands import read_script, run_text
from epochzero.errors import InputError
from epochzero.file_access import is_file
from epochzero.launchers import Launcher


def run_manifest(word: Word, setting: Setting) -> None:
    """Follow each container's command in a Kubernetes manifest or a compose file.

    Raises:
        InputError: it is named on the command line and cannot be read, or is not valid YAML.
    """
    script = read_script(word, setting)
    if script is None:
        return
    with _as_yaml(word):
        if compose.is_compose(script.text):
            containers = [*_services_of(script, setting).values()]
        else:
            containers = list(kubernetes.containers_of(script, setting.draft))
    _run_containers(containers, word, script, setting)


@contextmanager
def _as_yaml(word: Word) -> Iterator[None]:
    try:
        yield
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise InputError(f"{word.text} is not valid YAML: {problem}") from error


def _run_containers(
    containers: Sequence[Container],
    word: Word,
    script: Script,
    setting: Setting,
    change: Callable[[Setting], None] = lambda _: None,
) -> None:
    """Follow the commands of containers, each with its own record; ``change`` applies the options of the command."""
    for container in containers:
        inner = setting.inner()
        record = setting.record
        inner.draft, inner.script = container.draft, script
        inner.record = Record(record.root, record.given, record.command, record.follow)
        change(inner)
        _in_pod(container, inner)
        record.jobs.extend(inner.record.whole())
        record.unknowns.extend(inner.record.unknowns)
    if containers and not any(container.words or container.text for container in containers):
        reason = "without a command, the image determines what runs"
        setting.record.unknown(f"the containers of {word.text}", reason, containers[0].place)


def _in_pod(container: Container, setting: Setting) -> None:
    if container.folder is not None:
        enter_inside(container.folder, setting)
    else:
        setting.lost = "the image determines the working directory"
    if container.words:
        setting.follow(container.words)
    elif container.text is not None:
        run_text(container.text, setting)


def run_services(launcher: Launcher, words: Sequence[Word], setting: Setting) -> None:
    """``docker compose -f FILE up``, ``docker compose run SERVICE COMMAND``.

    Raises:
        InputError: the file or the service does not exist.
    """
    before = take(launcher, words[1:])
    if not before.rest or before.rest[0].text not in launcher.subcommands:
        run_other_subcommand(words, setting)
        return
    after = take(launcher, before.rest[1:])
    options = (*before.options, *after.options)
    option_values = {option.meaning: value for option, value in options}
    file = option_values.get("manifest") or _usual_file(words[0], setting)
    script = read_script(file, setting)
    if script is None:
        return
    with _as_yaml(file):
        services = _services_of(script, setting)
    runs = before.rest[0].text == "run"
    asked = after.rest[:1] if runs else after.rest
    for name in asked:
        if name.known and name.text not in services:
            raise InputError(
                f"{script.label} has no service {name.text}; its services: {', '.join(services)}"
            )
    chosen = [services[name.text] for name in asked if name.text in services]
    if runs and (len(after.rest) > 1 or "entrypoint" in option_values):
        start = [
            word for word in (option_values.get("entrypoint"),) if word is not None and word.text
        ]
        chosen = [replace(container, words=(*start, *after.rest[1:])) for container in chosen]
    _run_containers(
        chosen if asked else [*services.values()],
        file,
        script,
        setting,
        lambda inner: apply_options(launcher, "compose", after.options, inner),
    )


def _usual_file(head: Word, setting: Setting) -> Word:
    """The default compose file."""
    folder = setting.draft.folder
    found = (name for name in compose.NAMES if is_file(folder / name))
    return replace(head, text=next(found, compose.NAMES[0]))


def _services_of(script: Script, setting: Setting) -> Mapping[str, Container]:
    folder = Path(os.path.abspath(setting.draft.folder / script.path)).parent
    return compose.services_of(script, setting.draft, folder, setting.record.given)
