"""Every command and script of the guides and of the command line's help runs as it is written, next to the files that it names.

What cannot run here stands in `blocks.toml`, with the reason and, where one runs it, the test.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import random
import re
import runpy
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from epochzero.cli import commands
from epochzero.run.retry.advice import EXIT_CODES
from tests.check.target.test_image import BASE, TOP, docker, packed
from tests.check.target.test_nodes import NODES, PARTITION, TABLE, pod_host
from tests.cli.test_label_command import write_labels
from tests.cli.test_locate_command import LOADER, REPORT, covered
from tests.forge import REPOSITORY, TOKEN, Forge, issue_event, pull_request_event
from tests.ports import unused_port
from tests.run.conftest import command_server
from tests.study.localization.made import Project
from tests.torch_jobs import light_torch
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
TABLES = tomllib.loads((Path(__file__).parent / "blocks.toml").read_text(encoding="utf-8"))
PAGES = sorted(path.stem for path in ROOT.glob("docs/*.md"))
PAGE_OF = {
    **dict.fromkeys(("jobs", "show", "export", "record"), "store"),
    **{"send": "serve", "mcp": "agents", "doctor": "install", "explain": "diagnose", "model": "models"},
}  # fmt: skip
"""The page in whose directory the commands of a help run; otherwise the page has the command's name."""
BLOCK = re.compile(r"(?ms)^```([^\n]*)\n(.*?)^```$|(?<=\n\n)((?:    [^\n]*\n)+)")
COMMAND = re.compile(r"(?:\$ |- run: |- )?((?:.*\| |srun )?(?:[A-Z_]+=\S+ )?(?:\S+/)?epochzero [^|].*)")  # fmt: skip
SERVERS = re.compile(r"epochzero (serve( .*--key key.pem)?|mcp --http \S+|check --serve &)$")

ELSEWHERE = TABLES["commands"]
PYTHON_ELSEWHERE = TABLES["python"]

TRAIN = """
import argparse, time

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--data", default="data")
options = parser.parse_args()
for step in range(options.epochs * 30):
    print(f"step {step + 1}/{options.epochs * 30} loss {1 / (step + 1):.4f}", flush=True)
    time.sleep(0.002)
print({"rate": 0.1}["fox"])
"""
TRAIN_WITH_TORCH = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", "--batch-size", dest="batch", type=int, default=8)
options = parser.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(45):
    inputs = torch.rand(options.batch, 4)
    loss = nn.functional.cross_entropy(model(inputs), torch.arange(options.batch) % 2)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
model.eval()
print(model(torch.rand(1, 5)))
"""
WITH_TORCH = {"integrations", "memory", "models", "replay", "survive", "watch"}
"""The pages that need PyTorch; importing it takes seconds."""
NET = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
"""
DATA = """
import numpy as np

def made(seed):
    values = np.random.default_rng(seed).normal(size=(240, 3)).astype("float32")
    return values, (values[:, 0] > 0.3 * np.sin(9 * values[:, 1])).astype("int64")

train, test, other = made(1), made(2), (made(3)[0] + 5, made(3)[1])
"""
READER = {
    "github": """
token, commit, reader_url = os.environ["GITHUB_TOKEN"], "HEAD", os.environ["GITHUB_API_URL"]
""",
    "locate": "reports = ['run_loader returns a wrong value', 'Cut off shards']",
    "memory": "command = ['python', 'train.py', '--batch', '8']",
    "models": """
import torch
from epochzero_models import load_model
model = load_model("net.py:build", "net.pt")
inputs = torch.zeros(2, 3)
text = open("train.py").read()
""",
    "torch": """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
    def forward(self, batch):
        return self.head(self.encoder(batch).relu())
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = inputs = torch.rand(8, 4)
loader = [batch]
is_right = torch.arange(8) % 2 == 0
def loss_of(batch):
    return model(batch).pow(2).mean()
def train(*_):
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(batch).backward()
        optimizer.step()
""",
}
"""What the reader of a page has before its first block."""
FORGE = ('GitHub("owner/project", token)', f'GitHub("{REPOSITORY}", token, reader_url)')
LOG = (ROOT / "lab/logs/ranks_missing_shard/logs/tab_f97xzpnu/attempt_0/1/stderr.log").read_text(
    encoding="utf-8"
)

OUT_OF_MEMORY = """
Traceback (most recent call last):
  File "/job/train.py", line 12, in <module>
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free.
"""


@cache
def commands_of(page: str) -> list[str]:
    """The calls of `epochzero` in the blocks of a page and in the help of its commands, each once."""
    texts = [
        block[2] or block[3] for block in BLOCK.finditer(_text(page)) if block[1] != "bash"
    ] + [text for name, text in _helps(commands, "") if PAGE_OF.get(name, name) == page]
    lines = "\n".join(texts).replace("\\\n", " ").splitlines()
    found = (COMMAND.match(line.strip()) for line in lines)
    calls = (match[1].partition("  #")[0].strip() for match in found if match)
    return list(dict.fromkeys(call.replace(" ...", "") for call in calls))


def _text(page: str) -> str:
    return (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")


def _helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it, by the name of the topmost."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            if found is not None and not found.hidden:
                yield from _helps(found, name or part)
    yield name, textwrap.dedent(command.help or "")


def test_every_help_has_a_page() -> None:
    assert {PAGE_OF.get(name, name) for name, _ in _helps(commands, "") if name} <= set(PAGES)


def test_what_runs_elsewhere_is_part_of_a_guide() -> None:
    every = "\n".join(call for page in PAGES for call in commands_of(page))
    assert [pattern for pattern in ELSEWHERE if not re.search(pattern, every, re.M)] == []
    assert sum(len(commands_of(page)) for page in PAGES) > 180


@pytest.fixture(scope="module")
def with_torch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """As `preloaded_run`, of a server that has imported PyTorch and what writes reports."""
    modules = (
        "torch._dynamo",
        "torch.optim",
        "epochzero_models.cli",
        "epochzero.study",
        "matplotlib.figure",
    )
    with command_server(tmp_path_factory.mktemp("torch"), *modules) as client:
        yield (*client, "epochzero", "run")


@pytest.fixture
def programs(page: str, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A directory with `epochzero`, a Python for its functions, and stand-ins for the programs of a cluster."""
    server = "with_torch" if page in {"study", *WITH_TORCH} else "preloaded_run"
    *client, _, _ = request.getfixturevalue(server)
    (folder := tmp_path / "programs").mkdir()
    answers = {
        "pods": json.dumps({"kind": "List", "items": [pod_host("t4"), pod_host("t4")]}),
        "nodes": PARTITION.replace("a100", "gpu") + NODES.replace("h100", "a100"),
        "log": LOG,
        "issue": json.dumps({"title": "KeyError", "body": REPORT}),
    }
    for name, text in answers.items():
        (folder / name).write_text(text)
    scripts = {
        "epochzero": f'exec {shlex.join(client)} epochzero "$@"',
        "preloaded-python": f'exec {shlex.join(client)} python "$@"',
        "srun": 'exec "$@"',
        "scontrol": f"[ $2 = node ] && exec cat {folder}/nodes",
        "kubectl": f"[ $1 = get ] && exec cat {folder}/pods; exec cat {folder}/log",
        "gh": f"exec cat {folder}/issue",
    }
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


def python_of(page: str) -> str:
    """The Python blocks of a page as one program, which compares an expression with a literal in its comment."""
    blocks = [block[2] for block in BLOCK.finditer(_text(page)) if block[1] == "python"]
    kept = [text for text in blocks if not any(re.search(each, text) for each in PYTHON_ELSEWHERE)]
    return "\n".join(map(_compared, kept)).replace(*FORGE)


def _compared(text: str) -> str:
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Expr) or node.end_lineno != node.lineno:
            continue
        line = lines[node.lineno - 1]
        expression, comment = line[: node.end_col_offset], line[node.end_col_offset :].strip("# ")
        try:
            ast.literal_eval(comment)
        except (SyntaxError, ValueError):
            continue
        if comment and "..." not in comment:
            lines[node.lineno - 1] = f"assert ({expression}) == ({comment}), ({expression})"
    return "\n".join(lines)


def test_what_python_runs_elsewhere_is_part_of_a_guide() -> None:
    every = "\n".join(map(_text, PAGES))
    assert [pattern for pattern in PYTHON_ELSEWHERE if not re.search(pattern, every)] == []
    assert "assert (diagnosis.category) == ('path_not_found')" in python_of("python")


def _prepare(folder: Path, page: str) -> None:
    """Writes the files that the commands of a page name."""
    logs = ("train.log", "slurm-4242.out", "logs/rank_0.log", "all-logs/a.log", "jobs/a.log")
    target = 'format = 1\nname = "{}"\npython = "{}"\n'
    texts = {
        **dict.fromkeys(logs, LOG),
        "train.py": light_torch(TRAIN_WITH_TORCH) if page in WITH_TORCH else TRAIN,
        "job.sh": "#!/bin/bash\n#SBATCH --time=1:00:00\npython train.py\n",
        "cluster.toml": target.format("cluster", "3.11"),
        "laptop.toml": target.format("laptop", "3.12"),
        "token": "x",
    }
    for block in BLOCK.finditer(_text(page)):
        if block[1] == "toml":
            texts["mine.toml" if page == "retry" else "pyproject.toml"] = block[2]
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "lab").symlink_to(ROOT / "lab")
    if page in PREPARED:
        PREPARED[page](folder)


def _prepare_data(folder: Path) -> None:
    rng = random.Random(0)
    rows = [
        f"{n},{rng.choice('abc')} text,{rng.random():.3f},{rng.choice(('good', 'bad'))}"
        for n in range(120)
    ]
    for name in ("reviews.csv", "new.csv", "train/reviews.csv", "test/reviews.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("\n".join(["id,text,stars,label", *rows, ""]))
    (folder / "train.py").write_text("dataset = [([n / 100, 1.0], n % 2) for n in range(100)]\n")


def _prepare_logs(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"id": ["a", "b"], "log": [LOG, LOG]})
    parquet.write_table(table, folder / "logs.parquet")


def _prepare_failures(folder: Path, logs: Sequence[str] = (LOG, LOG)) -> None:
    records = [{"id": f"job-{n}", "title": "a job", "log": log} for n, log in enumerate(logs)]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "failures.jsonl").write_text(lines)
    (folder / "failures.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


def _prepare_label(folder: Path) -> None:
    _prepare_failures(folder)
    for name in ("alice", "bob"):
        labels = [("execution_environment", "path_not_found")] * 2
        write_labels(folder / "f.jsonl", name, *labels)
    (folder / "f.jsonl.labels").rename(folder / "failures.jsonl.labels")


def _prepare_study(folder: Path) -> None:
    _prepare_failures(folder, (LOG, LOG, OUT_OF_MEMORY))
    project = Project(folder / "clones")
    project.reports(folder / "reports.jsonl")
    project.reports(folder / "dl.jsonl")
    Project(folder / "clones", "owner+web").reports(folder / "bugl.jsonl")
    for name in ("reports", "bugl"):
        content = (folder / f"{name}.jsonl").read_bytes()
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(content))
    (folder / "CLONE").symlink_to(project.clone)
    issue = {"number": 1, "title": "run_loader returns a wrong value", "body": ""}
    dates = {"createdAt": "2023-12-31T00:00:00Z", "closedAt": "2024-01-03T00:00:00Z"}
    (folder / "issues.json").write_text(json.dumps([issue | dates]))
    (folder / "ours.toml").write_text("failed_share = 0.1\n")


def _prepare_target(folder: Path) -> None:
    (folder / "image.tar").write_bytes(docker([packed(BASE), packed(TOP)]))
    (folder / "sinfo.txt").write_text(TABLE.replace("a100*", "gpu*"))


def _prepare_models(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    (folder / "net.py").write_text(NET)
    (folder / "data.py").write_text(DATA)
    made: dict[str, Any] = runpy.run_path(str(folder / "data.py"))
    for name, part in {"train": "train", "test": "test", "turned": "other"}.items():
        np.savez(folder / f"{name}.npz", x=made[part][0], y=made[part][1])
    people = enumerate(zip(*made["test"], strict=True))
    rows = [f"{values[0]:.2f},{n % 2},{20 + n % 50},{label}" for n, (values, label) in people]
    (folder / "people.csv").write_text("\n".join(["x,sex,age,label", *rows, ""]))
    net = runpy.run_path(str(folder / "net.py"))["build"]()
    torch.save(net.state_dict(), folder / "net.pt")


def _prepare_repository(folder: Path) -> None:
    """A repository with a bug that a report, a log and coverage of its tests name."""
    past = {"title": "Cut off", "body": "", "closed_at": "2020-01-01T00:00:00Z"}
    texts = {
        "src/loader.py": LOADER,
        "src/model.py": "def forward(batch):\n    return batch\n",
        "train.sh": "python train.py\n",
        "issue.md": REPORT,
        "issue.json": json.dumps({"title": "Cut off shards", "body": REPORT}),
        "past.jsonl": json.dumps({**past, "files": ["src/loader.py"]}),
        "coverage.json": covered(line_5=["tests/test_loader.py::test_bad|run"]),
        ".pytest_cache/v/cache/lastfailed": '{"tests/test_loader.py::test_bad": true}',
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git = ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -q -m begin", "tag v1.0", "tag v1.2")  # fmt: skip
    for words in git:
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    for name in ("src/project", "path/to/repository", "checkout"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(folder)


def _prepare_certificate(folder: Path) -> None:
    words = "req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out chain.pem"
    subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)


PREPARED: dict[str, Callable[[Path], None]] = {
    "data": _prepare_data,
    **dict.fromkeys(("diagnose", "scale"), _prepare_logs),
    "label": _prepare_label,
    "models": _prepare_models,
    "serve": _prepare_certificate,
    "study": _prepare_study,
    "target": _prepare_target,
    **dict.fromkeys(("editor", "github", "locate", "python"), _prepare_repository),
}
BEFORE = {
    "agents": ("mkdir -p ~/work ~/logs",),
    "store": (
        "epochzero run --name resnet -- python train.py",
        "EPOCHZERO_JOB=68e5d1 epochzero run -- python train.py",
    ),
    "study": (
        "epochzero run --name resnet -- python train.py",
        "epochzero jobs",
        "cp $EPOCHZERO_HOME/epochzero.db jobs.db",
    ),
    "replay": ("epochzero run --name resnet --capture -- python train.py",),
}
"""What has run before the commands of a page."""


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page) or python_of(page)])
def test_the_commands_and_python_of_a_guide_run(
    page: str, tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "job").mkdir()
    _prepare(folder, page)
    (folder / ".venv").mkdir()
    (folder / ".venv/bin").symlink_to(programs)
    monkeypatch.chdir(folder)
    variables = {
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(folder),
        "EPOCHZERO_HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_EVENT_PATH": "event.json",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    failures = []
    with Forge({7: [{"filename": "train.sh", "status": "modified"}]}) as forge:
        monkeypatch.setenv("GITHUB_API_URL", forge.url)
        for call in [*BEFORE.get(page, ()), *commands_of(page)]:
            if any(re.search(pattern, call) for pattern in ELSEWHERE):
                continue
            is_issue = "github issue" in call
            event = issue_event("read_shard fails", REPORT) if is_issue else pull_request_event()
            Path("event.json").write_text(json.dumps(event))
            _remove_results()
            code, printed = (_served if SERVERS.search(call) else _called)(call)
            expected = EXIT_CODES.values() if "--advice-exit-codes" in call else (0, 1)
            if code not in expected or "Traceback" in printed:
                failures.append(f"{call}: {code}\n{printed[-1500:]}")
        _remove_results()
        if text := python_of(page):
            reader = READER.get(page) or (READER["torch"] if page in WITH_TORCH else "")
            Path("block.py").write_text(f"import os\n{reader}\n{text}")
            code, printed = _called("preloaded-python block.py")
            if code:
                failures.append(f"Python: {code}\n{printed[-1500:]}")
    assert not failures, "\n\n".join(failures)


def _remove_results() -> None:
    """Removes the directories that must not exist when the commands of a page write them."""
    for name in ("made", "small", "diagnoses"):
        shutil.rmtree(name, ignore_errors=True)


def _called(call: str) -> tuple[int, str]:
    """The exit code of a command line, and what `epochzero` printed of its own."""
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", call],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE_S,
    )
    job = r"(?s)Traceback.*?(KeyError: 'fox'|RuntimeError: mat1 and mat2 shapes)"
    return ran.returncode, re.sub(job, "", ran.stderr)


def _served(call: str) -> tuple[int, str]:
    """The same of a server, which accepts connections when it has announced itself, and is interrupted when it answers."""
    call = call.removesuffix(" &").replace("8765", str(unused_port()))
    if call.startswith("epochzero serve"):
        call += f" --port {unused_port()}"
    words = [sys.executable, "-m", *shlex.split(call)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        if announced := re.search(r"://127\.0\.0\.1:(\d+)", first):
            with socket.create_connection(("127.0.0.1", int(announced[1])), PATIENCE_S) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                client.recv(1)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE_S)
    return 0 if process.returncode in (
        -signal.SIGINT,
        128 + signal.SIGINT,
    ) else process.returncode, first + rest
