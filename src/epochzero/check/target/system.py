"""Information from the operating system: GPUs, limits, mounts, user, programs, network."""

from __future__ import annotations

import math
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import TypeVar

from epochzero import platform
from epochzero.check.target.gpus import capability_of
from epochzero.check.target.model import GPU, Mount, NetworkAccess, User
from epochzero.file_access import unconfined
from epochzero.platform import resource_limits, usable_cpus

PROGRAM_SECONDS = 4.0
PROBE_SECONDS = 1.0
MOUNT_SECONDS = 1.0
MOST_ENTRIES = 100
_MIB = 1 << 20
_Answer = TypeVar("_Answer")
SHARED_LIBRARY = re.compile(r"\.so(?:\.[\d.]+)?$")
# cgroups v1 express "no limit" as a number near 2^63.
_NO_LIMIT = 1 << 60
_SECRET = re.compile(
    r"secret|token|passw|passphrase|credential|private|api_?key|access_?key|auth|_key$|^key$|_pat$"
    r"|signature|dsn$|cookie|session",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@|-----BEGIN|^(?:sk|hf|ghp|gho|xox[bp])[-_]\w{8}")


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables; those that look like secrets by name or value have no value."""
    return {
        name: "" if _SECRET.search(name) or _SECRET_VALUE.search(value) else value
        for name, value in sorted(environment.items())
    }


def _output(command: Sequence[str]) -> str:
    """The output of a program.

    Raises:
        OSError, SubprocessError: it does not exist, fails or takes too long.
    """
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PROGRAM_SECONDS,
        check=True,
    )
    return done.stdout.decode("utf-8", "replace")


# -- GPUs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs with their driver and its CUDA version; and what is unknown about them."""

    gpus: tuple[GPU, ...] | None = None
    driver: str = ""
    cuda: str = ""
    notes: tuple[str, ...] = ()


NO_GPUS = Gpus()


@unconfined()
def gpus(environment: Mapping[str, str]) -> Gpus:
    """The GPUs of this node by ``nvidia-smi``; none if neither it nor a device exists."""
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        if Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists():
            return Gpus(notes=("gpus: there are devices, but no nvidia-smi to ask",))
        return Gpus((), notes=("gpus: no nvidia-smi and no device, so there are none",))
    try:
        output = _output(
            [program, "--query-gpu=name,memory.total,compute_cap,driver_version",
             "--format=csv,noheader,nounits"]
        )  # fmt: skip
        summary = _output([program])
    except (OSError, subprocess.SubprocessError) as error:
        return Gpus(notes=(f"gpus: nvidia-smi failed: {error}"[:300],))
    return _gpus_of(output, summary)


def _gpus_of(output: str, summary: str) -> Gpus:
    found: list[GPU] = []
    driver = ""
    for line in output.splitlines():
        parts = [part.strip() for part in line.rsplit(",", 3)]
        if len(parts) == 4 and parts[1].isdigit():
            driver = parts[3]
            found.append(GPU(parts[0], int(parts[1]) * _MIB, _capability(parts[2])))
    cuda = re.search(r"CUDA Version:\s*(\d+\.\d+)", summary)
    return Gpus(tuple(found), driver, cuda[1] if cuda else "")


def _capability(text: str) -> tuple[int, int] | None:
    try:
        return capability_of(text)
    except ValueError:
        return None


# -- Libraries and programs --------------------------------------------------------------------


@unconfined()
def shared_libraries(environment: Mapping[str, str]) -> frozenset[str]:
    """Names of the shared libraries that the loader finds: by its cache, its directories, its variable."""
    names: set[str] = set()
    ldconfig = shutil.which("ldconfig", path=f"{environment.get('PATH', '')}:/sbin:/usr/sbin")
    if ldconfig is not None:
        # musl has no cache; the directories below are sufficient.
        with suppress(OSError, subprocess.SubprocessError):
            names |= set(re.findall(r"^\t(\S+) \(", _output([ldconfig, "-p"]), re.MULTILINE))
    # LD_LIBRARY_PATH belongs to a container or module, and conda's libraries are next to its Python.
    folders = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib",
               *environment.get("LD_LIBRARY_PATH", "").split(":")]  # fmt: skip
    if prefix := environment.get("CONDA_PREFIX"):
        folders.append(f"{prefix}/lib")
    for folder in folders:
        names |= {name for name in _names_in(folder) if SHARED_LIBRARY.search(name)}
    return frozenset(names)


@unconfined()
def programs(path: str) -> frozenset[str]:
    """Names of the programs in the directories of a search path."""
    found: set[str] = set()
    for folder in path.split(":"):
        for name in _names_in(folder):
            if os.access(os.path.join(folder, name), os.X_OK):
                found.add(name)
    return frozenset(found)


def _names_in(folder: str) -> Iterable[str]:
    """Names of the files in a directory; none if it cannot be read."""
    if not folder.startswith("/"):
        return ()
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.is_dir()]
    except OSError:
        return ()


# -- Limits ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SystemLimits:
    """Limits of memory, processors, processes and open files; None if there is none or it is unknown."""

    memory_bytes: int | None = None
    cpus: int | None = None
    processes: int | None = None
    open_files: int | None = None


@unconfined()
def limits(root: Path = Path("/")) -> SystemLimits:
    """The effective limits: of the machine, of the control groups above this process, and of ulimit."""
    groups = control_groups(root)
    own = resource_limits()
    physical = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    memory = [
        *_numbers(groups, "memory.max"),
        *_numbers(groups, "memory.limit_in_bytes"),
        *([int(physical[1]) << 10] if physical else _known(own.memory_bytes)),
        *_known(own.address_space_bytes),
    ]
    return SystemLimits(
        _least(memory),
        _least([*_quotas_of_time(groups), usable_cpus()]),
        _least([*_numbers(groups, "pids.max"), *_known(own.processes)]),
        _least(_known(own.open_files)),
    )


def _known(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)


def _quotas_of_time(groups: Iterable[Path]) -> list[int]:
    """Number of processors that the control groups provide time for, at least one."""
    found = []
    for group in groups:
        # Version 2 has both numbers in one file, version 1 one file each; no limit is max or -1.
        quota, period = [*_text(group / "cpu.max").split(), "", ""][:2]
        quota = quota or _text(group / "cpu.cfs_quota_us").strip()
        period = period or _text(group / "cpu.cfs_period_us").strip()
        if quota.isdigit() and period.isdigit() and int(period):
            found.append(max(1, math.ceil(int(quota) / int(period))))
    return found


def _least(numbers: Iterable[int]) -> int | None:
    return min((number for number in numbers if 0 <= number < _NO_LIMIT), default=None)


def control_groups(root: Path = Path("/")) -> list[Path]:
    """Directories of the control groups that contain this process, and of those above them."""
    base = root / "sys/fs/cgroup"
    found: list[Path] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        # Version 1 has one directory per controller; version 2 has one in all, or next to those of version 1.
        for top in (
            [base / each for each in controllers.split(",")]
            if controllers
            else [base, base / "unified"]
        ):
            inner = top / path.lstrip("/")
            found += [top, inner, *(p for p in inner.parents if p.is_relative_to(top))]
    # A container often sees its own group as the root, whatever the path is.
    return list(dict.fromkeys([*found, base, *(base / each for each in ("cpu", "memory", "pids"))]))


def _numbers(folders: Iterable[Path], name: str) -> list[int]:
    texts = (_text(folder / name).strip() for folder in folders)
    return [int(text) for text in texts if text.isdigit()]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def shared_memory() -> int:
    """Size of ``/dev/shm``, through which data loader workers pass their batches."""
    output = os.statvfs("/dev/shm")
    return output.f_blocks * output.f_frsize


# -- Files ---------------------------------------------------------------------------------------

MOST_LISTED, MOST_IN_FOLDER = 10_000, 2_000


def listing(folder: Path) -> tuple[dict[str, bool], list[str]]:
    """List a directory and its subdirectories breadth first, up to 10,000 entries.

    Returns:
        the paths that exist, and the directories that were listed completely: those that are readable and contain no more
        than 2,000 entries.

    Raises:
        OSError: the directory itself cannot be read.
    """
    found, listed, waiting = {str(folder): True}, [], [folder]
    os.listdir(folder)
    while waiting and len(found) < MOST_LISTED:
        current = waiting.pop(0)
        with suppress(OSError), os.scandir(current) as entries:
            inside = list(islice(entries, MOST_IN_FOLDER + 1))
            found |= {entry.path: True for entry in inside}
            if len(inside) <= MOST_IN_FOLDER:
                listed.append(str(current))
            waiting += [Path(entry.path) for entry in inside if entry.is_dir(follow_symlinks=False)]
    return found, listed


# -- Mounts ------------------------------------------------------------------------------------

_UNREAL = frozenset(
    [
        "proc",
        "sysfs",
        "cgroup",
        "cgroup2",
        "devpts",
        "devtmpfs",
        "mqueue",
        "debugfs",
        "tracefs",
        "securityfs",
        "pstore",
        "bpf",
        "fusectl",
        "configfs",
        "hugetlbfs",
        "autofs",
        "rpc_pipefs",
        "binfmt_misc",
        "nsfs",
        "efivarfs",
        "selinuxfs",
    ]
)


@unconfined()
def mounts(environment: Mapping[str, str]) -> tuple[Mount, ...]:
    """The mounted file systems that contain files, by path, with the permissions of the user.

    A file system that does not respond (an unreachable network share) has no numbers.
    """
    text = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    found = mounts_of(text)
    left = _quotas(environment)
    devices = {_unescaped(line.split()[4]): line.partition(" - ")[2].split()[1:2]
               for line in text.splitlines()}  # fmt: skip
    answers = _within(MOUNT_SECONDS, [partial(_asked, mount) for mount in found])
    return tuple(
        replace(answer or mount, quota_bytes=left.get("".join(devices[mount.path])))
        for mount, answer in zip(found, answers, strict=True)
    )


def _within(seconds: float, questions: Sequence[Callable[[], _Answer]]) -> list[_Answer | None]:
    """The results that arrive in time.

    Daemon threads, since the program would wait for those of a pool at exit, and a query of an unreachable network share
    never returns.
    """
    answers: list[_Answer | None] = [None] * len(questions)

    def ask(number: int) -> None:
        with suppress(OSError):
            answers[number] = questions[number]()

    threads = [Thread(target=ask, args=(n,), daemon=True) for n in range(len(questions))]
    until = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return list(answers)


def _quotas(environment: Mapping[str, str]) -> dict[str, int]:
    """What is left of the user's quota by device, if the program ``quota`` exists."""
    program = shutil.which("quota", path=environment.get("PATH"))
    if program is None:
        return {}
    try:
        # It exits with an error if a quota is exceeded, and prints it nevertheless.
        done = subprocess.run(
            [program, "-w"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return _quotas_of(done.stdout.decode("utf-8", "replace"))


def _quotas_of(text: str) -> dict[str, int]:
    """Parse lines ``device used soft hard ...`` in KiB: what is left of the hard limit, or of the soft one."""
    left = {}
    for line in text.splitlines():
        parts = line.split()
        if len(parts) > 3 and all(re.fullmatch(r"\d+\*?", part) for part in parts[1:4]):
            used, soft, hard = (int(part.rstrip("*")) for part in parts[1:4])
            if hard or soft:
                left[parts[0]] = max(0, (hard or soft) - used) << 10
    return left


def mounts_of(text: str) -> tuple[Mount, ...]:
    """The mounts of ``/proc/self/mountinfo``: the last one at each path is the visible one."""
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 6 or len(kind) < 3:
            continue
        path = _unescaped(fields[4])
        options = {*fields[5].split(","), *kind[2].split(",")}
        found.pop(path, None)
        if kind[0] not in _UNREAL and not path.startswith(("/proc/", "/sys/")):
            found[path] = Mount(path, writable="ro" not in options)
    return tuple(found[path] for path in sorted(found))


def _unescaped(path: str) -> str:
    """A path of mountinfo, in which blanks are octal escapes."""
    return re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), path)


def _asked(mount: Mount) -> Mount:
    output = os.statvfs(mount.path)
    return Mount(
        mount.path,
        writable=mount.writable,
        free_bytes=output.f_bavail * output.f_frsize,
        quota_bytes=None,
        case_sensitive=_case_sensitive(mount.path),
    )


def _case_sensitive(path: str) -> bool:
    """Whether names are case-sensitive, tested with an entry in other case."""
    folder, name = os.path.split(path)
    names: Iterable[str] = [name]
    if os.path.isdir(path):
        folder = path
        with os.scandir(path) as entries:  # a data directory may have millions
            names = [entry.name for entry in islice(entries, MOST_ENTRIES)]
    for each in names:
        if each.swapcase() != each:
            try:
                same = os.path.samefile(
                    os.path.join(folder, each), os.path.join(folder, each.swapcase())
                )
            except OSError:
                return True
            return not same
    return True


# -- User and network --------------------------------------------------------------------------


def user(environment: Mapping[str, str]) -> User:
    """The current user; in a container often a number without a name."""
    found = platform.user(environment)
    return User(found.name, found.uid, found.gid, tuple(found.groups), found.home)


@unconfined()
def ports(root: Path = Path("/")) -> frozenset[int] | None:
    """The TCP ports in use, by the kernel's tables; None if there are none."""
    tables = [_text(root / "proc/net" / name) for name in ("tcp", "tcp6")]
    # Address and port in hexadecimal digits, the remote end, and 0A for a listening socket.
    listening = re.compile(
        r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A ", re.MULTILINE
    )
    if not any(tables):
        return None
    return frozenset(int(port, 16) for text in tables for port in listening.findall(text))


def network(
    hosts: Sequence[tuple[str, int]] = (("huggingface.co", 443), ("github.com", 443)),
) -> NetworkAccess:
    """Whether hosts that jobs download from can be reached; one attempt of at most a second."""
    answers = _within(PROBE_SECONDS, [partial(_reaches, *host) for host in hosts])
    reached = [host for (host, _), answer in zip(hosts, answers, strict=True) if answer]
    return NetworkAccess(bool(reached), tuple(reached))


def _reaches(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=PROBE_SECONDS):
            return True
    except OSError:
        return False
