"""A run as the first process of a container: of a PID namespace of its own."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.run.conftest import PATIENCE_S, Kept, command
from tests.waiting import wait_until

Start = Callable[..., subprocess.Popen[bytes]]

UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc")


def _may_unshare() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(
    not _may_unshare(), reason="this machine lets nobody make a PID namespace"
)


class Container:
    """What runs in a namespace, with a termination log as Kubernetes gives one."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "termination-log"
        self.log.touch()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        devices = "mount -t tmpfs none /dev && touch /dev/null /dev/termination-log"
        bound = f"mount --bind {self.log} /dev/termination-log"
        script = f"{devices} && {bound} && exec {shlex.join(command(*words))}"
        self.process = subprocess.Popen(
            [*UNSHARE, "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        return self.process

    @property
    def init(self) -> int:
        """Its first process, by the number that it has outside."""
        return _children(self.process.pid)[0]


@pytest.fixture
def container(kept: Kept, tmp_path: Path) -> Container:
    return Container(tmp_path)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def test_the_exit_code_and_the_last_words_are_those_of_the_job(
    container: Container, kept: Kept
) -> None:
    out, _ = container.start("sh", "-c", "echo $PPID; exit 3").communicate(timeout=PATIENCE_S)
    assert container.process.returncode == 3
    assert int(out) > 1, "the job is not a child of the first process"
    assert kept.ended.exit_code == 3
    assert container.log.read_text().startswith("sh failed on ")


def test_nothing_is_written_after_success(container: Container) -> None:
    container.start("true").communicate(timeout=PATIENCE_S)
    assert (container.process.returncode, container.log.read_text()) == (0, "")


def test_sigterm_reaches_the_job_and_what_ignores_it_is_killed(
    container: Container, kept: Kept
) -> None:
    ignoring = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.1; done"
    process = container.start("--grace", "1", "--", "sh", "-c", ignoring)
    _line(process)
    subprocess.run(["kill", "-TERM", str(container.init)], check=True)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert b"asked" in out
    assert (process.returncode, kept.ended.signal) == (137, signal.SIGKILL)


def test_what_others_leave_in_the_container_is_waited_for(container: Container) -> None:
    process = container.start("sh", "-c", "echo ready; sleep 60")
    _line(process)
    init = container.init
    entered = ["nsenter", "--target", str(init), "--user", "--pid", "--preserve-credentials"]
    # As `kubectl exec` does it: the parent is outside, and the orphan the first process's.
    subprocess.run([*entered, "sh", "-c", "sleep 0.3 & exit"], check=True)
    assert len(_children(init)) == 2
    wait_until(lambda: len(_children(init)) == 1)  # Else there is a zombie.
    subprocess.run(["kill", "-INT", str(init)], check=True)
    process.communicate(timeout=PATIENCE_S)
