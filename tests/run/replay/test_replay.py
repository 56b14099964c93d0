"""A job is captured when it fails, and its failing step runs again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.errors import InputError
from epochzero.run.replay import replay
from epochzero.run.replay.child.files import (
    MANIFEST,
    drawn_of,
    failed_of,
    parts_of_workers,
    read_json,
    write_json,
)
from epochzero.run.replay.child.inputs import Inputs
from epochzero.run.replay.model import ReplayResult
from epochzero.run.replay.reading import read_capture
from tests.run.replay.conftest import capture_of
from tests.torch_jobs import light_torch

pytest.importorskip("torch")

Captured = Callable[..., Path]

# Nothing is seeded, and what fails is drawn by chance. With the light torch, the first sample imports `numpy.random`.
BAD_SAMPLE = """
import numpy, random, sys, torch
torch.set_num_threads(1)
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        if i == 7 and random.random() < 0.5:
            raise ValueError(f"bad sample {i}")
        return torch.randn(4) + random.random() + float(numpy.random.rand()), i % 2
loader = torch.utils.data.DataLoader(Data(), 8, shuffle=True, num_workers=int(sys.argv[1]))
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters())
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9 ** epoch)
for epoch in range(50):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    schedule.step()
"""
NOT_A_NUMBER = """
import time, torch
torch.set_num_threads(1)
torch.manual_seed(int(time.time() * 1e6) % 100_000)
words = {f"word{n}" for n in range(50)}
weight = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(weight.parameters(), lr=0.01)
first = len(next(iter(words)))
for step in range(60):
    optimizer.zero_grad()
    lowest = torch.rand(()) if step < 40 + int(next(iter(words))[4:]) % 7 else -9.0
    torch.log(weight(torch.rand(2, 4)) * 0 + lowest).mean().backward()
    optimizer.step()
open("written.txt", "a").write("x")
"""
BEFORE = """
import os
def area(path, width):
    return width / (int.from_bytes(os.urandom(1), "big") // 256)
area("plan.csv", 3)
"""


FAILED, DRAWN = failed_of("1-0"), drawn_of("1-0")
LINE = '["os.urandom 16", "00ff"]\n'


def copied(folder: Path, into: Path) -> Path:
    """A copy of an attempt, that a test may damage."""
    return Path(shutil.copytree(folder, into / "copied"))


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captured job that fails before it trains."""
    return capture_of(tmp_path_factory.mktemp("before"), BEFORE)


def again(folder: Path, **how: object) -> ReplayResult:
    return replay(folder, environment=os.environ, **how)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=["0", "2"])
def bad_sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captured job, whose loader has this many workers."""
    return capture_of(tmp_path_factory.mktemp("bad"), light_torch(BAD_SAMPLE), request.param)


def test_a_bad_sample_comes_again_from_the_start_and_from_the_snapshot(
    bad_sample: Path, tmp_path: Path
) -> None:
    folder = bad_sample
    # One in sixteen fails in its first batch, before there is a snapshot.
    later = read_capture(folder).position.steps
    for way in ("start", "snapshot") if later else ("start",):
        replayed = again(folder, way=way)
        assert replayed.reproduced
        assert replayed.expected.text == "ValueError: bad sample 7"
        assert replayed.exactness == ("bits" if replayed.compared else "none")
    assert replayed.position == read_capture(folder).position
    damaged = copied(folder, tmp_path)
    (damaged / "capture" / "rank-0" / "tensors.safetensors").write_bytes(bytes(40))
    with pytest.raises(InputError, match="truncated or modified"):
        again(damaged)


def test_a_loss_that_is_not_finite_comes_again_in_the_same_operator(
    captured: Captured, tmp_path: Path
) -> None:
    folder = captured(light_torch(NOT_A_NUMBER), code=0)
    (tmp_path / "written.txt").unlink()
    replayed = again(folder, inspect=True)
    assert replayed.reproduced
    assert (replayed.expected.kind, replayed.expected.line) == ("nonfinite", 12)
    assert "LogBackward0" in replayed.expected.operators
    assert (replayed.exactness, replayed.compared) == ("bits", replayed.position.backwards)
    assert any("time.time" in text for text in replayed.differences)
    assert {row.what for row in replayed.table} >= {"input", "weight", "random"}
    assert not (tmp_path / "written.txt").exists()
    assert replayed.walked is None


@pytest.mark.parametrize("bad_sample", ["0"], indirect=True)
def test_a_step_can_be_looked_at(bad_sample: Path) -> None:
    folder = bad_sample
    if not read_capture(folder).position.steps:
        pytest.skip("it failed in its first batch")
    replayed = again(folder, step=1, inspect=True)
    assert (replayed.reproduced, replayed.position.steps) == (True, 1)
    assert next(row for row in replayed.table if row.what == "batch").shape == (8, 4)
    with pytest.raises(InputError, match="was not started"):
        again(folder, step=100_000)


def test_a_failure_before_training_is_captured_with_what_the_function_was_given(
    captured: Captured,
) -> None:
    folder = captured(BEFORE, SOME_TOKEN="hidden-word")
    replayed = again(folder)
    assert replayed.reproduced
    assert replayed.expected.arguments == {"path": "plan.csv", "width": 3}
    assert "SOME_TOKEN" in read_capture(folder).withheld
    assert "hidden-word" not in "".join(
        path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()
    )


def test_numbers_that_nothing_seeds_come_again_from_a_small_capture(captured: Captured) -> None:
    folder = captured(
        "import numpy, random\n"
        "drawn = [random.getrandbits(64), numpy.random.randint(1 << 30), numpy.random.default_rng().random()]\n"
        "raise ValueError(drawn)\n"
    )
    replayed = again(folder)
    assert replayed.came is not None
    assert replayed.came.message == replayed.expected.message
    assert read_capture(folder).size_bytes < 2500


def test_a_program_that_was_mended_is_said_to_be_another(
    captured: Captured, tmp_path: Path
) -> None:
    folder = captured(BEFORE)
    (tmp_path / "train.py").write_text(BEFORE.replace("// 256", "+ 1"))
    told: list[str] = []
    replayed = again(folder, on_differences=told.extend)
    assert (replayed.reproduced, replayed.came) == (False, None)
    changed = f"{tmp_path / 'train.py'} has changed; the failure passed through it"
    assert told[0] == replayed.differences[0] == changed


def test_other_packages_are_told_before_it_runs(captured: Captured) -> None:
    folder = captured("import numpy, pytest\n1 / 0\n") / "capture" / "rank-0"
    _edit(
        folder,
        versions={"python": "3.6.1", "cuda": "9.0"},
        packages={"numpy": "1.2", "pytest": "2.1", "gone": "1.0"},
    )
    told: list[str] = []
    assert again(folder.parent, on_differences=told.extend).reproduced
    assert [text.partition(" is ")[0] for text in told] == ["numpy", "python", "pytest"]
    assert "its generators may draw different numbers" in told[0]


def test_data_that_is_gone_is_named(captured: Captured, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("7")
    folder = captured(f"int(open({str(data)!r}).read()) / 0\n")
    data.unlink()
    replayed = again(folder)
    assert not replayed.reproduced
    assert replayed.came is not None
    assert replayed.came.type == "FileNotFoundError"
    assert any(
        f"{data} was read by the job and no longer exists" in text for text in replayed.differences
    )


def test_a_job_that_ends_well_leaves_nothing(captured: Captured) -> None:
    folder = captured(light_torch("import torch\n"), code=0)
    assert not (folder / "capture").exists()
    with pytest.raises(InputError, match="contains no capture"):
        again(folder)


def test_a_job_ends_with_what_it_would_without(captured: Captured, tmp_path: Path) -> None:
    """Also where a full disk, here a folder that cannot be written, keeps no capture."""
    seeded = (
        "import numpy, random, torch\nfor one in (torch.manual_seed, random.seed, numpy.random.seed):\n    one(0)\n"
        + BAD_SAMPLE.replace("< 0.5", "< 0")
    )
    text = (
        seeded.replace("range(50)", "range(2)") + "\ntorch.save(model.state_dict(), sys.argv[2])\n"
    )
    captured(light_torch(text), "0", "with.pt", code=0)
    subprocess.run([sys.executable, "train.py", "0", "without.pt"], cwd=tmp_path, check=True)
    import torch

    with_, without = (torch.load(tmp_path / f"{one}.pt") for one in ("with", "without"))
    assert all(with_[name].equal(without[name]) for name in with_)
    blocked = "import os; open(os.environ['EPOCHZERO_CAPTURE'], 'w').close()\n" + BEFORE
    folder = captured(blocked)
    assert "ZeroDivisionError" in next(folder.glob("output*.log")).read_text()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / MANIFEST).write_text("[1"), "damaged"),
        (lambda folder: _cut(folder / MANIFEST), "truncated or modified"),
        (lambda folder: _edit(folder, parts={"../../x": {}}), "invalid file name"),
        (lambda folder: _edit(folder, schema="epochzero.capture/9"), "is not epochzero.capture/3"),
        (lambda folder: _edit(folder, position=None), "damaged"),
        (lambda folder: (folder.parent / "job.json").unlink(), "damaged"),
        (lambda folder: _cut(_of_workers(folder) / FAILED), "truncated or modified"),
        (lambda folder: _cut(_of_workers(folder) / DRAWN), "truncated or modified"),
        (lambda folder: (_of_workers(folder) / FAILED).unlink(), "No such file"),
        (
            lambda folder: (_of_workers(folder) / DRAWN).write_text(LINE.upper()),
            "its digest differs",
        ),
    ],
)
def test_a_damaged_capture_is_refused(
    before: Path, tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    folder = copied(before, tmp_path)
    damage(folder / "capture" / "rank-0")
    with pytest.raises(InputError, match=re.escape(said)):
        again(folder)


def test_what_a_worker_has_drawn_since_the_manifest_is_no_damage(
    before: Path, tmp_path: Path
) -> None:
    """A job that was killed has written its manifest before."""
    folder = copied(before, tmp_path)
    with (_of_workers(folder / "capture" / "rank-0") / DRAWN).open("a") as file:
        file.write(LINE)
    assert read_capture(folder).failure.type == "ZeroDivisionError"


def _edit(folder: Path, **fields: object) -> None:
    write_json(folder / MANIFEST, read_json(folder / MANIFEST) | fields)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def _of_workers(folder: Path) -> Path:
    """Adds what the workers of a loader leave."""
    write_json(folder / FAILED, {"indices": [1, 2], "random": {}})
    (folder / DRAWN).write_text(LINE)
    _edit(folder, parts=parts_of_workers(folder))
    return folder


def test_of_several_ranks_the_one_that_failed_first_is_taken(captured: Captured) -> None:
    folder = captured(BEFORE, RANK="1") / "capture"
    other = folder / "rank-0"
    other.mkdir()
    told = read_json(folder / "rank-1" / MANIFEST)
    ended = told | {"rank": 0, "time": 0, "failure": told["failure"] | {"kind": "signal"}}
    write_json(other / MANIFEST, ended)
    assert read_capture(folder).rank == 1


RANKS = """
import sys
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(9):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 5 and dist.get_rank() == 1:
        raise ValueError("bad shard")
"""


def test_ranks_of_torchrun_come_again_together(captured: Captured) -> None:
    folder = captured(
        light_torch(RANKS), before=("-m", "torch.distributed.run", "--nproc_per_node=2")
    )
    replayed = again(folder)
    assert (replayed.expected.text, replayed.reproduced) == ("ValueError: bad shard", True)
    assert (replayed.position.steps, replayed.exactness) == (6, "bits")


@pytest.mark.parametrize(("later", "taken"), [(0, 0), (3, 1)])
def test_a_loss_of_another_rank_counts_if_it_was_not_finite_one_step_before(
    captured: Captured, later: int, taken: int
) -> None:
    folder = captured(BEFORE, RANK="1") / "capture"
    other = folder / "rank-0"
    other.mkdir()
    told = read_json(folder / "rank-1" / MANIFEST)
    position = told["position"] | {"backwards": 4}
    _edit(folder / "rank-1", position=position | {"backwards": 4 + later})
    loss = {"value": "inf", "place": None, "operators": [], "position": position}
    write_json(other / MANIFEST, told | {"rank": 0, "time": 1e12, "nonfinite": loss, "parts": {}})
    read = read_capture(folder)
    assert (read.rank, read.failure.kind) == (taken, ("nonfinite", "exception")[taken])


def test_the_step_in_which_the_loss_of_another_rank_was_not_finite_comes_again(
    captured: Captured,
) -> None:
    program = RANKS.replace("pow(2).mean()", "pow(2).mean() / (step != 5 or dist.get_rank() != 1)")
    failing = "    if dist.get_rank() == 0 and not torch.isfinite(loss):"
    program = program.replace("    if step == 5 and dist.get_rank() == 1:", failing)
    folder = captured(
        light_torch(program), before=("-m", "torch.distributed.run", "--nproc_per_node=2")
    )
    replayed = again(folder, bisect=True)
    assert replayed.expected.text == "the loss is inf in rank 1; rank 0 failed one step later"
    assert (replayed.reproduced, replayed.position.steps) == (True, 5)
    assert replayed.walked is not None
    assert replayed.walked.culprit is not None
    assert replayed.walked.culprit.name == "aten.div.Tensor"


def test_a_helper_that_ends_well_leaves_the_capture_of_the_one_that_failed(
    captured: Captured,
) -> None:
    folder = captured(
        "import os, subprocess, sys\n"
        "if len(sys.argv) > 1:\n    raise ValueError('first')\n"
        "subprocess.run([sys.executable, 'train.py', 'fails'])\n"
        "subprocess.run([sys.executable, '-c', 'pass'])\nsys.exit(3)\n",
        code=3,
    )
    assert read_capture(folder).failure.text == "ValueError: first"


READS = """
import sys
for line in sys.stdin:
    print(1 / int(line))
"""


@pytest.mark.parametrize("piped", [False, True])
def test_standard_input_is_read_again_where_it_was_a_file(
    captured: Captured, tmp_path: Path, piped: bool
) -> None:
    (tmp_path / "numbers.txt").write_text("1\n0\n")
    reading, writing = os.pipe()
    os.write(writing, b"1\n0\n")
    os.close(writing)
    source = reading if piped else os.open(tmp_path / "numbers.txt", os.O_RDONLY)
    before = os.dup(0)
    os.dup2(source, 0)
    try:
        folder = captured(READS)
    finally:
        os.dup2(before, 0)
        for descriptor in {before, source, reading}:
            os.close(descriptor)
    replayed = again(folder)
    assert replayed.reproduced is not piped
    assert any("was a pipe" in text for text in replayed.differences) is piped


def test_what_the_job_itself_has_written_and_is_read_now_is_named(captured: Captured) -> None:
    folder = captured(
        "import os\nfirst = int(open('last').read()) if os.path.exists('last') else 0\n"
        "open('last', 'w').write('5')\n1 / 0\n"
    )
    said = " ".join(again(folder).differences)
    assert f"{folder.parents[3] / 'last'} was read" in said
    assert "move it away" in said


@pytest.mark.parametrize(("modified", "named"), [(999.996, True), (999.0, False), (1001.0, False)])
def test_a_file_that_was_written_in_the_first_tick_of_the_job_is_named(
    tmp_path: Path, modified: float, named: bool
) -> None:
    file = tmp_path / "last"
    file.write_text("5")
    os.utime(file, (modified, modified))
    inputs = Inputs(str(tmp_path / "other"))
    inputs.note(str(file))
    assert bool(inputs.changed_between(1000.0, 1001.0)) is named


def test_a_job_that_was_ended_from_outside_is_said_to_be(captured: Captured) -> None:
    program = (
        "import os, signal, time, torch\n"
        "weight = torch.ones(2, requires_grad=True)\n"
        "weight.sum().backward()\n"
        "if 'EPOCHZERO_REPLAY' not in os.environ:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(60)\n"
    )
    folder = captured(light_torch(program), code=143)
    replayed = again(folder)
    assert (replayed.expected.type, replayed.reproduced) == ("SIGTERM", False)
    assert any("terminated from outside" in text for text in replayed.differences)


STREAM = """
import time, torch
torch.set_num_threads(1)
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(torch.arange(2000.0).reshape(500, 4))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
for x in torch.utils.data.DataLoader(Stream(), 2):
    time.sleep(0.002)
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    assert x[0, 0] < 1600, "late in the stream"
"""


def test_a_stream_goes_on_from_the_snapshot_with_the_batches_that_were_kept(
    captured: Captured,
) -> None:
    folder = captured(light_torch(STREAM))
    capture = read_capture(folder)
    assert capture.snapshot is not None
    replayed = again(folder, way="snapshot")
    assert (replayed.reproduced, replayed.exactness) == (True, "bits")
    assert replayed.position == capture.position
    assert replayed.compared < capture.position.steps


EPOCHS = """
import sys, torch
torch.set_num_threads(1)
data = torch.arange(24.0).reshape(12, 2)
model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Dropout(0.5))
optimizer = torch.optim.SGD(model.parameters(), 1e-4)
keeper = sys.modules.get("epochzero.run.replay.child.keeper")
for epoch in range(4):
    for number, x in enumerate(torch.utils.data.DataLoader(data, 4, shuffle=True)):
        if keeper:
            keeper.SNAPSHOTS, keeper.SHORT_S = 0.0 if (epoch, number) >= (1, AFTER) else 1e9, 0.0
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
raise ValueError("after four epochs")
"""


@pytest.mark.parametrize("after", [0, 1, 2])
def test_epochs_after_the_snapshot_are_shuffled_as_they_were(
    captured: Captured, after: int
) -> None:
    """From a snapshot before the first batch of an epoch, within one, and before its last."""
    folder = captured(light_torch(EPOCHS).replace("AFTER", str(after)))
    capture = read_capture(folder)
    assert capture.snapshot is not None
    assert capture.snapshot.steps == 3 + after
    replayed = again(folder, way="snapshot")
    assert (replayed.exactness, replayed.compared) == ("bits", 9 - after)


IN_A_WORKER = """
import json, torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return float(json.loads("1" if i < 5 else "{"))
for _ in torch.utils.data.DataLoader(Data(), 2, num_workers=1):
    pass
"""


def test_what_failed_in_a_worker_is_told_with_its_own_type_and_line(captured: Captured) -> None:
    """Also where it cannot be raised again: this exception needs more than a message."""
    replayed = again(captured(light_torch(IN_A_WORKER)))
    assert replayed.reproduced
    expected = replayed.expected
    assert (expected.type, expected.line) == ("json.decoder.JSONDecodeError", 7)
    assert expected.function == "__getitem__"
    assert expected.text.startswith("json.decoder.JSONDecodeError: Expecting property name")
