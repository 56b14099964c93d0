"""``epochzero target``: describes the platform that a job is checked against, as a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from epochzero.cli.group import CommandGroup
from epochzero.cli.layout import plain, wrapped
from epochzero.cli.line import line
from epochzero.cli.output import OutputFile, echo_json, file_option, format_option
from epochzero.errors import writing

if TYPE_CHECKING:
    from epochzero.check.target import Comparison, PythonInstallation
    from epochzero.check.target.model import Target


MOST_SHOWN = 12


@click.group(cls=CommandGroup, name="target")
def command() -> None:
    """Describe the platform that jobs are checked against.

    \b
    epochzero target capture -o cluster.toml      # on the platform, in the job's container
    epochzero target show cluster.toml
    epochzero target diff laptop.toml cluster.toml
    epochzero target presets
    """


@command.command(name="capture")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=OutputFile(),
    help="Output file.  [default: standard output]",
)
@click.option("--name", help="Name of the target.  [default: from FILE, else the host name]")
@click.option(
    "--api",
    "libraries",
    multiple=True,
    metavar="LIB",
    help="Record the public API of this module instead of the default ones; repeatable.",
)
@file_option(
    "--packages", help="Read the packages from this file (requirements, lock file, conda)."
)
@click.option(
    "--python",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Python interpreter of the job, such as .venv/bin/python.  [default: `python` on PATH]",
)
@click.option(
    "--image",
    metavar="ARCHIVE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Describe this container image (docker save, OCI) instead of this machine; it is not run.",
)
@click.option(
    "--nodes",
    metavar="FILE",
    type=click.File(errors="replace"),
    help="Describe the nodes in this output of scontrol, sinfo or kubectl (`-` is standard input).",
)
@click.option(
    "--pool", metavar="NAME", default="", help="Partition, node pool or label of the nodes."
)
@click.option(
    "--list",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Record the files in this directory, for example a data directory; repeatable.",
)
@click.option("--probe", is_flag=True, help="Test internet access (takes up to one second).")
def capture(
    output: Path | None,
    name: str | None,
    libraries: tuple[str, ...],
    packages: Path | None,
    python: Path | None,
    image: Path | None,
    nodes: IO[str] | None,
    pool: str,
    folders: tuple[Path, ...],
    probe: bool,
) -> None:
    """Describe this machine, as jobs see it, in a target file.

    Run this command on the platform, in the container of the job. Packages are read from the `python` on
    PATH, or from --python, without running it. Nothing is imported, and only FILE is written. Properties
    that cannot be determined are noted in the file. Values of variables that look like secrets are
    omitted; review the file before you share it.

    \b
    epochzero target capture -o cluster.toml
    epochzero target capture --python .venv/bin/python -o cluster.toml
    epochzero target capture --api torch --api mylib > cluster.toml
    epochzero target capture --image image.tar -o image.toml
    scontrol show node | epochzero target capture --nodes - --pool gpu -o gpu.toml

    Exit code 0 if the file was written, 2 if it cannot be written.
    """
    import platform

    from epochzero.check.target import read_image
    from epochzero.check.target.api import LIBRARIES
    from epochzero.check.target.file import LARGEST_TARGET_BYTES
    from epochzero.check.target.model import Target
    from epochzero.check.target.nodes import only_installed, with_nodes

    named_by = output or image
    name = name or (named_by.stem if named_by else pool or platform.node() or "this machine")
    if ((image or nodes) and (folders or probe)) or (image and python):
        raise click.UsageError(
            "--image and --nodes cannot be combined with --list or --probe, nor --image with --python"
        )
    if pool and not nodes:
        raise click.UsageError("--pool requires --nodes")
    text = nodes.read(LARGEST_TARGET_BYTES) if nodes else ""
    libraries = libraries or LIBRARIES
    with line() as shown:

        def progress(part: str) -> None:
            shown.show(f"capturing: {part}", at_once=part == "api")

        if image is not None:
            target = read_image(image, name=name, libraries=libraries, on_progress=progress)
        elif nodes and python is None:
            target = Target(name)
        else:
            target = _captured(python, name, libraries, folders, probe, progress)
            target = only_installed(target) if nodes else target
    _write_target(with_nodes(target, text, pool) if nodes else target, packages, output)


def _captured(
    python: Path | None,
    name: str,
    libraries: Sequence[str],
    folders: Sequence[Path],
    probe: bool,
    progress: Callable[[str], None],
) -> Target:
    from epochzero.check.target import capture as find

    origin, interpreter = _interpreter(python)
    click.echo(plain(f"Python: {origin}"), err=True)
    environment = dict(os.environ)
    if python is not None:
        # The environment of that Python is active in the job: torchrun and accelerate are next to it.
        environment["PATH"] = f"{python.absolute().parent}:{environment.get('PATH', '')}"
    return find(
        environment,
        name=name,
        interpreter=interpreter,
        libraries=libraries,
        probe=probe,
        folders=folders,
        on_progress=progress,
    )


def _write_target(target: Target, packages: Path | None, output: Path | None) -> None:
    from epochzero.check.target import with_packages, write_target

    if packages is not None:
        target = with_packages(target, packages)
    text = write_target(target)
    if output is None:
        click.echo(text, nl=False)
        return
    with writing(output):
        output.write_text(text, encoding="utf-8")
    click.echo(f"{output}: {len(text.encode()):,} bytes", err=True)
    for note in target.notes:
        click.echo(f"  {plain(note)}", err=True)


def _interpreter(named: Path | None) -> tuple[str, PythonInstallation]:
    """Return the Python to describe: the given one, otherwise the one that a job would find."""
    from epochzero.check.launch import read_job
    from epochzero.check.target import read_interpreter, running

    job = read_job(("python", "-m", "job"), Path.cwd(), os.environ).jobs[0]
    program = named or job.interpreter
    if program is None:
        return f"{sys.executable}, which runs this; no `python` is on the path", running()
    found = read_interpreter(program, home=os.environ.get("HOME", ""))
    version = ".".join(map(str, found.version or ()))
    named_by = "--python" if named else "the `python` of the path"
    return f"{program} {version}".strip() + f", {named_by}", found


@command.command(name="show")
@click.argument("target")
def show(target: str) -> None:
    """Print TARGET: a file, or GPUs such as '8 x H100'.

    \b
    epochzero target show cluster.toml

    Exit code 0 if the target is valid, 2 if not.
    """
    from epochzero.check.target import read_target

    found = read_target(target)
    for label, text in _described(found):
        if text:
            click.echo(wrapped(label, text))


@command.command(name="diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@format_option("Output format.")
def diff(first: str, second: str, form: str) -> None:
    """List what a job that runs on A may lack on B, worst first.

    Each difference names the failure category it can cause. Additional resources of B are not
    differences. Properties that only one target specifies are listed at the end.

    \b
    epochzero target diff laptop.toml cluster.toml

    Exit code 0 if there are no differences, 1 if there are, 2 if a target is invalid.
    """
    from epochzero.check.target import differences, read_target

    found = differences(read_target(first), read_target(second))
    if form == "json":
        echo_json(found.to_dict())
    else:
        _write(found)
    sys.exit(1 if found.differences else 0)


@command.command(name="presets")
def list_presets() -> None:
    """List the GPU names that a target can use: gpus = "8 x H100"."""
    from epochzero.check.target import first_cuda, presets

    for name, gpu in presets().items():
        memory = f"{gpu.memory_bytes / (1 << 30):.1f} GiB"
        build = "no CUDA"
        if gpu.capability is not None:
            major, minor = gpu.capability
            build = f"sm_{major}{minor}, CUDA {first_cuda(gpu.capability)} or newer"
        click.echo(f"{name:<16}{gpu.model:<40}{memory:>10}  {build}")


def _described(target: Target) -> Iterable[tuple[str, str]]:
    """Yield the parts of a target for people."""
    gpus = target.gpus
    user = target.user
    yield "Target", target.name
    yield "Python", ".".join(map(str, target.python or ()))
    yield "GPUs", "" if gpus is None else f"{len(gpus)} x {gpus[0].model}" if gpus else "none"
    yield "Driver", ", CUDA up to ".join(each for each in (target.driver, target.cuda) if each)
    if target.cuda_of_torch is not None:
        built = f"built for CUDA {target.cuda_of_torch}" if target.cuda_of_torch else "a CPU build"
        yield "torch", f"{built}  {' '.join(target.gpu_architectures or ())}"
    yield "Nodes", str(target.nodes or "")
    yield "Processors", str(target.cpus or "")
    yield "Memory", _size(target.memory_bytes)
    yield "/dev/shm", _size(target.shared_memory_bytes)
    yield "User", f"{user.name} (uid {user.uid})" if user else ""
    yield "Folder", target.working_folder
    for mount in target.mounts or ():
        mode = "writable" if mount.writable else "read-only"
        yield "Mount", f"{mount.path}: {mode} {_size(mount.free_bytes)}"
    packages = sorted(
        (target.distributions or {}).values(), key=lambda distribution: distribution.name.lower()
    )
    yield "Packages", _few(f"{package.name} {package.version}" for package in packages)
    yield "API", _few(sorted({module.split(".")[0] for module in target.api}))
    yield "Programs", _few(sorted(target.programs or ()))
    yield "Libraries", _few(sorted(target.shared_libraries or ()))
    yield "Environment", _few(sorted(target.environment or ()))
    internet = {True: "internet", False: "no internet", None: ""}[target.network.internet]
    yield "Network", ", ".join([internet, *target.network.hosts]).strip(", ")
    for note in target.notes:
        yield "Note", note


def _size(number: int | None) -> str:
    return "" if number is None else f"{number / (1 << 30):,.1f} GiB"


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST_SHOWN} more" if len(listed) > MOST_SHOWN else ""
    return ", ".join(listed[:MOST_SHOWN]) + more


def _write(found: Comparison) -> None:
    for each in found.differences:
        title = f"{each.kind} {each.name}".strip()
        click.echo(
            click.style(plain(f"{title}: {each.first} -> {each.second}"), bold=True)
            + plain(f"  ({each.category})")
        )
        click.echo(plain(f"    {each.consequence}"))
    if not found.differences:
        click.echo(plain(f"nothing that {found.first} has is missing on {found.second}"))
    if found.unknown:
        click.echo(f"not compared, since only one target specifies it: {', '.join(found.unknown)}")
