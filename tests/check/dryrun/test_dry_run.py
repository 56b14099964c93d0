"""Whole scripts, run dry: how far they come, what fails, and what is not the platform's fault."""

from __future__ import annotations

import os
import socket
import sys
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from epochzero.check import CheckResult, Limits, Target, check
from epochzero.check.dryrun import attempt, process
from epochzero.check.dryrun.contain import Exit, Means, containment_by
from epochzero.check.dryrun.launchers import ForkServer
from epochzero.check.dryrun.process import run_contained
from epochzero.check.dryrun.records import ErrorRecord
from epochzero.check.dryrun.run import _grow_alike
from epochzero.check.target.model import GPU

pytest.importorskip("torch", reason="the scripts train with torch")
pytestmark = pytest.mark.usefixtures("preloaded")

HERE = Target(name="here", here=True, gpus=())
PRELUDE = """\
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def data(samples=403, classes=4):
    return TensorDataset(torch.randn(samples, 8), torch.randint(0, classes, (samples,)))
"""


def dry(
    folder: Path,
    script: str,
    *arguments: str,
    target: Target = HERE,
    seconds: float = 60.0,
    prelude: str = PRELUDE,
) -> CheckResult:
    """Checks a script, which begins in line 8 behind the prelude, dry alone."""
    (folder / "train.py").write_text(prelude + dedent(script))
    return check(
        [sys.executable, "train.py", *arguments],
        target,
        folder=folder,
        environment=dict(os.environ),
        select=["dry-run-failed", "dry-run-crashed", "dry-run-nan"],
        dry=Limits(seconds=seconds),
    )


WHOLE = """
    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=100)
        parser.add_argument("--resume")
        args = parser.parse_args()
        model = nn.Linear(8, 4)
        if args.resume:
            model.load_state_dict(torch.load(args.resume))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        loader = DataLoader(data(), batch_size=10, num_workers=2, shuffle=True)
        for epoch in range(args.epochs):
            model.train()
            for x, y in loader:
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            scheduler.step()
            model.eval()
            with torch.no_grad():
                right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
            if (epoch + 1) % 50 == 0:
                torch.save(model.state_dict(), f"epoch{epoch}.pt")

    if __name__ == "__main__":
        main()
"""


def test_a_good_job_comes_to_its_end_and_tells_its_parts(tmp_path: Path) -> None:
    found = dry(tmp_path, WHOLE)
    (run,) = found.dry
    assert not found.findings
    assert run.ended == "finished"
    reached = [part.name for part in run.parts if part.reached]
    assert reached == [
        "arguments", "data", "forward", "backward", "optimizer step", "schedule", "validation", "save", "load",
    ]  # fmt: skip
    phases = {part.name: part.phase for part in run.parts}
    assert (phases["arguments"], phases["save"]) == ("initialization", "training")
    assert any("num_workers=2" in one.what for one in run.assumptions)


@pytest.mark.parametrize(
    ("body", "category", "phase", "code"),
    [
        ("model = nn.Linear(9, 4)", "tensor_mismatch", "training", "model(x)"),
        ("loader = DataLoader(data(classes=7))", "corrupt_data", "training", "cross_entropy"),
        ("history = {}['val_loss']", "key_not_found", "initialization", "val_loss"),
        ("model.requires_grad_(False)", "framework_api_misuse", "training", "backward"),
    ],
)
def test_a_failure_is_told_in_the_taxonomys_words(
    tmp_path: Path, body: str, category: str, phase: str, code: str
) -> None:
    script = f"""
    model = nn.Linear(8, 4)
    loader = DataLoader(data(), batch_size=10)
    {body}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(30):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    (finding,) = dry(tmp_path, script).findings
    assert (finding.rule, finding.severity) == ("dry-run-failed", "error")
    assert (finding.category, finding.phase) == (category, phase)
    assert finding.place.path == "train.py"
    assert code in finding.place.code


@pytest.mark.parametrize(
    ("end", "printed"),
    [
        ("sys.exit(f'needs {2} processes,\\n  has 1')", "needs 2 processes, has 1"),
        ("sys.exit(3)", ""),
    ],
)
def test_a_script_that_exits_with_a_text_is_quoted(tmp_path: Path, end: str, printed: str) -> None:
    (finding,) = dry(tmp_path, f"import sys\n{end}", prelude="").findings
    assert (finding.rule, finding.place.line) == ("dry-run-failed", 2)
    assert (f"exits here and prints: {printed}" in finding.message) is bool(printed)
    assert ("condition" in finding.fix) is bool(printed)


def test_an_error_that_a_library_turns_into_an_exit_is_placed_where_it_was_raised(
    tmp_path: Path,
) -> None:
    library = tmp_path / "site-packages" / "starter.py"
    library.parent.mkdir()
    library.write_text(
        "import sys, traceback\n"
        "def start(main):\n"
        "    try:\n"
        "        main()\n"
        "    except Exception:\n"
        "        traceback.print_exc()\n"
        "        sys.exit(1)\n"
    )
    script = """
    import sys
    sys.path.append("site-packages")
    from starter import start

    def main():
        for _ in range(500):
            pass
        raise ValueError("the data has no labels")

    start(main)
    """
    (finding,) = dry(tmp_path, script, prelude="").findings
    assert finding.place.code.startswith("raise")
    assert "the data has no labels" in finding.consequence


def test_what_the_last_epoch_and_the_last_batch_do_is_run(tmp_path: Path) -> None:
    script = """
    model = nn.Linear(8, 4)
    sizes = set()
    for epoch in range(1000):
        for step, (x, y) in enumerate(DataLoader(data(), batch_size=10)):
            model(x)
            sizes.add(len(x))
        if epoch == 999:
            assert sizes == {10, 3}, sizes
            model.fc.weight
    """
    (finding,) = dry(tmp_path, script).findings
    assert finding.category == "attribute_not_found"
    assert finding.severity == "error"


def test_what_only_shortening_would_break_is_no_finding(tmp_path: Path) -> None:
    script = """
    model = nn.Linear(8, 4)
    set_ = data()
    found = [model(x).argmax(1) for x, _ in DataLoader(set_, batch_size=10)]
    right = torch.cat(found) == set_.tensors[1]
    """
    found = dry(tmp_path, script)
    assert not found.findings
    assert found.dry[0].ended == "finished"


def test_a_nan_loss_is_a_warning(tmp_path: Path) -> None:
    script = """
    model = nn.Linear(8, 4)
    loss = (model(torch.zeros(2, 8)) / 0).mean() * 0
    loss.backward()
    """
    (finding,) = dry(tmp_path, script).findings
    assert (finding.rule, finding.severity) == ("dry-run-nan", "warning")
    assert finding.place.line == 11


def test_a_suppression_takes_it_away(tmp_path: Path) -> None:
    script = "\nraise KeyError('x')  # epochzero: ignore[dry-run-failed] it is wanted\n"
    found = dry(tmp_path, script)
    assert not found.findings
    assert len(found.suppressed) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("input()", "standard input"),
        ("import module_of_the_platform", "no module module_of_the_platform"),
        ("open('/data/of/the/platform.csv')", "does not exist on this machine"),
        ("raise ConnectionError('refused')", "network"),
        ("import os; os.environ['OF_THE_PLATFORM']", "OF_THE_PLATFORM is not set"),
    ],
)
def test_what_the_dry_run_lacks_is_unknown(tmp_path: Path, body: str, reason: str) -> None:
    cluster = Target(name="cluster", gpus=(GPU("A100", 80 << 30, (8, 0)),))
    found = dry(tmp_path, body, target=cluster)
    assert not found.findings
    assert any(reason in one.reason for one in found.unknowns)


def test_a_module_that_this_machine_lacks_is_an_error_if_the_job_starts_here(
    tmp_path: Path,
) -> None:
    (finding,) = dry(tmp_path, "import module_of_the_platform").findings
    assert (finding.category, finding.severity) == ("library_not_found", "error")


@pytest.mark.parametrize(
    "body",
    [
        "gpus = [0, 1]; print(gpus[2])",
        "name = 'gpu_memory.csv'; rows = []; print(rows[0], name)",
        "assert len('abc') == 2, 'two names for each of the gpus'",
    ],
)
def test_a_failure_that_only_speaks_of_gpus_is_one(tmp_path: Path, body: str) -> None:
    cluster = Target(name="cluster", gpus=(GPU("A100", 80 << 30, (8, 0)),))
    assert len(dry(tmp_path, body, target=cluster).findings) == 1


def test_a_program_that_gives_up_without_its_data_is_unknown(tmp_path: Path) -> None:
    script = """
    import os, sys
    if not os.path.exists(sys.argv[1]):
        sys.exit(2)
    """
    cluster = Target(name="cluster")
    found = dry(tmp_path, script, "/data/of/the/platform", target=cluster, prelude="")
    assert not found.findings
    assert any(
        "/data/of/the/platform does not exist on this" in one.reason for one in found.unknowns
    )
    (finding,) = dry(tmp_path, script, "/data/of/the/platform", prelude="").findings
    assert finding.severity == "error"


def test_what_an_earlier_job_writes_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("python first.py\npython train.py\n")
    (tmp_path / "first.py").write_text("")
    (tmp_path / "train.py").write_text("open('made_by_the_first')\n")
    found = check(
        ["sh", "run.sh"],
        HERE,
        folder=tmp_path,
        environment=dict(os.environ),
        dry=Limits(seconds=60),
        select=["dry-run-failed"],
    )
    assert [run.ended for run in found.dry] == ["finished", "stopped"]
    assert not found.findings


def test_a_process_of_a_launcher_has_what_that_sets(tmp_path: Path) -> None:
    script = "import os\nprint(int(os.environ['RANK']) // int(os.environ['WORLD_SIZE']))\n"
    (tmp_path / "train.py").write_text(script)
    found = check(
        ["torchrun", "--nproc_per_node=4", "train.py"],
        HERE,
        folder=tmp_path,
        environment=dict(os.environ),
        dry=Limits(seconds=60),
        select=["dry-run-failed"],
    )
    assert [run.ended for run in found.dry] == ["finished"]


@pytest.mark.parametrize(
    ("body", "category"),
    [
        ("import sys; sys.exit('no data were found in the folder')", None),
        ("import os; os._exit(3)", None),
        ("def f(:", "syntax_error"),
        ("import ctypes; ctypes.string_at(0)", "process_crash"),
    ],
)
def test_every_end_is_told(tmp_path: Path, body: str, category: str | None) -> None:
    (finding,) = dry(tmp_path, body, prelude="").findings
    assert finding.severity == "error"
    assert category in (None, finding.category)


def test_a_script_that_does_not_end_is_unknown(tmp_path: Path) -> None:
    found = dry(tmp_path, "while True: pass", prelude="", seconds=1.5)
    assert not found.findings
    assert found.dry[0].ended == "time"


def test_a_job_is_run_where_the_system_has_no_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    intercepted = containment_by(Means.INTERCEPTION)
    monkeypatch.setattr(process, "best_containment", lambda: intercepted)
    found = dry(tmp_path, "torch.save(nn.Linear(8, 4).state_dict(), 'model.pt')")
    assert (found.findings, found.dry[0].ended) == ((), "finished")
    assert not (tmp_path / "model.pt").exists()


ESCAPES = """
import os, socket, stat, sys
assert "sympy" in sys.modules, "not a fork"
kinds = []
for number in range(3, 1000):
    try:
        kinds.append(os.fstat(number).st_mode)
    except OSError:
        pass
assert not any(map(stat.S_ISSOCK, kinds)), "a socket of the process with torch"
with open({marker!r}, "w") as file:
    file.write("x")
for attempt in (lambda: os.kill({process}, 9), lambda: socket.create_connection({address}, 1)):
    try:
        attempt()
    except OSError:
        continue
    raise SystemExit("it got out")
"""


def test_a_fork_of_the_process_with_torch_is_contained(tmp_path: Path, zygote: ForkServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        script = ESCAPES.format(
            marker=str(tmp_path / "marker"),
            process=zygote.process.pid,
            address=listener.getsockname(),
        )
        found = dry(tmp_path, script, prelude="")
        assert (found.findings, [run.ended for run in found.dry]) == ((), ["finished"])
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert not (tmp_path / "marker").exists()
    assert zygote.process.poll() is None


def test_a_module_and_its_own_imports_are_run(tmp_path: Path) -> None:
    package = tmp_path / "job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "steps.py").write_text("def step(options):\n    return options['lr']\n")
    (package / "__main__.py").write_text("from job.steps import step\nstep({})\n")
    found = check(
        [sys.executable, "-m", "job"],
        HERE,
        folder=tmp_path,
        environment=dict(os.environ),
        dry=Limits(seconds=60),
        select=["dry-run-failed"],
    )
    (finding,) = found.findings
    assert (finding.place.path, finding.place.line) == ("job/steps.py", 2)
    assert finding.category == "key_not_found"
    assert [place.path for place in finding.via] == ["job/__main__.py"]


LONG = """
    import time
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100_000):
        x, y = torch.randn(5, 8), torch.randint(0, 4, (5,))
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("after", "severity"),
    [
        ("print((model(x).argmax(0) == y).sum())", "error"),
        ("nn.Linear(8, 4).load_state_dict({'module.weight': model.weight})", "error"),
        ("print(x @ y.double())", "error"),
        ("y.add_(loss.detach())", "error"),
    ],
    ids=["sizes", "keys", "types", "cast"],
)
def test_what_a_shortened_loop_cannot_cause_is_certain(
    tmp_path: Path, after: str, severity: str
) -> None:
    (finding,) = dry(tmp_path, f"{LONG}    {after}\n", seconds=60).findings
    assert finding.severity == severity
    assert finding.place.code == after


EPOCHS = """
import json
net, seen = nn.Linear(8, 2), {seen}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(300):
    for step in range(10):
        loss = net(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {add}
{end}
"""


@pytest.mark.parametrize(
    ("seen", "add", "end", "severity"),
    [
        ("[]", "seen.append(loss.detach())", "json.dumps(seen)", "error"),
        ("[]", "seen.append(loss.item())", "seen[0].cpu()", "error"),
        (
            "[]",
            "if epoch % 5 == 0: seen.append(1.0)",
            "torch.ones(300) + torch.tensor(seen)",
            "error",
        ),
        ("[]", "if epoch % 5 == 0: seen.append(1.0)", "torch.ones(60) + torch.tensor(seen)", ""),
        ("{}", "seen[epoch] = loss.item()", "seen['last']", "error"),
        ("{}", "seen[epoch] = loss.item()", "seen[150]", ""),
    ],
)
def test_a_failure_after_hours_is_an_error_if_no_skipped_iteration_can_change_it(
    tmp_path: Path, seen: str, add: str, end: str, severity: str
) -> None:
    script = EPOCHS.format(seen=seen, add=add, end=end)
    found = dry(tmp_path, script, seconds=60).findings
    assert [one.severity for one in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("message", "lengths", "certain"),
    [
        ("cannot reshape array of size {} into shape (6,newaxis)", {"losses": 5}, False),
        ("expects each tensor to be equal size, but got [32] at entry 0 and [7] at entry {}", {"scores": 6}, True),
        ("All arrays must be of the same length", {"losses": 5, "rates": 4}, True),
    ],
)  # fmt: skip
def test_the_length_of_one_list_may_be_right_after_all_iterations(
    message: str, lengths: dict[str, int], certain: bool
) -> None:
    first, second = (
        ErrorRecord(
            message=message.format(5 + more),
            taken=more,
            comparable=True,
            operands={name: f"length {length + more}" for name, length in lengths.items()},
        )
        for more in (0, 2)
    )
    assert _grow_alike(first, second) is certain


EPISODES = """
import random
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for episode in range(500):
    rewards, done = [], False
    while not done:
        score = net(torch.randn(4))
        rewards.append(1.0)
        done = len(rewards) >= random.randint(20, 40)
    assert torch.isfinite(torch.tensor(rewards).cumsum(0).std())
    optimizer.zero_grad()
    score.sum().backward()
    optimizer.step()
"""


def test_an_episode_that_ends_itself_is_not_shortened(tmp_path: Path) -> None:
    assert not dry(tmp_path, EPISODES, seconds=60).findings


POOL = """
from multiprocessing import get_context

def half(value):
    return 1 / value

if __name__ == "__main__":
    with get_context("fork").Pool(1) as pool:
        pool.map(half, [0])
"""
GROUP = """
def half(value):
    return 1 / value

errors = []
try:
    half(0)
except ZeroDivisionError as error:
    errors.append(error)
raise ExceptionGroup("some tasks failed", errors)
"""


@pytest.mark.parametrize(
    ("script", "line"),
    [
        (POOL, 5),
        pytest.param(
            GROUP, 3, marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="has no groups")
        ),
    ],
    ids=["pool", "group"],
)
def test_the_line_is_that_of_the_error_behind(tmp_path: Path, script: str, line: int) -> None:
    (finding,) = dry(tmp_path, script, prelude="").findings
    assert finding.place.line == line
    assert finding.place.code == "return 1 / value"


SLOW = """
    import time
    model = nn.Linear(8, 4)
    seen = 0
    for step in range(500):
        model(torch.randn(5, 8))
        seen += 1
        time.sleep(0.05)
    history = {seen: "all"}
    print(history[400])
"""


def test_all_attempts_share_the_time_and_a_warning_says_that_it_ran_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def noted(*given: Any, **how: Any) -> Exit:
        limits.append(how["limits"].seconds)
        return run_contained(*given, **how)

    monkeypatch.setattr(attempt, "run_contained", noted)
    # What only a value decides is not certain, however often it is repeated.
    program = SLOW.replace("seen += 1", "seen = step").replace("history[400]", "1 / (seen - seen)")
    (finding,) = dry(tmp_path, program, seconds=16).findings
    assert limits[0] <= 16
    assert all(later < earlier for earlier, later in pairwise(limits))
    assert finding.severity == "warning"
    assert "--dry-time increases it" in finding.message


def test_a_job_whose_loop_is_cut_off_is_not_finished(tmp_path: Path) -> None:
    checked = dry(
        tmp_path,
        """
        import time
        for step in range(10**9):
            time.sleep(0.01)
        print("done")
        """,
        seconds=10.0,
    )
    (run,) = checked.dry
    assert run.ended == "time"
    assert [(each.what, each.place.line) for each in run.unknowns] == [
        ("the last iterations of this loop", 10)
    ]


def test_the_verdict_counts_all_that_the_job_deletes(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"old-{number}.pt").touch()
    script = """
        import os
        for name in os.listdir():
            if name.endswith(".pt"):
                os.remove(name)
        """
    (run,) = dry(tmp_path, script).dry
    if run.effects.containment != "namespaces and overlays":
        pytest.skip("deleted files are known with namespaces only")
    assert (len(run.effects.deleted), run.effects.deletions) == (5, 9)


def test_what_the_platform_alone_has_stops_a_run_and_is_no_failure(tmp_path: Path) -> None:
    found = dry(tmp_path, "raise ConnectionError('refused')", target=Target(name="cluster"))
    assert (found.findings, found.dry[0].ended) == ((), "stopped")


def test_a_refused_argument_is_told_where_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\nparser.parse_args()\n"
    )
    (tmp_path / "run.sh").write_text("set -e\npython train.py \\\n  \\\n  --lrr=3\n")
    found = check(
        ["sh", "run.sh"],
        HERE,
        folder=tmp_path,
        environment=dict(os.environ),
        dry=Limits(seconds=60),
        select=["dry-run-failed"],
    )
    (finding,) = found.findings
    assert (finding.place.path, finding.place.line) == ("run.sh", 4)
    assert [place.line for place in finding.via] == [3]


EVALUATE = """
model = torch.nn.Linear(8, 4)
model.load_state_dict(torch.load("results/model.pt")["model"])
print(open("results/table.csv").read(), model(torch.ones(2, 8)).sum())
"""


@pytest.mark.parametrize("key", ["model", "weights"])
def test_a_job_finds_what_the_jobs_before_it_have_written(tmp_path: Path, key: str) -> None:
    python = sys.executable
    (tmp_path / "run.sh").write_text(f"mkdir results\n{python} train.py\n{python} evaluate.py\n")
    model = f"torch.save({{'{key}': torch.nn.Linear(8, 4).state_dict()}}, 'results/model.pt')\n"
    (tmp_path / "train.py").write_text(
        f"import torch\n{model}open('results/table.csv', 'w').write('a,b')\n"
        "open('done', 'w').close()\n"
    )
    (tmp_path / "evaluate.py").write_text("import torch" + EVALUATE)
    found = check(
        ["sh", "run.sh"],
        HERE,
        folder=tmp_path,
        environment=dict(os.environ),
        dry=Limits(seconds=60),
        select=["dry-run-failed"],
    )
    assert found.dry[0].ended == "finished"
    told = [(one.category, one.place.path, one.place.line) for one in found.findings]
    assert told == ([] if key == "model" else [("key_not_found", "evaluate.py", 3)])
    written = {one.place: one.files for one in found.dry[0].effects.written}
    assert written == {"results/": 2, "done": 1}
    assert found.dry[1].effects.written == ()
    assert list(tmp_path.glob("*/")) in ([], [tmp_path / "__pycache__"])


@pytest.mark.usefixtures("preloaded")
def test_a_line_that_ran_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "train.py").write_text(
        "import os, sys\n"
        "sys.path[:0] = [os.path.join(os.path.dirname(__file__), name) for name in ('li' + 'b',)]\n"
        "def main():\n"
        "    from helper import double\n"
        "    return double(missing)\n"
        "missing = 3 if len(sys.argv) > 1 else 4\n"
        "main()\n"
        "print(absent)\n"
    )
    command = [sys.executable, "train.py"]
    read = check(command, folder=tmp_path, environment=dict(os.environ))
    assert {(one.rule, one.place.line) for one in read.findings} == {
        ("module-missing", 4),
        ("undefined-name", 8),
    }
    found = check(command, folder=tmp_path, environment=dict(os.environ), dry=Limits(seconds=60))
    assert [(one.rule, one.place.line) for one in found.findings] == [("undefined-name", 8)]
    assert [place.line for place in found.dry[0].passed] == [4]


def test_the_shells_search_path_finds_modules_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("value = 1\n")
    (tmp_path / "train.py").write_text("from helper import value, absent\n")
    environment = {**os.environ, "PYTHONPATH": "lib"}
    found = check([sys.executable, "train.py"], folder=tmp_path, environment=environment)
    assert [one.consequence for one in found.findings] == [
        "ImportError: cannot import name 'absent' from 'helper'"
    ]


def test_a_job_imports_the_epochzero_of_its_own_python(tmp_path: Path) -> None:
    """Not the parts that run it dry."""
    found = dry(
        tmp_path,
        """
        import epochzero
        from epochzero.integrations import progress
        assert epochzero.progress is progress
        progress(step=1, steps=2)
        """,
    )
    assert not found.findings
    assert found.dry[0].ended == "finished"


def test_an_error_that_was_survived_is_not_the_one_that_ended_the_script(tmp_path: Path) -> None:
    script = """
    import traceback
    try:
        torch.load("warm.pt")
    except FileNotFoundError:
        traceback.print_exc()
        print("no warm start")
    nn.Linear(8, 4)(torch.randn(2, 9))
    """
    (one,) = dry(tmp_path, script).findings
    assert (one.place.line, one.category) == (15, "tensor_mismatch")
    assert "No such file" not in one.message
    assert "mat1 and mat2" in one.consequence


def test_an_error_that_the_script_logs_before_it_exits_is_reported_where_it_occurs(
    tmp_path: Path,
) -> None:
    script = """
    import logging, sys
    def main():
        nn.Linear(8, 4)(torch.randn(2, 9))
    try:
        main()
    except Exception:
        logging.exception("training failed")
        sys.exit(1)
    """
    (one,) = dry(tmp_path, script).findings
    assert (one.place.line, one.category) == (11, "tensor_mismatch")


def test_code_that_handles_an_error_may_exit_for_another_reason(tmp_path: Path) -> None:
    script = """
    import sys
    def without_config():
        print("error: --config is required", file=sys.stderr)
        sys.exit(2)
    try:
        {}["config"]
    except KeyError:
        without_config()
    """
    (one,) = dry(tmp_path, script).findings
    assert one.place.line == 12


@pytest.mark.parametrize("options", ["check=True", "check=True, capture_output=True, text=True"])
def test_the_error_of_a_program_that_the_script_starts_is_the_cause(
    tmp_path: Path, options: str
) -> None:
    (tmp_path / "prepare.py").write_text("import json\njson.loads('{broken')\n")
    script = f"""
    import subprocess, sys
    subprocess.run([sys.executable, "prepare.py"], {options})
    """
    (one,) = dry(tmp_path, script).findings
    assert (one.place.path, one.place.line) == ("prepare.py", 2)
    assert "JSONDecodeError" in one.consequence


def test_the_error_of_a_process_explains_what_its_parent_raises(tmp_path: Path) -> None:
    script = """
    import multiprocessing
    def work():
        nn.Linear(8, 4)(torch.randn(2, 9))
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError("a worker failed")
    """
    (one,) = dry(tmp_path, script).findings
    assert one.category == "tensor_mismatch"


def test_the_jobs_python_needs_no_epochzero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = tmp_path / "without"
    without.mkdir()
    (without / "sitecustomize.py").write_text(
        "import os, sys\n"
        "sys.path[:] = [p for p in sys.path if not os.path.isdir(os.path.join(p, 'epochzero'))]\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(without))
    script = """
    import importlib.util
    assert importlib.util.find_spec("epochzero") is None
    nn.Linear(8, 4)(torch.randn(2, 9))
    """
    (one,) = dry(tmp_path, script).findings
    assert (one.place.line, one.category) == (11, "tensor_mismatch")


def test_a_batch_that_cannot_be_formed_does_not_depend_on_skipped_iterations(
    tmp_path: Path,
) -> None:
    script = """
    import time
    class Recordings(torch.utils.data.Dataset):
        def __len__(self):
            return 4000
        def __getitem__(self, index):
            return torch.randn(8 if index < 3990 else 9)
    model = nn.Linear(8, 4)
    for epoch in range(1000):
        for x in DataLoader(Recordings(), batch_size=16):
            time.sleep(0.02)
            model(x).sum().backward()
    """
    (one,) = dry(tmp_path, script, seconds=40).findings
    assert (one.severity, one.place.line) == ("error", 17)
