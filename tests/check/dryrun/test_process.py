"""Jobs that misbehave, for real: the parent lives and explains, and nothing of them lasts."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import epochzero
from epochzero.check.dryrun.contain import Exit, Limits, Means, best_containment, containment_by
from epochzero.check.dryrun.contain.environment import contained_environment
from epochzero.check.dryrun.process import run_contained
from tests.waiting import wait_until

SOURCE = str(Path(epochzero.__file__).parent.parent)
MEBIBYTE = 1 << 20
LIMITS = Limits(
    seconds=60,
    memory_bytes=512 * MEBIBYTE,
    processes=24,
    file_bytes=8 * MEBIBYTE,
    written_bytes=32 * MEBIBYTE,
)

namespaces = pytest.mark.skipif(
    best_containment().means is not Means.NAMESPACES,
    reason=f"this system has no namespaces for us: {best_containment().reason}",
)


class Case(NamedTuple):
    """A program, and what is said of its end or stands in its output."""

    code: str
    why: str
    output: str = ""
    limits: dict[str, float] = {}  # noqa: RUF012 - never changed


CASES = {
    "does nothing": Case("", "It exited with exit status 0"),
    "raises": Case("1 / 0", "exit status 1", "ZeroDivisionError"),
    "loops for ever": Case("while True: pass", "time limit of 1 s", "", {"seconds": 1}),
    "ignores signals": Case(
        """
        import signal
        for number in set(range(1, 32)) - {9, 19}:
            signal.signal(number, signal.SIG_IGN)
        while True: pass
        """,
        "time limit of 1 s", "", {"seconds": 1},
    ),
    "fork bomb": Case(
        """
        import os
        while True:
            try: os.fork()
            except OSError: pass
        """,
        "more than 24 processes",
    ),
    "daemon": Case(
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        os.wait()
        """,
        "exit status 0",
    ),
    "reads its input": Case("print(repr(input()))", "exit status 1", "EOFError"),
    "leaves at once": Case("import os; os._exit(7)", "exit status 7"),
    "allocates what is not there": Case("bytearray(100 << 30)", "exit status 1", "MemoryError"),
    "fills memory": Case(
        "kept = []\nwhile True: kept.append(b'x' * (1 << 22))",
        "more than 0.5 GB of memory|exit status 1",
    ),
    "crashes": Case("import ctypes; ctypes.string_at(0)", "SIGSEGV.*invalid memory"),
    "aborts": Case("import os; os.abort()", "SIGABRT"),
    "kills itself": Case("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
    "large file": Case(
        "stream = open('big', 'wb')\nwhile True: stream.write(bytes(1 << 20))",
        "exit status 1", "File too large",
    ),
    "many files": Case(
        "for n in range(1000): open(f'f{n}', 'wb').write(bytes(1 << 20))",
        "exit status 1", "No space left",
    ),
    "prints a gigabyte": Case(
        "import os\nfor n in range(1 << 10): os.write(1, b'y' * (1 << 20))\nprint('end')",
        "exit status 0", "bytes left out.*end",
    ),
    "prints no text": Case("import os; os.write(1, bytes(range(256)))", "exit status 0"),
    "closes all descriptors": Case("import os; os.closerange(0, 256)", "exit status"),
    "deletes its folder": Case(
        "import os, shutil; shutil.rmtree(os.getcwd()); print(os.path.exists('data'))",
        "exit status 0", "False",
    ),
    "locks its folder": Case(
        "import os\nos.chmod('data', 0); os.chmod('.', 0)", "exit status 0"
    ),
    "writes through a link": Case(
        "import os; os.symlink('data/kept.txt', 'way'); open('way', 'w').write('gone')",
        "exit status 0",
    ),
    "raises its limits": Case(
        """
        import resource
        for which in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_DATA):
            resource.setrlimit(which, (resource.RLIM_INFINITY,) * 2)
        """,
        "exit status 1", "not allowed to raise",
    ),
    "needs a display": Case(
        "import os; print(os.environ['DISPLAY'])", "exit status 1", "KeyError: 'DISPLAY'"
    ),
}  # fmt: skip

IN_NAMESPACES = {
    "kills all": Case("import os\nos.kill(-1, 9)", "exit status 1", "No such process"),
    "kills process 1": Case(
        "import os, time\nos.kill(1, 9); time.sleep(0.1); print('alive')", "exit|", "alive|Perm"
    ),
    "traces its parent": Case(
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.ptrace(16, os.getppid(), 0, 0), os.strerror(ctypes.get_errno()))
        """,
        "exit status 0", "-1 Operation not permitted",
    ),
    "unmounts": Case(
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for point in ("/", os.getcwd(), "/proc", "/proc/sys", "/dev", "/tmp", "/sys"):
            libc.umount2(point.encode(), 2)
            libc.mount(None, point.encode(), None, 0x1020, None)
        open("/proc/sys/kernel/hostname", "w").write("mine")
        """,
        "exit status 1", "Permission denied|Read-only",
    ),
    "unmounts in a user namespace of its own": Case(
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.unshare(0x10020000))
        for point in ("/", "/proc/sys", "/dev", "/tmp", "/sys"):
            libc.umount2(point.encode(), 2)
            libc.mount(None, point.encode(), None, 0x1020, None)
        open("data/kept.txt", "w").write("gone")
        print(os.listdir("/sys") != [])
        """,
        "exit status", "True|Error",
    ),
    "writes to the kernel": Case(
        "open('/sys/kernel/mm/transparent_hugepage/enabled', 'w').write('never')",
        "exit status 1", "Read-only|Permission denied|No such file",
    ),
    "makes a device": Case(
        "import os; os.mknod('disk', 0o60600, os.makedev(254, 0)); os.open('disk', 0)",
        "exit status 1", "not permitted|denied",
    ),
    "connects": Case(
        "import socket; socket.create_connection(('192.0.2.1', 80), 5)",
        "exit status 1", "unreachable|abort",
    ),
    "resolves": Case(
        "import socket; socket.getaddrinfo('example.org', 80)", "exit status 1", "gaierror"
    ),
    "serves": Case(
        """
        import socket, threading
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        print("connected", server.accept()[1][0])
        """,
        "exit status 0", "connected 127.0.0.1",
    ),
    "shared memory": Case(
        """
        from multiprocessing import shared_memory
        print(shared_memory.SharedMemory(create=True, size=1 << 20, name="epochzero-test").size)
        """,
        "exit status 0", "1048576",
    ),
}  # fmt: skip

WORKERS = """
import multiprocessing, sys
def work(number):
    return number * number
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(work, range(4)))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's folder."""
    folder = tmp_path / "job"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "kept.txt").write_text("kept")
    return folder


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Exit]]:
    """Run a program; afterwards nothing may have changed, and no process or scratch be left."""
    scratches = folder.parent / "scratches"
    scratches.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratches))
    before = state_of(folder)

    def run(code: str, means: Means = Means.NAMESPACES, **limits: float) -> Exit:
        (folder.parent / "script.py").write_text(textwrap.dedent(code))
        return run_contained(
            [sys.executable, str(folder.parent / "script.py")],
            folder=folder,
            environment={"PATH": os.environ["PATH"], "DISPLAY": ":0"},
            limits=dataclasses.replace(LIMITS, **limits),
            spec=b"{}",
            containment=containment_by(means),
        )

    yield run
    assert state_of(folder) == before
    assert os.listdir(scratches) == []
    assert not processes_with(str(folder.parent))


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in (folder, *sorted(folder.rglob("*")))
    }


def processes_with(text: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in command and process.name != str(os.getpid()):
            found.append(command.decode())
    return found


MOUNTED = pytest.mark.xfail(
    os.geteuid() != 0,
    reason="the folder of a job is a mount point for anyone but root",
    strict=True,
)


@namespaces
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=MOUNTED if name == "deletes its folder" else ())
        for name in (*CASES, *IN_NAMESPACES)
    ],
)
def test_whatever_a_job_does_is_survived_and_explained(name: str, run: Callable[..., Exit]) -> None:
    case = (CASES | IN_NAMESPACES)[name]
    ended = run(case.code, **case.limits)
    assert re.search(case.why, ended.why), ended
    assert re.search(case.output, ended.output, re.DOTALL), ended
    assert len(ended.output) < 2 * LIMITS.output_bytes


@namespaces
def test_workers_of_every_start_method_run(run: Callable[..., Exit]) -> None:
    ended = run(WORKERS)
    assert ended.output.splitlines() == [
        f"{method} [0, 1, 4, 9]" for method in ("fork", "spawn", "forkserver")
    ]


@namespaces
def test_workers_of_a_data_loader_share_memory(run: Callable[..., Exit]) -> None:
    pytest.importorskip("torch")
    ended = run(
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.zeros(8, 1000))
        print(sum(len(batch) for batch, in DataLoader(data, batch_size=2, num_workers=2)))
        """,
        seconds=60,
        memory_bytes=4096 * MEBIBYTE,
    )
    assert ended.output == "8\n", ended


@namespaces
def test_what_would_have_been_written_is_told(run: Callable[..., Exit], folder: Path) -> None:
    ended = run(
        """
        import os
        os.makedirs("out/deep")
        open("out/deep/model.pt", "wb").write(bytes(1000))
        open("data/kept.txt", "a").write(" and more")
        os.remove("data/kept.txt"); os.mkdir("empty")
        print(open("out/deep/model.pt", "rb").read() == bytes(1000))
        """
    )
    told = {str(c.path.relative_to(folder)): (c.how, c.size) for c in ended.changes}
    assert told.pop("out/deep/model.pt") == ("created", 1000)
    assert told.pop("data/kept.txt") == ("deleted", 0)
    assert set(told) == {"out", "out/deep", "empty"}
    assert ended.output == "True\n"


@namespaces
def test_records_come_as_lines_within_bounds(run: Callable[..., Exit]) -> None:
    ended = run(
        """
        import os
        print(os.read(3, 100))
        os.write(4, b'{"kind": "a"}\\n\\n\\xff\\x00\\n')
        with open(4, "wb") as records:
            records.write(b"x" * (3 << 20) + b"\\nafter\\n" + b"n\\n" * 20 + b"unfinished")
        """,
        records=10,
    )
    assert ended.records == (b'{"kind": "a"}', b"\xff\x00", b"after", *[b"n"] * 7)
    assert ended.records_dropped == 1 + 13
    assert ended.output == "b'{}'\n"


@namespaces
def test_a_thousand_files_at_the_same_time_as_a_limit_are_counted(
    run: Callable[..., Exit],
) -> None:
    ended = run("for n in range(3000): open(f'f{n}', 'w').close()")
    assert len(ended.changes) + ended.changes_left_out == 3000


PROGRAM = """
import os, sys
from pathlib import Path
from epochzero.check.dryrun.contain import Limits
from epochzero.check.dryrun.process import run_contained
job = "import os; print(os.getuid()); print(open('here.txt').read()); open('out', 'w').write('x')"
ended = run_contained([sys.executable, "-c", job], folder=Path(sys.argv[1]),
                      environment=dict(os.environ), limits=Limits(), spec=b"")
print(ended.containment.means.name, ended.code, [(c.path.name, c.how) for c in ended.changes])
print(ended.output)
"""

MOUNTS = {
    "as it is": "true",
    "tmpfs": "mount -t tmpfs tmpfs job && echo there > job/here.txt",
    "overlay": "mkdir store && mount -t tmpfs tmpfs store && mkdir store/upper store/work"
    " && mount -t overlay overlay -o lowerdir=job,upperdir=store/upper,workdir=store/work job",
    "mount below": "mkdir job/below && mount -t tmpfs tmpfs job/below",
    "read-only": "mount --bind job job && mount -o remount,bind,ro job",
}


@namespaces
@pytest.mark.parametrize("mount", MOUNTS)
def test_a_folder_on_any_file_system_is_seen_and_not_changed(mount: str, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "here.txt").write_text("there\n")
    # A user namespace with one user, as a plain user has, also where the tests run as root.
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c",
         f'{MOUNTS[mount]} && "$@" && ls job', "sh", sys.executable, "-c", PROGRAM,
         str(tmp_path / "job")],
        cwd=tmp_path, env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mount == "read-only":
        assert "NAMESPACES 1 []\n0\nthere" in done.stdout, done
        assert "Read-only file system" in done.stdout
    else:
        assert "NAMESPACES 0 [('out', 'created')]\n0\nthere" in done.stdout, done
    assert done.stdout.endswith("\nbelow\nhere.txt\n" if mount == "mount below" else "\nhere.txt\n")


@namespaces
def test_nothing_outlives_whoever_started_it(tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import sys
        from pathlib import Path
        from epochzero.check.dryrun.contain import Limits
        from epochzero.check.dryrun.process import run_contained
        job = "import time; time.sleep(1000)  # {tmp_path}"
        run_contained([sys.executable, "-c", job], folder=Path("/"), environment={{}},
                      limits=Limits(), spec=b"")
        """
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], env={"PYTHONPATH": SOURCE, "TMPDIR": str(tmp_path)}
    )
    wait_until(lambda: any(c.startswith(sys.executable) and "time.sleep" in c and "run_contained"
                           not in c for c in processes_with(str(tmp_path))))  # fmt: skip
    parent.kill()
    parent.wait()
    wait_until(lambda: not processes_with(str(tmp_path)))


@namespaces
def test_a_program_that_is_not_there_is_told(folder: Path) -> None:
    ended = run_contained(
        ["/nowhere/python"], folder=folder, environment={}, limits=LIMITS, spec=b""
    )
    assert ended.code == 127
    assert "No such file" in ended.output


def test_secrets_stay_here_and_services_are_off() -> None:
    environment, withheld = contained_environment(
        {"WANDB_API_KEY": "s3cret", "HF_TOKEN": "hf_x", "BATCH": "8", "KEYBOARD": "us"}
    )
    assert withheld == ("WANDB_API_KEY", "HF_TOKEN")
    assert "s3cret" not in environment.values()
    assert environment["BATCH"] == "8"
    assert environment["KEYBOARD"] == "us"
    assert environment["WANDB_MODE"] == "disabled"
    assert environment["OMP_WAIT_POLICY"] == "passive"


INTERRUPTED = """
import signal, sys, threading, time
from pathlib import Path
from epochzero.check.dryrun import process
from epochzero.check.dryrun.contain.model import Limits
from epochzero.check.dryrun.parallel_runs import together

def run(number):
    command = [sys.executable, "-c", "import time; time.sleep(1000)"]
    limits = Limits(seconds=1000)
    return process.run_contained(command, folder=Path("."), environment={}, limits=limits, spec=b"")

def interrupt():
    while len(process._running) < 2:
        time.sleep(0.1)
    time.sleep(1)
    signal.raise_signal(signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    print("not interrupted:", [one.why for one in together(run, [1, 2], workers=2)])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interruption_ends_all_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted\n"
