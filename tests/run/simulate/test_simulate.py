"""Jobs on a simulated platform: what they find there, how they end, and what is left of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochzero.check.target import parse_target
from epochzero.errors import InputError
from epochzero.injected.companions import with_companions
from epochzero.run.records.model import Conclusion
from epochzero.run.simulate.companions import SIMULATE_COMPANIONS
from epochzero.run.simulate.model import SimulationOptions, SimulationPlan
from epochzero.run.simulate.places import job_python
from epochzero.run.simulate.plan import _reached, options_of, plan
from tests.run.conftest import Ask
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulated on Linux only")

Run = Callable[..., subprocess.CompletedProcess[bytes]]

LOOKS = """
import errno, json, os, socket
def tried(call):
    try:
        call()
    except OSError as error:
        return errno.errorcode.get(error.errno, error.errno)
    return "done"
def write(path, size=1):
    with open(path, "wb") as file:
        file.write(b"x" * size)
import resource
print(json.dumps({
    "variables": {name: os.environ.get(name) for name in ("ONLY_HERE", "ONLY_THERE", "HOME")},
    "user": os.getuid(),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "missing": [os.path.exists(MISSING), tried(lambda: open(MISSING)), tried(lambda: os.stat(MISSING))],
    "data": [os.path.exists(DATA + "/read.csv"), tried(lambda: write(DATA + "/new"))],
    "scratch": [tried(lambda: write(SCRATCH + "/a", 1000)), tried(lambda: write(SCRATCH + "/b", 1 << 21))],
    "network": tried(lambda: socket.create_connection(("192.0.2.1", 80), 2)),
    "module": __import__("importlib.util").util.find_spec("hypothesis") is not None,
}))
write("result.txt")
"""


class Place:
    """A job's folder, data beside it, and a target that knows of both."""

    def __init__(self, top: Path) -> None:
        self.folder = top / "job"
        self.data = top / "data"
        self.scratch = top / "scratch"
        for folder in (self.folder, self.data, self.scratch):
            folder.mkdir()
        (self.data / "read.csv").write_text("1\n")
        (self.data / "missing.csv").write_text("1\n")
        names = {"MISSING": self.data / "missing.csv", "DATA": self.data, "SCRATCH": self.scratch}
        head = "".join(f"{name} = {str(path)!r}\n" for name, path in names.items())
        self.write("look.py", head + LOOKS)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def target(self, text: str = "") -> Path:
        path = self.folder.parent / "there.toml"
        path.write_text("format = 1\n" + text)
        return path

    @property
    def all_of_it(self) -> str:
        return f"""
open_files = 256
[user]
name = "job"
uid = 4321
gid = 4321
home = "/home/job"
[network]
internet = false
[environment]
ONLY_THERE = "yes"
[files]
"{self.data}/missing.csv" = false
[[mounts]]
path = "{self.data}"
writable = false
[[mounts]]
path = "{self.scratch}"
quota_bytes = "1 MiB"
[distributions]
numpy = "1.0"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("ONLY_HERE", "yes")
    found = Place(tmp_path)
    monkeypatch.chdir(found.folder)
    return found


def found_by(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def category_of(kept: Any) -> str:
    concluded = next(record for record in kept.records if isinstance(record, Conclusion))
    return str((concluded.diagnosis or {})["category"])


def namespaces_are_had(tmp_path: Path) -> bool:
    return planned(tmp_path, "").request.namespaces


def planned(top: Path, text: str, *command: str, namespaces: bool = True) -> SimulationPlan:
    kept = top / "runs" / "job" / "1"
    kept.mkdir(parents=True, exist_ok=True)
    options = SimulationOptions(parse_target("format = 1\n" + text, "there"), namespaces=namespaces)
    words = command or (sys.executable, "look.py")
    return plan(options, words, os.getcwd(), os.environ, kept)


def test_the_job_finds_the_platform(run: Run, kept: Any, place: Place) -> None:
    if not namespaces_are_had(place.folder.parent):
        pytest.skip("namespaces are unavailable")
    mounts = Path("/proc/self/mountinfo").read_text()
    target = str(place.target(place.all_of_it))
    done = run("--simulate", "--target", target, "--", sys.executable, "look.py")
    assert found_by(done) == {
        "variables": {"ONLY_HERE": None, "ONLY_THERE": "yes", "HOME": "/home/job"},
        "user": 4321,
        "files": 256,
        "missing": [False, "ENOENT", "ENOENT"],
        "data": [True, "EROFS"],
        "scratch": ["done", "ENOSPC"],
        "network": "ENETUNREACH",
        "module": False,
    }
    assert (place.folder / "result.txt").exists(), "what the job writes stays"
    assert sorted(path.name for path in place.data.iterdir()) == ["missing.csv", "read.csv"]
    assert not list(place.scratch.iterdir())
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert not list((kept.folder / "simulated").iterdir())
    said = done.stderr.decode()
    assert "Simulated" in said
    assert "Approximate" in said
    assert "simulated" in kept.events


def test_without_namespaces_python_is_held_to_it(place: Place) -> None:
    top = place.folder.parent
    made = planned(top, place.all_of_it, namespaces=False)
    found = found_by(job_of(made, top))
    assert found["missing"] == [False, "ENOENT", "ENOENT"]
    assert found["data"] == [True, "EROFS"]
    assert found["network"] == "ENETUNREACH"
    assert found["files"] == 256
    assert not found["module"]
    assert found["user"] == os.getuid()
    assert found["scratch"] == ["done", "ENOSPC"]
    assert {aspect.what: aspect.how for aspect in made.aspects} | {
        "isolation": "impossible",
        "quota": "hinted",
    } == {aspect.what: aspect.how for aspect in made.aspects}


def job_of(made: SimulationPlan, top: Path) -> subprocess.CompletedProcess[bytes]:
    environment = with_companions(made.environment, SIMULATE_COMPANIONS, top)
    return subprocess.run(made.command, env=environment, capture_output=True)


KEEPS = """
import os, torch
def saved(name, kilobytes):
    try:
        torch.save(torch.zeros(256 * kilobytes), name + ".tmp")
        os.replace(name + ".tmp", name)
    except (OSError, RuntimeError):
        return "full"
    return "done"
print(*(saved(f"{number}.pt", 400) for number in range(3)))
os.remove("0.pt")
print(saved("3.pt", 400))
"""


def test_a_quota_of_the_jobs_own_folder_is_held_in_python_and_what_is_written_stays(
    run: Run, place: Place
) -> None:
    pytest.importorskip("torch")
    place.write("look.py", KEEPS)
    target = place.target(f'[[mounts]]\npath = "{place.folder.parent}"\nquota_bytes = "1 MiB"\n')
    done = run("--simulate", "--target", str(target), "--", sys.executable, "look.py")
    assert done.stdout.split() == [b"done", b"done", b"full", b"done"], done.stderr.decode()
    assert {"1.pt", "3.pt"} <= {path.name for path in place.folder.iterdir()}


def test_a_path_in_the_jobs_own_folder_is_missing_and_its_results_stay(
    run: Run, place: Place
) -> None:
    place.write("secret.csv", "1\n")
    place.write("look.py", "open('out.txt', 'w').close(); open('secret.csv')")
    text = f'[files]\n"{place.folder}/secret.csv" = false\n'
    done = run("--simulate", "--target", str(place.target(text)), "--", sys.executable, "look.py")
    assert done.returncode == 1
    assert b"FileNotFoundError: [Errno 2] No such file or directory: 'secret.csv'" in done.stderr
    assert (place.folder / "out.txt").exists()
    assert (place.folder / "secret.csv").exists()


def test_a_package_that_is_only_here_is_not_found(
    run: Run, kept: Any, place: Place, ask: Ask
) -> None:
    place.write("look.py", "import hypothesis")
    target = place.target('[distributions]\nnumpy = "1.0"\n')
    done = run("--simulate", "--target", str(target), "--", sys.executable, "look.py")
    assert b"ModuleNotFoundError: No module named 'hypothesis'" in done.stderr
    assert category_of(kept) == "library_not_found"
    assert "look.py (simulated)" in ask("jobs")


def test_a_module_of_the_job_is_found_whatever_it_is_called(run: Run, place: Place) -> None:
    place.write("hypothesis.py", "VALUE = 1")
    place.write("look.py", "import hypothesis; assert hypothesis.VALUE")
    target = place.target('[distributions]\nnumpy = "1.0"\n')
    assert (
        run("--simulate", "--target", str(target), "--", sys.executable, "look.py").returncode == 0
    )


def test_memory_ends_the_job_as_the_kernel_does(run: Run, kept: Any, place: Place) -> None:
    place.write(
        "look.py",
        "import socket, time, traceback\n"
        "try: raise socket.gaierror(-3, 'Temporary failure in name resolution')\n"
        "except OSError: traceback.print_exc()\n"
        "kept = b'x' * (300 << 20)\ntime.sleep(30)",
    )
    target = place.target('memory_bytes = "200 MiB"\n')
    done = run("--simulate", "--target", str(target), "--", sys.executable, "look.py")
    assert done.returncode == 137
    assert category_of(kept) == "cpu_out_of_memory"
    assert "killed at the memory limit" in kept.events["limit_reached"].text
    assert b"The simulated platform enforced its limit: killed at the" in b" ".join(
        done.stderr.split()
    )
    assert b"sacct" not in done.stderr
    assert b"No. The failure is deterministic" in b" ".join(done.stderr.split())


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
@pytest.mark.parametrize("command", ["taskset -c 0-999 nproc", "nproc"])
def test_processors_cannot_be_taken_back(run: Run, place: Place, command: str) -> None:
    target = place.target("cpus = 1\n")
    done = run("--simulate", "--target", str(target), "--", *command.split())
    assert done.stdout == b"1\n"


@pytest.mark.parametrize(
    ("command", "reached"),
    [
        ("python -I train.py", True),
        ("python3.11 -Es -m train", True),
        ("taskset -c 0,1 nice python -I train.py", True),
        ("ssh node python -I train.py", False),
        ("python train.py", False),
        ("python -I -W error train.py", False),
        ("bash -I train.py", False),
        ("python -I", False),
    ],
)
def test_an_isolated_python_is_reached(command: str, reached: bool) -> None:
    found = " ".join(_reached(command.split()))
    assert ("isolation.py" in found) is reached
    assert re.sub(r"\S+isolation.py ", "", found) == command


def test_the_time_limit_ends_the_job_after_a_grace(run: Run, kept: Any, place: Place) -> None:
    place.write(
        "look.py",
        "import signal, time\nsignal.signal(15, lambda *_: print('asked', flush=True))\n"
        "until = time.time() + 40\nwhile time.time() < until: time.sleep(0.1)",
    )
    target = place.target("time_limit_s = 1.5\n")
    words = ("--grace", "1", "--simulate", "--target", str(target), "--", sys.executable, "look.py")
    done = run(*words)
    assert (done.returncode, done.stdout) == (137, b"asked\n")
    assert "time limit" in kept.events["limit_reached"].text


def test_ranks_get_what_their_launcher_would_give(run: Run, place: Place) -> None:
    place.write(
        "train.py",
        "import os\nv = os.environ\n"
        "names = 'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR'\n"
        # In one piece: four ranks write into one pipe.
        "os.write(1, (' '.join(v[name] for name in names) + '\\n').encode())",
    )
    target = place.target('gpus = "2 x A100"\n')
    words = ("--simulate", "--ranks", "4", "--target", str(target), "--")
    done = run(*words, "torchrun", "--nproc_per_node", "8", "train.py")
    assert done.returncode == 0, done.stderr.decode()
    assert sorted(done.stdout.decode().splitlines()) == [
        "0 4 0 2 127.0.0.1", "1 4 1 2 127.0.0.1", "2 4 0 2 127.0.0.1", "3 4 1 2 127.0.0.1",
    ]  # fmt: skip


def test_a_rank_that_fails_ends_the_others(run: Run, place: Place) -> None:
    place.write(
        "train.py",
        "import os, sys, time\nif os.environ['SLURM_PROCID'] == '1': sys.exit(3)\ntime.sleep(60)",
    )
    words = ("--simulate", "--ranks", "2", "--target", str(place.target()), "--")
    done = run(*words, "srun", "-n", "2", sys.executable, "train.py")
    assert done.returncode == 3, done.stderr.decode()
    assert b"rank 1 failed" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory_bytes = 0\n", "memory_bytes: 0 leaves"),
        ('[[mounts]]\npath = "/a"\n[[mounts]]\npath = "/a/"\n', "/a is mounted 2 times"),
        ("[user]\nuid = 5\n", "add user.gid"),
        ("open_files = 4\n", "no program starts"),
        ("open_files = 999999999999\n", "exceeds this machine's limit"),
        ('[files]\n"/a" = false\n"/a/b" = true\n', "/a/b inside it does"),
        ('[files]\n"/a" = false\n[[mounts]]\npath = "/a"\n', "/a is mounted, but"),
        ('[[mounts]]\npath = "data"\n', "must be absolute"),
    ],
)
def test_a_target_that_cannot_be_is_refused_before_anything_is_begun(
    run: Run, kept: Any, place: Place, text: str, said: str
) -> None:
    done = run("--simulate", "--target", str(place.target(text)), "--", sys.executable, "look.py")
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert not kept.home.exists()
    assert not (place.folder / "result.txt").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--simulate",), "requires --target"),
        (("--ranks", "2"), "require --simulate"),
        (
            ("--simulate", "--ranks", "2", "--target", "A100"),
            "does not identify the Python program",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    run: Run, place: Place, words: tuple[str, ...], said: str
) -> None:
    done = run(*words, "--", "ls", "look.py")
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_a_program_that_is_not_in_the_simulated_tree_is_not_found(run: Run, place: Place) -> None:
    done = run("--simulate", "--target", str(place.target()), "--", "/nowhere/python", "look.py")
    assert done.returncode == 127
    assert b"/nowhere/python: command not found" in done.stderr


def test_a_signal_reaches_the_job_and_no_process_is_left(run: Run, place: Place) -> None:
    place.write(
        "look.py",
        "import os, subprocess, sys\nsubprocess.Popen(['sleep', '60']); print(os.getpid())",
    )
    done = run("--simulate", "--target", str(place.target()), "--", sys.executable, "look.py")
    assert done.returncode == 0
    assert not Path(f"/proc/{done.stdout.decode().strip()}").exists()


def test_processes_beyond_the_limit_are_refused(place: Place) -> None:
    place.write(
        "look.py",
        "import subprocess, sys\n"
        "try:\n    [subprocess.Popen(['sleep', '5']) for _ in range(8)]\n"
        "except BlockingIOError as error:\n    print(error.errno)",
    )
    top = place.folder.parent
    made = planned(top, "processes = 4\n", sys.executable, "look.py", namespaces=False)
    environment = with_companions(made.environment, SIMULATE_COMPANIONS, top)
    done = subprocess.run(
        made.command,
        env=environment,
        capture_output=True,
        timeout=PATIENCE_S,
        start_new_session=True,
    )
    assert done.stdout.strip() == b"11", done.stderr.decode()


def test_a_preset_is_a_platform(place: Place) -> None:
    words = (sys.executable, "look.py")
    options = options_of("2 x A100", words, os.getcwd(), os.environ)
    assert len(options.target.gpus or ()) == 2
    with pytest.raises(InputError, match="no such file"):
        options_of("nowhere.toml", words, os.getcwd(), os.environ)


def test_the_python_behind_a_script_that_chooses_one_is_found(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin/python"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    script.chmod(0o755)
    environment = {"PATH": str(script.parent)}
    assert job_python(["python", "train.py"], environment) == Path(sys.executable)
    script.write_text("#!/bin/sh\nexit 1\n")
    assert job_python(["python", "train.py"], environment) is None
