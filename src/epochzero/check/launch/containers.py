"""What the command or file that starts a container states about it."""

from __future__ import annotations

from dataclasses import dataclass

from epochzero.check.findings import SourceLocation
from epochzero.check.launch.model import CommandSource, Job, Word

ENGINES = ("docker", "podman", "nerdctl", "compose")
"""Engines that give a container no device of the machine unless requested."""
SHARED_MEMORY_BYTES = 64 << 20
"""Default size of ``/dev/shm`` in containerd and Docker."""
_GIVES_GPUS = ("--gpus", "--runtime", "--device", "--privileged")


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a Kubernetes manifest or a compose file.

    Attributes:
        draft: the job as far as the file determines it.
        place: location of the container.
        words: words of its command and arguments; empty if the image or ``text`` determines them.
        text: a whole command line, as in a RayJob.
        folder: working directory; None if the image determines it.
    """

    draft: Job
    place: SourceLocation
    words: tuple[Word, ...]
    text: Word | None = None
    folder: Word | None = None


def option(job: Job, name: str) -> CommandSource | None:
    """The value of a docker option; None if it is not given."""
    found = (job.argument_sources.get(f"{engine} {name}") for engine in ENGINES)
    return next((source for source in found if source is not None), None)


def has_no_gpus(job: Job) -> bool:
    """Whether no GPU is requested; it may get some if NVIDIA's runtime is the default."""
    started = not set(ENGINES).isdisjoint(job.launchers)
    variables = {"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}
    asked = any(option(job, name) for name in _GIVES_GPUS)
    return started and bool(job.container) and not asked and variables.isdisjoint(job.environment)


def is_offline(job: Job) -> bool:
    """Whether the container has no network."""
    given = option(job, "--network")
    return given is not None and given.text == "none"


def user_of(job: Job) -> str:
    """The user of the container if it certainly is not root; else empty."""
    given = option(job, "--user")
    name = given.text.partition(":")[0] if given is not None else ""
    return name if name.isdigit() and int(name) else ""
