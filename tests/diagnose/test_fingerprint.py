"""Fingerprints: the same for the same failure, different for different ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.diagnose import Facts
from epochzero.diagnose.fingerprint import fingerprint, is_weak, normalize
from epochzero.logs.traceback import Frame
from epochzero.logs.user_code import is_user_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnosis

TRACE = """\
Traceback (most recent call last):
  File "/home/anna/project/train.py", line {line}, in <module>
    main()
  File "/home/anna/project/train.py", line 12, in main
    loss = model(batch)
  File "{site}/torch/nn/modules/module.py", line 1501, in _call_impl
    return forward_call(*args, **kwargs)
  File "/home/anna/project/{file}.py", line 88, in {function}
    return self.fc(x)
{error}
"""
BASE: dict[str, object] = {
    "line": 40,
    "site": "/opt/conda/lib/python3.11/site-packages",
    "file": "net",
    "function": "forward",
    "error": "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)",
}

SAME: dict[str, dict[str, object]] = {
    "another line": {"line": 77},
    "another installation": {"site": "/usr/local/lib/python3.9/dist-packages"},
    "other sizes": {
        "error": "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x100 and 8x9)"
    },
}
DIFFERENT: dict[str, dict[str, object]] = {
    "another function": {"function": "encode"},
    "another file": {"file": "head"},
    "another class": {"error": str(BASE["error"]).replace("Runtime", "Value")},
    "another message": {"error": "RuntimeError: Expected all tensors to be on the same device"},
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_failure_keeps_its_fingerprint(
    diagnose: Callable[..., Diagnosis], name: str
) -> None:
    first = diagnose(TRACE.format(**BASE))
    again = diagnose("another start\n" * 9 + TRACE.format(**BASE | SAME[name]))
    assert first.fingerprint == again.fingerprint != ""


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_failures_differ(diagnose: Callable[..., Diagnosis], name: str) -> None:
    first = diagnose(TRACE.format(**BASE))
    other = diagnose(TRACE.format(**BASE | DIFFERENT[name]))
    assert first.fingerprint != other.fingerprint


def test_time_rank_and_host_do_not_count(diagnose: Callable[..., Diagnosis]) -> None:
    lines = TRACE.format(**BASE).splitlines(keepends=True)
    plain = diagnose("".join(lines))
    prefixed = diagnose("".join(f"[rank3]: {line}" for line in lines))
    assert prefixed.root is not None
    assert prefixed.root.rank == 3
    assert plain.fingerprint == prefixed.fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("object at 0x7f0012ab", "object at 0x55ee00"),
        ("/data/a/b.jpg is missing", "/mnt/c/d/e.png is missing"),
        (r"C:\data\a.jpg is missing", r"D:\x\y\z.jpg is missing"),
        ("took 3.5 s", "took 120 s"),
        ("run 123e4567-e89b-12d3-a456-426614174000", "run 00000000-0000-4000-8000-000000000001"),
        ("commit 0123abcdef", "commit fedcba98765"),
        ("at 12:30:45,123", "at 1:02:03,5"),
        ("pid   12\tdied", "pid 99 died"),
        ("shape [3, 224, 224]", "shape [1, 32, 32]"),
    ],
)
def test_what_changes_from_run_to_run_is_left_out(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)
    assert fingerprint("E", one, ()) == fingerprint("E", other, ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("No module named 'apex'", "No module named 'xformers'"),
        ("name 'x' is not defined", "name 'y' is not defined"),
        ("CUDA error: device-side assert", "CUDA error: illegal memory access"),
        ("'lr'", "'epochs'"),
    ],
)
def test_what_tells_failures_apart_stays(one: str, other: str) -> None:
    assert fingerprint("E", one, ()) != fingerprint("E", other, ())


def test_the_module_of_a_class_does_not_count() -> None:
    kinds = ("torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError", "OutOfMemoryError")
    assert len({fingerprint(kind, "CUDA out of memory", ()) for kind in kinds}) == 1


@pytest.mark.parametrize(
    "file",
    [
        "train.py",
        "/home/anna/train.py",
        "/job/train.py",
        "./src/models/net.py",
        r"C:\Users\anna\train.py",
        "<ipython-input-3-abcdef>",
        "In [3]",
        "/home/anna/torch_models/net.py",
        "/workspace/lib/net.py",
        "/root/project/tensorflow_models/a.py",
        "/home/anna/epochzero/run/train.py",
    ],
)
def test_frames_of_the_user(file: str) -> None:
    assert is_user_frame(Frame(file, 1, "f"))


@pytest.mark.parametrize(
    "file",
    [
        "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py",
        "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
        "/usr/lib/python3.10/threading.py",
        "/opt/conda/lib/python3.11/runpy.py",
        "<frozen importlib._bootstrap>",
        "<string>",
        "<__array_function__ internals>",
        r"C:\Python311\Lib\site-packages\torch\nn\functional.py",
        r"C:\Python311\Lib\threading.py",
        "/usr/local/bin/torchrun",
        "/home/anna/epochzero/src/epochzero/run/replay/child/hooks.py",
        "/home/anna/epochzero/src/epochzero/injected/gpus/cpu_execution.py",
    ],
)
def test_frames_of_libraries(file: str) -> None:
    assert not is_user_frame(Frame(file, 1, "f"))


PROGRESS = "step 10 | loss 2.9\nstep 20 | loss 2.8\n"
OTHER_PROGRESS = "Epoch 1/9 train_acc=0.3\nEpoch 2/9 train_acc=0.4\n"
KILLED = "failed (exitcode: -9) local_rank: 0 (pid: 4411) of binary: python\n"
SILENT: dict[str, tuple[str, Facts]] = {
    **{f"exit code {code}": (PROGRESS, Facts(exit_code=code)) for code in (1, 2, 8, 9, 65, 138)},
    **{f"signal {number}": (PROGRESS, Facts(signal=number)) for number in (6, 7, 9, 11, 15)},
    "a scheduler's state": (PROGRESS, Facts(state="TIMEOUT")),
    "another program": (OTHER_PROGRESS, Facts(exit_code=1)),
    "another phase": ("loading\n", Facts(exit_code=1)),
    "a launcher": (PROGRESS + KILLED, Facts(exit_code=1)),
    "a shell": (PROGRESS + "Killed\n", Facts(exit_code=1)),
}


def test_processes_that_ended_without_a_message_are_told_apart_and_marked(
    diagnose: Callable[..., Diagnosis],
) -> None:
    found = {name: diagnose(log, facts) for name, (log, facts) in SILENT.items()}
    assert len({one.fingerprint for one in found.values()}) == len(found)
    assert all(one.fingerprint_weak and is_weak(one.fingerprint) for one in found.values())
    longer = diagnose(PROGRESS + "step 30 | loss 2.7\n", Facts(exit_code=8))
    assert longer.fingerprint == found["exit code 8"].fingerprint


def test_a_failure_with_a_message_is_not_weak(diagnose: Callable[..., Diagnosis]) -> None:
    found = diagnose(TRACE.format(**BASE))
    assert not found.fingerprint_weak
    assert not is_weak(found.fingerprint)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 root error(s) found.\n  (0) Unknown: cuDNN", "2 root error(s) found.\n  (0) Unknown: full"),
        ("Error(s) in loading state_dict for Net:\n\tMissing key(s)", "Error(s) in loading state_dict for Net:\n\tsize mismatch"),
        ("Graph execution error:\n\nDetected a", "Graph execution error:\n\nDetected b"),
    ],
)  # fmt: skip
def test_a_line_that_only_announces_does_not_identify(one: str, other: str) -> None:
    assert fingerprint("E", one, ()) != fingerprint("E", other, ())
    assert fingerprint("E", one, ()) == fingerprint("E", one.replace("2 root", "3 root"), ())


FRAMES = st.builds(
    Frame,
    st.sampled_from(["a.py", "/x/b.py", ""]) | st.text(),
    st.none() | st.integers(),
    st.text(),
)


@given(st.text(), st.text(), st.lists(FRAMES, max_size=20), st.integers(1, 9))
def test_a_fingerprint_is_short_versioned_and_blind_to_line_numbers(
    kind: str, message: str, frames: list[Frame], shift: int
) -> None:
    found = fingerprint(kind, message, frames)
    assert re.fullmatch(r"2:[0-9a-f]{16}", found)
    moved = [Frame(f.file, (f.line or 0) + shift, f.function) for f in frames]
    assert fingerprint(kind, message, moved) == found
