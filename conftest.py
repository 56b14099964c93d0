"""What all tests share: one `Diagnoser`, real git repositories made on the spot, and how hypothesis
looks for counter-examples.
"""

from __future__ import annotations

import atexit
import functools
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from epochzero.diagnose import Diagnoser
from epochzero.launchers import allocation_variables
from epochzero.logs.source import Log, rank_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnosis, Facts

ROOT = Path(__file__).resolve().parent

# A source distribution leaves out the large collections of programs that this file reads.
collect_ignore = [] if (ROOT / "lab" / "dry").is_dir() else ["tests/test_check_lab.py"]


def pytest_report_header() -> list[str]:
    """Names the test files that cannot run."""
    return [f"not in this source distribution: {name}" for name in collect_ignore]


# Inside an allocation tests would take signals that they send for those of its scheduler.
for _name in allocation_variables(os.environ):
    del os.environ[_name]

# The same examples on every run; `pytest --hypothesis-profile=hunt` looks for new ones.
_SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "steady", deadline=None, max_examples=100, derandomize=True, suppress_health_check=_SLOW
)
settings.register_profile("hunt", deadline=None, max_examples=3000, suppress_health_check=_SLOW)
settings.load_profile("steady")

# Their tests, or the programs that they start, need torch, a database or a browser, or are dozens
# of supervised jobs. `--quick` leaves them out, and single tests that are marked with `needs_torch`; without it they come first, since the longest files
# are among them.
SLOW = (
    "agents",
    "check/dryrun",
    "check/rules/test_arguments_refused.py",
    "cli/test_check_dry.py",
    "cli/test_record_command.py",
    "cli/test_watch_spectrum.py",
    "guides",
    "integrations",
    "locate/techniques/test_bjxnet.py",
    "logs/flight_recorder/test_real_dumps.py",
    "run/inject",
    "run/memory",
    "run/observers/test_hang.py",
    "run/process/test_kill.py",
    "run/process/test_supervisor.py",
    "run/process/test_torchrun.py",
    "run/replay",
    "run/simulate",
    "run/test_job.py",
    "run/test_run_command.py",
    "run/watch",
    "scale",
    "store",
    "study/test_corpora.py",
    "study/test_neuron_spectrum.py",
    "study/training_faults",
    "test_docstrings.py",
    "test_train_reader.py",
    "web",
)


# The longest of the others, which would otherwise be left for the end.
LONG = (
    "platform/test_systems.py",
    "study/localization/test_measuring.py",
    "data/test_data.py",
    "check/test_rules.py",
    "diagnose/test_signatures.py",
    "test_package.py",
)


_LONG_FILES = frozenset(ROOT / "tests" / name for name in LONG)
_SLOW_PLACES = (ROOT / "models", *(ROOT / "tests" / place for place in SLOW))


@functools.cache
def is_slow(path: Path) -> bool:
    """Whether `--quick` skips a path."""
    return any(place == path or place in path.parents for place in _SLOW_PLACES)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--quick`."""
    parser.addoption(
        "--quick", action="store_true", help="run no test that needs torch, a database or a browser"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out what `--quick` does; None lets others decide."""
    return True if config.getoption("quick") and is_slow(collection_path) else None


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker of single tests that `--quick` skips."""
    config.addinivalue_line("markers", "needs_torch: starts programs that import torch")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts what takes longest first, so that no process is left with it at the end."""
    if config.getoption("quick"):
        config.hook.pytest_deselected(
            items=[i for i in items if i.get_closest_marker("needs_torch")]
        )
        items[:] = [item for item in items if not item.get_closest_marker("needs_torch")]
    items.sort(key=lambda item: (not is_slow(item.path), item.path not in _LONG_FILES))


def pytest_runtest_setup() -> None:
    """Thaws what a service that an earlier test started in this process has frozen: to count it, which
    each check does, takes a quarter of a second.
    """
    gc.unfreeze()


# The collector starts after 700 new objects. Tests make millions, of which few are garbage, next to all
# that pytest holds: without this, half of the processor time of reading syntax trees is spent in it.
gc.set_threshold(10_000, 20, 20)
# Importing and collecting all tests makes a million objects that stay: looking for garbage among them takes a
# third of its processor time, in every process.
gc.disable()


def pytest_collection_finish() -> None:
    """Collects garbage from now on, and counts what exists as old without looking at it."""
    gc.freeze()
    gc.unfreeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Looks for garbage one last time: pytest and the interpreter would do so three more times, for a second each."""
    gc.collect()
    gc.freeze()


# Debian calls Python python3; in an environment, which many jobs of tests assume, it is python, too.
if shutil.which("python") is None:
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

# A shell starts what runs in the background with Ctrl-C ignored, nohup ignores hangups, and both are
# inherited by every job that a test starts. A handler is not.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# Neither the jobs nor the settings of whoever runs the tests; a cache that one run fills is left to
# the next.
for name in [name for name in os.environ if name.startswith("EPOCHZERO_")]:
    del os.environ[name]
# Without bytecode every process that a test starts, and every process of pytest-xdist, compiles all
# that it imports: half of the processor time of a short job, and of collecting the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# As many processes run as there are cores: threads of theirs would only wait for each other, which
# OpenMP does busily. Attacks on a network of three layers take a twentieth of the processor time.
os.environ["OMP_NUM_THREADS"] = "1"
# pytest-xdist tells its processes the width of the terminal.
os.environ.pop("COLUMNS", None)
os.environ["XDG_CACHE_HOME"] = str(ROOT / ".pytest_cache" / "home")
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="epochzero-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
# Otherwise the lock file of the tests' PostgreSQL is in /tmp and belongs to the user who was the first to start a
# server. The package decides when it is imported, which several tests do, and only for a directory that exists.
os.environ["XDG_RUNTIME_DIR"] = os.environ["XDG_STATE_HOME"]
Path(os.environ["XDG_RUNTIME_DIR"], "python_PostgresServer").mkdir()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def diagnoser() -> Diagnoser:
    """A diagnoser with the built-in catalogue."""
    return Diagnoser()


@pytest.fixture(scope="session")
def diagnose(diagnoser: Diagnoser) -> Callable[..., Diagnosis]:
    """Diagnoses texts: one of them, or several by the name of their log."""

    def run(texts: str | dict[str, str], facts: Facts | None = None) -> Diagnosis:
        named = texts if isinstance(texts, dict) else {"train.log": texts}
        logs = [log_of(text, name) for name, text in named.items()]
        return diagnoser.diagnose(logs) if facts is None else diagnoser.diagnose(logs, facts)

    return run


def log_of(text: str, name: str = "train.log") -> Log:
    """A log in memory; its name tells its rank, as a file's would."""
    return Log(name, text=text.encode(), rank=rank_of(name))


class Made:
    """A work tree that a test fills; its clock moves by a minute with each commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = 1_600_000_000
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str | bytes, **extra: str) -> str:
        """Runs git as its author would."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        date = f"{self.clock} +0000"
        mine = {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.com",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.com",
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
            "GIT_ALLOW_PROTOCOL": "file",
        }
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.folder,
            env=clean | mine | extra,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, path: str | bytes, content: str | bytes = "text\n") -> Path:
        """Writes a file of the work tree."""
        place = self.folder / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    def commit(self, message: str = "change", **extra: str) -> str:
        """Commits everything; the hash."""
        self.clock += 60
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, **extra)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """An empty repository."""
    return Made(tmp_path / "made")
