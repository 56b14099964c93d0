"""A job whose training is watched from outside: what is said, kept and ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from epochzero.cli import render_watch
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.live import EVENT, EXIT_CODE, FOUND_EVENT, News
from epochzero.run.watch.model import TrainingFinding, of_dict, to_dict
from epochzero.run.watch.record_reader import MOST_BYTES, RecordBuffer, RecordFileReader
from tests.run.conftest import Ask, Kept
from tests.torch_jobs import light_torch
from tests.waiting import PATIENCE_S

torch = pytest.importorskip("torch")

TRAINING = """
import os, sys, time
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
inputs = torch.randn(64, 4)
labels = (inputs.sum(1) > 0).long()
model = torch.nn.Sequential(
    torch.nn.Linear(4, 8),
    torch.nn.Linear(8, 2),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    {clear}
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    time.sleep(float(sys.argv[2]))
print("trained", os.environ.get("PYTHONPATH"))
"""
FAULTY = TRAINING.format(clear="pass")
GOOD = TRAINING.format(clear="optimizer.zero_grad()")
BACKWARD_LINE = 16

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def train(run: Run, tmp_path: Path) -> Run:
    """Runs a training under the watch; options of the run stand before the program."""

    def call(
        *options: str, program: str = FAULTY, steps: int = 20, sleep: float = 0.0, **how: object
    ) -> subprocess.CompletedProcess[bytes]:
        (tmp_path / "train.py").write_text(light_torch(program))
        words = (sys.executable, "train.py", str(steps), str(sleep))
        how = {"cwd": tmp_path, "timeout": PATIENCE_S, **how}
        return run("--watch", *options, "--", *words, **how)

    return call


def test_a_fault_is_told_with_its_line_and_the_job_ends_well(
    train: Run, kept: Kept, ask: Ask
) -> None:
    done = train()
    said = done.stderr.decode()
    assert done.returncode == 0
    assert b"trained" in done.stdout
    line = f"train.py:{BACKWARD_LINE}"
    # A short job may be over before the first conclusion, which then confirms at once.
    assert f" since iteration 1: Gradients are not cleared ({line})\n" in said
    assert "zero_grad_missing (confirmed, " in said
    assert "zero_grad()" in said
    event = kept.events[FOUND_EVENT]
    assert event.details["word"] == "zero_grad_missing"
    assert event.details["place"].endswith(line)
    told = json.loads(kept.events[EVENT].details["watched"])
    assert json.loads(json.dumps(to_dict(of_dict(told)))) == told
    assert told["root"]["word"] == "zero_grad_missing"
    assert "zero_grad_missing" in ask("show", "last")


RATE = (
    GOOD.replace("import os,", "import argparse, os,")
    .replace("lr=0.1", "lr=options.lr")
    .replace(
        "torch.manual_seed(0)",
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lr', type=float, default=0.1)\n"
        "options, _ = parser.parse_known_args()\n"
        "torch.manual_seed(0)",
    )
    .replace(
        "cross_entropy(model(inputs), labels)",
        "mse_loss(model(inputs), torch.nn.functional.one_hot(labels).float())",
    )
)


def test_an_option_that_set_a_value_is_named_and_symptoms_are_counted(
    run: Run, tmp_path: Path, kept: Kept
) -> None:
    (tmp_path / "train.py").write_text(RATE)
    words = (sys.executable, "train.py", "40", "0", "--lr=10", "--api-key", "hunter")
    done = run("--watch", "--", *words, cwd=tmp_path, timeout=PATIENCE_S)
    said = done.stderr.decode().splitlines()
    told = [line for line in said if line.startswith("epochzero: ")]
    assert (
        told[0]
        == "epochzero: suspected since iteration 2: Learning rate too high (train.py:5, --lr 10)"
    )
    assert len(told) <= 3
    assert all("symptom" in line for line in told[1:])
    assert "Option      --lr 10" in said
    assert "hunter" not in (kept.folder / "watch.jsonl").read_text()


def test_a_root_is_told_with_its_symptoms_in_one_more_line() -> None:
    root, first, second = (
        TrainingFinding(word, 1, "", causes=("loss_rising", "loss_oscillating"))
        for word in ("learning_rate_too_high", "loss_rising", "loss_oscillating")
    )
    assert list(render_watch.found(News(root, (first, second)))) == [
        "suspected since iteration 1: Learning rate too high",
        "and 2 symptoms of it: Loss rises, Loss jumps up and down",
    ]
    assert list(render_watch.found(News(root, (second,), known=True))) == [
        '1 more symptom of "Learning rate too high": Loss jumps up and down'
    ]
    assert list(render_watch.found(News(second))) == [
        "suspected since iteration 1: Loss jumps up and down"
    ]


def test_a_good_training_is_told_to_be_good(train: Run, kept: Kept) -> None:
    done = train(program=GOOD)
    assert done.returncode == 0
    assert b"no fault found in 20 iterations" in done.stderr
    assert FOUND_EVENT not in kept.events


def test_quiet_says_nothing_and_keeps_all_and_fail_on_another_fault_leaves_the_job(
    train: Run, kept: Kept
) -> None:
    done = train("--quiet", "--fail-on", "dead_units")
    assert done.returncode == 0
    assert b"epochzero" not in done.stderr
    assert FOUND_EVENT in kept.events


def test_fail_on_ends_the_job(train: Run, kept: Kept) -> None:
    done = train("--fail-on", "zero_grad_missing", steps=10_000, sleep=0.1)
    assert done.returncode == EXIT_CODE
    assert b"trained" not in done.stdout
    assert (kept.ended.exit_code, kept.ended.why) == (EXIT_CODE, "watch")
    assert "ended_by_watch" in kept.events
    assert b"Gradients are not cleared" in done.stderr


def test_fail_on_fails_a_job_that_has_ended_by_itself(train: Run, kept: Kept) -> None:
    assert train("--fail-on", "any").returncode == EXIT_CODE
    assert kept.ended.why == "watch"


def test_a_word_that_is_no_fault_is_refused(run: Run) -> None:
    done = run("--watch", "--fail-on", "zero_grad", "--", "true")
    assert done.returncode == 2
    assert b"zero_grad" in done.stderr
    assert run("--fail-on", "any", "--", "true").returncode == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("true",), b"no Python was started"),
        ((sys.executable, "-c", "pass"), b"neither PyTorch nor Keras was imported"),
        ((sys.executable, "-c", "import torch"), b"neither a backward pass"),
    ],
)
def test_why_nothing_was_watched(run: Run, words: tuple[str, ...], why: bytes) -> None:
    done = run("--watch", "--", *words, timeout=PATIENCE_S)
    assert done.returncode == 0
    assert b"nothing was watched: " in done.stderr
    assert why in b" ".join(done.stderr.split())


def test_the_job_sees_its_own_variables_and_runs_its_own_sitecustomize(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nif 'EPOCHZERO_JOB' in os.environ: print('mine')"
    )
    path = os.pathsep.join((str(tmp_path), *filter(None, (os.environ.get("PYTHONPATH"),))))
    program = (
        "import os, subprocess, sys; print(os.environ['PYTHONPATH'], flush=True)\n"
        "if len(sys.argv) < 2: subprocess.run([sys.executable, sys.argv[0], 'child'])"
    )
    (tmp_path / "job.py").write_text(program)
    done = run(
        "--watch", "--", sys.executable, "job.py",
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.stdout.decode().split("\n") == ["mine", path, "mine", path, ""]


def test_what_a_job_starts_is_watched(train: Run, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(FAULTY)
    starts = "import subprocess, sys; subprocess.run([sys.executable, 'other.py', *sys.argv[1:]])"
    assert b"zero_grad_missing" in train(program=starts).stderr


def test_a_python_without_us_is_watched_and_stays_without_us(run: Run, tmp_path: Path) -> None:
    python = getattr(sys, "_base_executable", sys.executable)
    environment = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1])}
    program = FAULTY + "import importlib.util as util; print(util.find_spec('epochzero'))\n"
    (tmp_path / "train.py").write_text(light_torch(program))
    there = subprocess.run([python, "-c", "import epochzero"], env=environment, check=False)
    if there.returncode == 0:
        pytest.skip("this Python has us")
    root = str(Path(__file__).resolve().parents[3] / "src")
    start = f"import sys; sys.path.insert(0, {root!r}); from epochzero.cli import main; main()"
    words = ("run", "--watch", "--", python, "train.py", "20", "0")
    done = subprocess.run(
        [sys.executable, "-c", start, *words],
        cwd=tmp_path, env={**environment, "EPOCHZERO_HOME": str(tmp_path / "home")},
        capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert b"zero_grad_missing" in done.stderr, done.stderr
    assert b"\nNone\n" in done.stdout


def test_of_several_ranks_the_first_is_watched(run: Run, tmp_path: Path, kept: Kept) -> None:
    program = FAULTY.replace("print(", "os.environ['RANK'] == '1' or print(")
    (tmp_path / "train.py").write_text(light_torch(program))
    words = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    done = run(
        "--watch", "--", *words, "train.py", "20", "0", cwd=tmp_path, timeout=PATIENCE_S
    )  # fmt: skip
    assert done.returncode == 0
    assert b"zero_grad_missing" in done.stderr
    kinds = [
        json.loads(line)["kind"] for line in (kept.folder / "watch.jsonl").read_text().splitlines()
    ]
    assert kinds.count("begun") == kinds.count("ended") == 1


def test_of_many_records_an_even_choice_is_held() -> None:
    followed = RecordBuffer()
    followed.take({"kind": "begun"}, 10)
    size = MOST_BYTES // 1000
    for number in range(3000):
        followed.take({"kind": "iteration", "iteration": number}, size)
    held = [record.get("iteration") for record in followed.records]
    assert len(held) * size <= MOST_BYTES + size
    assert held[:50] == [None, *range(49)]
    assert {b - a for a, b in pairwise(held[102:])} == {4}
    assert held[-1] == 2996


def test_a_file_that_is_begun_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "watch.jsonl"
    following = RecordFileReader(path)
    assert not following.read()
    path.write_bytes(b'{"kind":"begun","pid":1}\n{"kind":"los')
    assert following.read()
    assert [record["pid"] for record in following.records] == [1]
    path.write_bytes(b'{"kind":"x"}\n')
    assert following.read()
    assert [record["kind"] for record in following.records] == ["x"]


def test_a_file_has_the_records_of_one_process_that_trains(tmp_path: Path) -> None:
    path = tmp_path / "watch.jsonl"
    idle, first, second = (Records(str(path)) for _ in range(3))
    idle.emit("begun", pid=os.getpid())
    idle.flush()
    assert not path.exists()
    first.emit("begun", pid=os.getppid())
    first.emit("losses", losses=[])
    first.flush()
    second.emit("begun", pid=os.getpid())
    second.emit("losses", losses=[])
    second.flush()
    begun = json.loads(path.read_text().splitlines()[0])
    assert begun["pid"] == os.getppid()


def test_who_trains_next_begins_the_file_anew(tmp_path: Path) -> None:
    path = tmp_path / "watch.jsonl"
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    training, evaluating, failing, next_training = (Records(str(path)) for _ in range(4))
    training.emit("begun", pid=int(gone.stdout))
    training.emit("losses", losses=[])
    training.flush()
    before = path.read_text()
    evaluating.emit("begun", pid=os.getpid())
    evaluating.emit("evaluation", loss=1.0)
    evaluating.flush()
    failing.emit("failed", error="KeyError")
    failing.flush()
    assert path.read_text() == before
    next_training.emit("begun", pid=os.getpid())
    next_training.emit("losses", losses=[])
    next_training.flush()
    assert json.loads(path.read_text().splitlines()[0])["pid"] == os.getpid()


def test_a_failure_is_told_where_nothing_trains(tmp_path: Path) -> None:
    path = tmp_path / "watch.jsonl"
    failing = Records(str(path))
    failing.emit("failed", error="KeyError")
    failing.flush()
    assert json.loads(path.read_text())["error"] == "KeyError"
