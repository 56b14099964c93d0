"""Whether a failure is read as one of the environment, on failures and their twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochzero.diagnose import Diagnoser
from epochzero.logs.source import Log
from epochzero.run.retry import PastAttempt, decide, load_policy, subject


def read(log: str, seconds: float = 30.0) -> str:
    return subject(Diagnoser().diagnose([Log("log", text=log.encode())]), seconds)


def traceback(error: str, code: str = "run()", file: str = "/job/train.py") -> str:
    return f'Traceback (most recent call last):\n  File "{file}", line 3, in main\n    {code}\n{error}\n'


_PACKAGE = "/envs/ml/lib/python3.11/site-packages/scipy/stats/__init__.py"


@pytest.mark.parametrize(
    ("passes", "comes_again"),
    [
        (
            traceback("OSError: [Errno 116] Stale file handle: '/nfs/a.npy'"),
            traceback("OSError: [Errno 22] Invalid argument: '/nfs/a.npy'"),
        ),
        (
            traceback("FileExistsError: [Errno 17] File exists: 'out'", "if not os.path.exists(d): os.mkdir(d)"),
            traceback("FileExistsError: [Errno 17] File exists: 'out'", "os.mkdir(d)"),
        ),
        (
            traceback("FileNotFoundError: [Errno 2] No such file or directory: '/q/7.part'"),
            traceback("FileNotFoundError: [Errno 2] No such file or directory: '/q/7.csv'"),
        ),
        (
            traceback("EOFError: Ran out of input", "state = pickle.load(file)"),
            traceback("_pickle.UnpicklingError: invalid load key, 'v'.", "state = pickle.load(file)"),
        ),
        (
            traceback("ModuleNotFoundError: No module named 'scipy.stats._qmc'", "from ._qmc import Sobol", _PACKAGE),
            traceback("ModuleNotFoundError: No module named 'scipy.stats._qmc'", "from scipy.stats._qmc import Sobol"),
        ),
        (
            traceback("ValueError: mmap length is greater than file size", "mm = mmap.mmap(file.fileno(), size)"),
            traceback("ValueError: cannot mmap an empty mask", "mm = mmap.mmap(file.fileno(), size)"),
        ),
        (
            traceback("FileNotFoundError: [Errno 2] No such file or directory: '/q/7'", "os.stat(p) if os.path.exists(p) else None"),
            traceback("FileNotFoundError: [Errno 2] No such file or directory: '/q'", "[e for e in os.scandir(p) if e.is_dir()]"),
        ),
        (
            traceback("RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 5763 vs 5651", "torch.save(state, path)"),
            traceback("OSError: [Errno 122] Disk quota exceeded: '/home/u/best.pt'", "torch.save(state, path)"),
        ),
        (
            traceback("OSError: [Errno 107] Transport endpoint is not connected: '/data/a.npy'"),
            traceback("OSError: [Errno 21] Is a directory: '/data/a.npy'"),
        ),
        (
            traceback("OSError: [Errno 39] Directory not empty: '/shared/tmp'", "shutil.rmtree(folder)"),
            traceback("OSError: [Errno 39] Directory not empty: '/shared/tmp'", "os.rmdir(folder)"),
        ),
        (
            traceback("FileNotFoundError: [Errno 2] No such file or directory: '/home/u/.cache/kernels/k.so'", "load(path)", _PACKAGE),
            traceback("FileNotFoundError: [Errno 2] No such file or directory: '/home/u/.cache/kernels/k.so'", "load(path)"),
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\n",
            traceback("RuntimeError: CUDA error: no kernel image is available for execution on the device"),
        ),
        (
            traceback("botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling GetObject"),
            traceback("botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling GetObject"),
        ),
        (
            traceback(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                "79.15 GiB of which 1.00 GiB is free. Process 7 has 70.00 GiB memory in use. Including non-PyTorch "
                "memory, this process has 8.00 GiB memory in use."
            ),
            traceback(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                "79.15 GiB of which 1.00 GiB is free. Process 7 has 2.00 GiB memory in use. Including non-PyTorch "
                "memory, this process has 76.00 GiB memory in use."
            ),
        ),
    ],
)  # fmt: skip
def test_a_failure_of_the_environment_and_its_twin(passes: str, comes_again: str) -> None:
    assert read(passes)
    assert not read(comes_again)


def test_a_file_system_that_was_never_writable_is_no_change() -> None:
    log = traceback("OSError: [Errno 30] Read-only file system: '/app/out'")
    assert not read(log, seconds=5)
    assert read(log, seconds=7200)


def test_a_connection_that_had_worked_for_hours_is_a_change_and_a_timeout_is_not() -> None:
    lost = traceback(
        "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:5009"
    )
    assert "2 h 00 min" in read(lost, seconds=7200)
    assert not read(lost, seconds=30)
    late = traceback(
        "RuntimeError: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE)"
    )
    assert not read(late, seconds=7200)


def test_files_that_an_earlier_epoch_has_read_are_gone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "for epoch in range(9):\n    for shard in shards:\n        load(shard)\n"
    )
    log = traceback(
        "FileNotFoundError: [Errno 2] No such file or directory: 'a.npy'", "load(shard)"
    )
    diagnosis = Diagnoser().diagnose([Log("log", text=log.replace("/job/", "").encode())])
    assert "earlier epoch" in subject(diagnosis, 900, epochs=1.0, folder=tmp_path)
    assert not subject(diagnosis, 900, epochs=0.0, folder=tmp_path)
    (tmp_path / "train.py").write_text("import a\nimport b\nload(path)\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.py").write_text("import a\nimport b\nload(path)\n")
    assert not subject(diagnosis, 900, epochs=1.0, folder=other)


def test_a_failure_of_the_environment_is_retried_if_that_costs_little() -> None:
    attempt = PastAttempt(
        "2:f",
        "fails_again",
        "corrupt_data",
        evidence=frozenset(["environment"]),
        seconds=60,
        gpus=8,
    )
    policy = load_policy("auto")
    assert decide(policy, [attempt]).action == "retry"
    assert decide(policy, [replace(attempt, seconds=86_400, gpus=64)]).action == "stop"
    late = replace(attempt, seconds=86_400, gpus=64, since_checkpoint=600)
    assert decide(policy, [late]).action == "retry"
    assert decide(policy, [attempt] * 4).action == "stop"
