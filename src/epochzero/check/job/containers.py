"""What the command or the file that starts a container says of it."""

from __future__ import annotations

from dataclasses import dataclass

from epochzero.check.findings import SourceLocation
from epochzero.check.job.model import CommandSource, Job, Word

ENGINES = ("docker", "podman", "nerdctl", "compose")
"""What gives a container nothing of the machine that is not asked for."""
SHARED_MEMORY_BYTES = 64 << 20
"""Of a container for which nothing else is said: containerd and Docker give it that."""
_GIVES_GPUS = ("--gpus", "--runtime", "--device", "--privileged")


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a Kubernetes manifest or a compose file.

    Attributes:
        draft: the job as far as the file says it.
        place: where it stands.
        words: of its command and arguments; empty where the image or ``text`` says them.
        text: a whole command line, as a RayJob has it.
        folder: in which it starts; None where the image says so.
    """

    draft: Job
    place: SourceLocation
    words: tuple[Word, ...]
    text: Word | None = None
    folder: Word | None = None


def option(job: Job, name: str) -> CommandSource | None:
    """What the container is started with by this name of docker's options; None for nothing."""
    found = (job.said.get(f"{engine} {name}") for engine in ENGINES)
    return next((one for one in found if one is not None), None)


def has_no_gpus(job: Job) -> bool:
    """Whether no GPU is asked for; where NVIDIA's runtime is the usual one, it may get some."""
    started = not set(ENGINES).isdisjoint(job.launchers)
    variables = {"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}
    asked = any(option(job, name) for name in _GIVES_GPUS)
    return started and bool(job.container) and not asked and variables.isdisjoint(job.environment)


def is_offline(job: Job) -> bool:
    """Whether the container has no network."""
    said = option(job, "--network")
    return said is not None and said.text == "none"


def user_of(job: Job) -> str:
    """The user as whom the container runs, when it is surely not the administrator; else empty."""
    said = option(job, "--user")
    name = said.text.partition(":")[0] if said is not None else ""
    return name if name.isdigit() and int(name) else ""
