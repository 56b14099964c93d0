"""What a failed attempt missed is looked at after it: paths, ports, disks, names."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.diagnose import Diagnosis, diagnose
from epochzero.diagnose.model import Root
from epochzero.run.records.model import Sample, Start
from epochzero.run.retry import there_now
from tests.run.conftest import Kept

Run = Callable[..., subprocess.CompletedProcess[bytes]]
BEGAN = time.time()
NODE = Start("j", 1, "n", ("python", "train.py"), "/", "node1", "u", 1, BEGAN)


def diagnosed(folder: Path, line: str) -> Diagnosis:
    """What the real diagnosis makes of a traceback that ends with this line."""
    log = folder / "job.log"
    log.write_text(
        f'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n{line}\n'
    )
    return diagnose(log)


def looked(folder: Path, line: str, started: Start = NODE, *samples: Sample) -> str:
    return there_now(diagnosed(folder, line), replace(started, folder=str(folder)), samples)


@pytest.mark.parametrize(
    "line",
    [
        "FileNotFoundError: [Errno 2] No such file or directory: '{}'",
        "cat: {}: No such file or directory",
        "FileNotFoundError: {} does not exist",
        "FileNotFoundError: Data set not found: {}",
    ],
)
def test_a_path_that_was_missing_is_there(tmp_path: Path, line: str) -> None:
    data = tmp_path / "train.bin"
    assert looked(tmp_path, line.format(data)) == ""
    data.touch()
    assert looked(tmp_path, line.format(data)) == f"{data} is there now."


def test_a_relative_path_counts_when_it_was_written_since(tmp_path: Path) -> None:
    line = "FileNotFoundError: [Errno 2] No such file or directory: 'train.bin'"
    (tmp_path / "train.bin").touch()
    later = replace(NODE, time=time.time() + 60)
    assert looked(tmp_path, line, later) == ""
    assert looked(tmp_path, line, replace(NODE, time=BEGAN - 60)) == "train.bin is there now."


@pytest.fixture
def user() -> Iterator[Path]:
    """A folder of a user to whom something can be refused, as this process is meanwhile."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)


def test_a_refused_path_may_be_used(user: Path) -> None:
    data = user / "out.bin"
    line = f"PermissionError: [Errno 13] Permission denied: '{data}'"
    data.touch(mode=0o400)
    assert looked(user, line) == ""
    data.chmod(0o600)
    assert looked(user, line) == f"{data} may be read and written now."
    data.unlink()
    assert looked(user, line) == f"{data} may be read and written now."


def test_a_port_is_free(tmp_path: Path) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        line = (
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local"
            f" network address. port: {port}, useIpv6: false, code: -98, name: EADDRINUSE,"
            " message: address already in use"
        )
        assert looked(tmp_path, line) == ""
    assert looked(tmp_path, line) == f"Port {port} is free now."


def test_a_disk_has_room_that_others_had_taken(tmp_path: Path) -> None:
    line = "OSError: [Errno 28] No space left on device"
    full = Sample(BEGAN, 1.0, 1, 0.0, 0, 0, written_bytes=1 << 12, disk_free_bytes=0)
    assert looked(tmp_path, line, NODE, full)
    filled_it_itself = replace(full, written_bytes=1 << 60)
    assert looked(tmp_path, line, NODE, filled_it_itself) == ""
    full_for_seconds_only = replace(full, disk_free_bytes=1 << 60)
    assert looked(tmp_path, line, NODE, full_for_seconds_only)
    assert looked(tmp_path, line + ": '/proc/x.pt'", NODE, full) == ""


def test_a_name_has_an_address(tmp_path: Path) -> None:
    line = "urllib3.exceptions.NameResolutionError: Failed to resolve '{}'"
    assert looked(tmp_path, line.format("localhost")) == "The name localhost has an address now."
    assert looked(tmp_path, line.format("node.invalid")) == ""


def test_what_another_node_or_a_container_saw_is_not_looked_at(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, f"FileNotFoundError: {tmp_path} does not exist")
    assert there_now(found, NODE)
    assert found.root is not None
    for host, said in (("node1.cluster", True), ("node2", False)):
        assert bool(there_now(replace(found, root=replace(found.root, host=host)), NODE)) is said
    inside = replace(NODE, command=("/usr/bin/docker", "run", "image", "python", "train.py"))
    assert there_now(found, inside) == ""


@given(
    st.text(),
    st.sampled_from(
        ("path_not_found", "permission_denied", "communication_failure", "storage_full")
    ),
)
def test_any_line_is_safe(text: str, category: str) -> None:
    for line in (text, f"No such file or directory: '{text}'", f"port: {text} is in use"):
        root = Root("job.log", 1, line)
        assert isinstance(
            there_now(Diagnosis((), "failed", category, "execution", root=root), NODE), str
        )


def test_a_run_says_so_and_starts_again(
    run: Run, kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file comes while the program ends, as one that another job writes late."""
    monkeypatch.chdir(tmp_path)
    late = tmp_path / "late.bin"
    code = (
        "import atexit, pathlib\n"
        f"late = pathlib.Path({str(late)!r})\n"
        "atexit.register(late.touch)\n"
        "late.open()"
    )
    policy = tmp_path / "soon.toml"
    policy.write_text(
        'title = "once"\n'
        '[[rules]]\ntitle = "there"\nwhen = { evidence = ["there_now"] }\nretries = 1\nreason = "There."\n'
        '[[rules]]\ntitle = "else"\nretries = 0\nreason = "No."\n'
    )
    done = run("--retries", "auto", "--policy", str(policy), "--", sys.executable, "-c", code)
    assert done.returncode == 0
    # A long path is broken at the end of a line.
    assert f"{late}istherenow." in "".join(done.stderr.decode().split())
    late.unlink()
    run("--", sys.executable, "-c", code)
    assert kept.events["there_now"].text == f"{late} is there now."


def test_a_directory_that_another_rank_made_in_between(tmp_path: Path) -> None:
    """After `if not exists` a retry does not come to `mkdir` again; without it, it does."""
    started = replace(NODE, folder=str(tmp_path), time=time.time() - 5)
    for asks, says in (("if not os.path.exists(folder):", True), ("if True:", False)):
        script = tmp_path / "train.py"
        script.write_text(f"import os\nfolder = 'out'\n{asks}\n    os.mkdir(folder)\n")
        log = tmp_path / "job.log"
        log.write_text(
            f'Traceback (most recent call last):\n  File "{script}", line 4, in <module>\n'
            f"    os.mkdir(folder)\nFileExistsError: [Errno 17] File exists: '{tmp_path / 'out'}'\n"
        )
        (tmp_path / "out").mkdir(exist_ok=True)
        assert bool(there_now(diagnose(log), started)) is says
