"""No argument of a tool leads to the text of a file outside of the roots, by whatever way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from epochzero.agents.tools import Tools
from epochzero.errors import InputError
from epochzero.store.database import open_database

CANARY = "XcanaryX"
"""Stands in every file outside; an answer that holds it has shown one. Names of files outside do not hold it."""
PYTHON = f"import {CANARY}_module\n{CANARY} = 1\nundefined_{CANARY}(\n"
RUNNING = f"def {CANARY}_function(lr):\n    pass\n\n\n{CANARY}_undefined\nimport {CANARY}_module\n"
SHELL = f"#!/bin/bash\n#SBATCH --{CANARY}\nexport NAME={CANARY}\npython {CANARY}.py --lr {CANARY}\nif then {CANARY}\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory next to the root, with a file of each kind."""
    folder = tmp_path / "outside"
    (folder / "package").mkdir(parents=True)
    for name, text in {
        "broken.py": PYTHON,
        "running.py": RUNNING,
        "package/__init__.py": RUNNING,
        "package/__main__.py": RUNNING,
        "creds.txt": f"{CANARY}:secret\npassword={CANARY}\n",
        "job.sh": SHELL,
        "env": f"{CANARY}_NAME={CANARY}\nMODE={CANARY}\n",
        "args.txt": f"--{CANARY}\n{CANARY}\n",
        "config.yaml": f"{CANARY}: [1\nlr: {CANARY}\n",
        "good.yaml": f"lr: {CANARY}\nmodel:\n  {CANARY}: 1\n",
        "config.json": f'{{"train_batch_size": "{CANARY}", "{CANARY}": 1, ',
        "good.json": f'{{"train_batch_size": "{CANARY}", "{CANARY}": 1}}',
        "config.toml": f"format = 1\n{CANARY} = 1\n",
        "pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n"
        f"  - {{name: a, image: b, command: [python, {CANARY}.py]}}\n",
        "requirements.txt": f"{CANARY}==1.0\n",
        "data.csv": f"{CANARY},b\n1,2,3,4\n",
        "notebook.ipynb": json.dumps(
            {"cells": [{"cell_type": "code", "source": [PYTHON]}], "nbformat": 4}
        ),
        "train.log": f"Traceback (most recent call last):\nKeyError: '{CANARY}'\n",
        "facts.json": f'{{"{CANARY}": "{CANARY}"}}',
        "Makefile": f"train:\n\tpython {CANARY}.py --{CANARY}\n",
        "docker-compose.yml": f"services:\n  train:\n    image: a\n    command: python {CANARY}.py\n",
    }.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root whose files lead outside."""
    root = tmp_path / "root"
    (root / "conf").mkdir(parents=True)
    (root / "train.py").write_text("print('hello')\n")
    return root


@pytest.fixture
def tools(root: Path) -> Tools:
    return Tools([root], lambda: closing(open_database(root / "jobs.db")))


def _whole(tools: Tools, question: Callable[..., Any], **arguments: Any) -> str:
    """All that a question answers, with the pages that are left; or its error."""
    try:
        answer = question(**arguments)
    except InputError as error:
        return str(error)
    pages = [answer]
    for page in pages:
        pages += [tools.more(handle) for handle in _handles(page)]
    return json.dumps(pages)


def _handles(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from [value["more"]] if isinstance(value.get("more"), str) else []
        for inner in value.values():
            yield from _handles(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _handles(inner)


COMMANDS = (
    "python {out}/broken.py",
    "python {out}/running.py",
    "python {out}/creds.txt",
    "python ../outside/creds.txt",
    "python ../outside",
    "python {out}/package",
    "{out}/broken.py",
    "bash {out}/job.sh",
    "bash ../outside/job.sh",
    "sh -e {out}/creds.txt",
    "{out}/job.sh",
    "sbatch {out}/job.sh",
    "sbatch --export=ALL ../outside/job.sh",
    "qsub {out}/job.sh",
    "bsub -J x {out}/job.sh",
    "srun python {out}/broken.py",
    "torchrun --nproc_per_node=2 {out}/broken.py",
    "accelerate launch --config_file {out}/good.yaml train.py",
    "accelerate launch --config_file {out}/config.yaml train.py",
    "deepspeed --hostfile {out}/creds.txt train.py --deepspeed {out}/good.json",
    "deepspeed train.py --deepspeed_config {out}/config.json",
    "bash -c 'source {out}/job.sh; python train.py --lr $NAME'",
    "bash -c '. {out}/env; python train.py --mode $MODE'",
    "bash -c 'x=$(cat {out}/creds.txt); python train.py --lr $x'",
    "bash -c 'x=$(<{out}/creds.txt); python train.py --lr $x'",
    "bash -c 'for x in $(cat {out}/args.txt); do python $x.py; done'",
    "bash -c 'while read x; do python $x.py; done < {out}/args.txt'",
    "bash -c 'for f in {out}/*; do python $f; done'",
    "bash -c 'cd {out} && python broken.py'",
    "bash -c 'cd {out} && ./job.sh'",
    "bash -c 'pip install -r {out}/requirements.txt; python train.py'",
    "python -m package",
    "env PYTHONPATH={out} python -m running",
    "env PYTHONPATH={out} python -m package",
    "env -C {out} python broken.py",
    "python reads.py @{out}/args.txt",
    "python reads.py --config {out}/good.yaml",
    "python hydra_app.py --config-dir {out} --config-name good",
    "python imports.py",
    "python appends.py",
    "python loads.py",
    "python linked.py",
    "python linked_package/module.py",
    "python -m linked_package",
    "bash linked.sh",
    "sbatch linked.sh",
    "bash sources.sh",
    "kubectl apply -f {out}/pod.yaml",
    "kubectl apply -f linked_pod.yaml",
    "docker run --env-file {out}/env -v {out}:/x image python /x/broken.py",
    "docker compose -f {out}/docker-compose.yml up",
    "docker compose up",
    "make train",
    "make -f {out}/Makefile train",
    "make -C {out} train",
    "uv run {out}/broken.py",
    "uv run --env-file {out}/env train.py",
    "jupyter nbconvert --execute {out}/notebook.ipynb",
    "papermill {out}/notebook.ipynb out.ipynb",
    "ray job submit --runtime-env {out}/good.yaml -- python {out}/broken.py",
    "{out}/bin/python train.py",
    "linked_venv/bin/python reads_library.py",
)


def _prepare(root: Path, out: Path) -> None:
    """Files in the root that lead outside."""
    for name, target in {
        "linked.py": "broken.py",
        "linked.sh": "job.sh",
        "linked_package": "package",
        "linked_pod.yaml": "pod.yaml",
        "Makefile": "Makefile",
        "docker-compose.yml": "docker-compose.yml",
        "helper.py": "running.py",
        "data.csv": "data.csv",
        "linked.yaml": "good.yaml",
        "broken.yaml": "config.yaml",
        "conf/config.yaml": "good.yaml",
        ".env": "env",
        "requirements.txt": "requirements.txt",
        ".gitignore": "creds.txt",
        ".python-version": "creds.txt",
    }.items():
        (root / name).symlink_to(out / target)
    os.symlink(out, root / "outer")
    (root / "sources.sh").write_text(
        f"source {out}/env\n. outer/job.sh\npython train.py --lr $MODE\n"
    )
    (root / "imports.py").write_text(
        "import helper\nimport linked_package\nfrom outer import broken\nhelper.missing()\n"
        "helper.no_such(1)\nfrom helper import nothing\n"
    )
    (root / "appends.py").write_text(
        f"import sys\nsys.path.insert(0, {str(out)!r})\nimport running\nimport package\n"
        "running.missing\nfrom package import nothing\n"
    )
    (root / "reads.py").write_text(
        "import argparse\nimport yaml\n"
        "p = argparse.ArgumentParser(fromfile_prefix_chars='@')\np.add_argument('--config')\n"
        "a = p.parse_args()\nc = yaml.safe_load(open(a.config))\nprint(c['missing'], 1 / c['lr'])\n"
    )
    (root / "hydra_app.py").write_text(
        "import hydra\n\n\n@hydra.main(config_path='conf', config_name='config')\ndef main(cfg):\n"
        "    print(cfg.missing, cfg.model.other)\n\n\nmain()\n"
    )
    (root / "loads.py").write_text(
        "import json\nimport pandas\nimport yaml\nimport toml\n"
        + "".join(
            f"{reader}\n"
            for path in (f"{out}/", "outer/", "../outside/")
            for reader in (
                f"print(yaml.safe_load(open('{path}good.yaml'))['missing'])",
                f"yaml.safe_load(open('{path}config.yaml'))",
                f"json.load(open('{path}config.json'))['missing']",
                f"print(json.load(open('{path}good.json'))['missing'])",
                f"pandas.read_csv('{path}data.csv')['missing']",
                f"int(open('{path}creds.txt').read())",
            )
        )
        + "pandas.read_csv('data.csv')['missing']\nyaml.safe_load(open('linked.yaml'))['missing']\n"
        "yaml.safe_load(open('broken.yaml'))\n"
    )
    site = out / "venv" / "lib" / "python3.11" / "site-packages"
    (site / "library").mkdir(parents=True)
    (site / "library" / "__init__.py").write_text(RUNNING)
    (out / "venv" / "bin").mkdir()
    os.symlink("/usr/bin/python3", out / "venv" / "bin" / "python")
    (out / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    os.symlink(out / "venv", root / "linked_venv")
    (root / "reads_library.py").write_text("import library\nlibrary.missing()\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_check_shows_nothing_from_outside(
    tools: Tools, root: Path, outside: Path, command: str
) -> None:
    _prepare(root, outside)
    command = command.format(out=outside)
    answer = _whole(tools, tools.check, command=command)
    assert CANARY not in answer


@pytest.mark.parametrize(
    "command",
    [
        "python /etc/hostname",
        "bash /etc/hostname",
        "sbatch /etc/hostname",
        "python ../outside/creds.txt",
    ],
)
def test_a_script_outside_is_refused_with_the_reason(
    tools: Tools, outside: Path, command: str
) -> None:
    answer = _whole(tools, tools.check, command=command)
    assert "outside the allowed directories" in answer
    assert Path("/etc/hostname").read_text().strip() not in answer.replace("/etc/hostname", "")


@pytest.mark.parametrize(
    "target", ["{out}/config.toml", "../outside/config.toml", "linked.toml", "packages.toml"]
)
def test_a_target_outside_is_not_read(tools: Tools, root: Path, outside: Path, target: str) -> None:
    (root / "linked.toml").symlink_to(outside / "config.toml")
    (root / "packages.toml").write_text(f'format = 1\npackages = "{outside}/creds.txt"\n')
    answer = _whole(
        tools, tools.check, command="python train.py", target=target.format(out=outside)
    )
    assert CANARY not in answer
    assert "outside the allowed directories" in answer


def test_requirements_of_a_target_do_not_lead_outside(
    tools: Tools, root: Path, outside: Path
) -> None:
    (root / "train.py").write_text(f"import {CANARY.lower()}\nimport other\n")
    (root / "requirements.txt").write_text(f"-r {outside}/requirements.txt\n")
    (root / "target.toml").write_text('format = 1\npackages = "requirements.txt"\n')
    answer = _whole(tools, tools.check, command="python train.py", target="target.toml")
    assert "outside the allowed directories" in answer


def test_settings_that_lead_outside_are_not_read(tools: Tools, root: Path, outside: Path) -> None:
    for text in (
        f'target = "{outside}/config.toml"\n',
        f'data = [{{path = "{outside}/data.csv", profile = "{outside}/good.json"}}]\n',
        f'data = [{{path = "{outside}/data.csv", profile = "profile.json"}}]\n',
    ):
        (root / "profile.json").write_text("{}")
        (root / "pyproject.toml").write_text(f"[tool.epochzero.check]\n{text}")
        assert CANARY not in _whole(tools, tools.check, command="python train.py")
    (root / "pyproject.toml").unlink()
    (root / "pyproject.toml").symlink_to(outside / "config.toml")
    assert CANARY not in _whole(tools, tools.check, command="python train.py")


def test_whether_a_file_outside_exists_is_not_told(tools: Tools, root: Path, outside: Path) -> None:
    """The answers for a file that exists and for one that does not differ in its name alone."""
    for line in ("open({path!r}).read()", "import os\nos.listdir({path!r})", "open({path!r}, 'w')"):
        answers = []
        for name in ("creds.txt", "absen.txt", "package", "packagf"):
            path = str(outside / name)
            (root / "train.py").write_text(line.format(path=path) + "\n")
            answer = _whole(tools, tools.check, command="python train.py")
            answers.append(answer.replace(path, "PATH"))
        assert len(set(answers)) == 1, line
    scripts = [
        _whole(tools, tools.check, command=f"python {outside}/{name}").replace(name, "NAME")
        for name in ("running.py", "absence.py")
    ]
    assert len(set(scripts)) == 1


def test_pipes_and_devices_are_not_read(tools: Tools, root: Path) -> None:
    os.mkfifo(root / "pipe.py")
    os.symlink("/dev/zero", root / "zero.py")
    os.symlink("/proc/self/environ", root / "environ.py")
    os.mkfifo(root / "pipe.log")
    for name in ("pipe.py", "zero.py", "environ.py", "/dev/zero", "/proc/self/environ"):
        for command in ("python", "bash", "sbatch"):
            answer = _whole(tools, tools.check, command=f"{command} {name}")
            assert "PATH=" not in answer
            assert '"rule"' not in answer or "missing" in answer
    for path in ("pipe.log", "zero.py", "environ.py"):
        assert (
            "regular file" in (said := _whole(tools, tools.diagnose, path=path))
            or "outside the allowed directories" in said
        )
        assert (
            "file" in (said := _whole(tools, tools.log_lines, path=path))
            or "outside the allowed directories" in said
        )


@pytest.mark.parametrize("name", ["pyvenv.cfg", "include/{}/patchlevel.h", "lib/{}/site-packages/a.pth", "lib/{}/site-packages/a-1.0.dist-info/RECORD"])  # fmt: skip
def test_an_environment_with_pipes_holds_nobody_up(tools: Tools, root: Path, name: str) -> None:
    environment = root / "venv"
    (environment / "bin").mkdir(parents=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    os.symlink(os.path.realpath(sys.executable), environment / "bin" / version)
    site = environment / "lib" / version / "site-packages"
    (site / "a-1.0.dist-info").mkdir(parents=True)
    (site / "a-1.0.dist-info" / "METADATA").write_text("Name: a\nVersion: 1.0\n")
    if name != "pyvenv.cfg":
        (environment / "pyvenv.cfg").write_text(f"home = {environment}/bin\n")
    pipe = environment / name.format(version)
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    assert "schema" in _whole(tools, tools.check, command=f"venv/bin/{version} train.py")


def test_logs_that_are_links_to_outside_are_not_read(
    tools: Tools, root: Path, outside: Path
) -> None:
    logs = root / "logs"
    logs.mkdir()
    (logs / "rank0.log").symlink_to(outside / "train.log")
    assert CANARY not in _whole(tools, tools.diagnose, path="logs")
    (logs / "rank0.log").unlink()
    (logs / "rank0.log").write_text("ValueError: no\n")
    (logs / "facts.json").symlink_to(outside / "facts.json")
    assert CANARY not in _whole(tools, tools.diagnose, path="logs")
    for question in (tools.diagnose, tools.log_lines):
        assert CANARY not in _whole(tools, question, path=str(outside / "train.log"))
    linked = root / "linked.log"
    linked.symlink_to(outside / "train.log")
    assert CANARY not in _whole(tools, tools.log_lines, path="linked.log")
    assert CANARY not in _whole(tools, tools.locate, repository=".", log="linked.log")


def test_a_log_does_not_make_the_answer_name_files_outside(
    tools: Tools, root: Path, outside: Path
) -> None:
    (root / "creds.txt").write_text("")
    for folder, found in ((outside, False), (root, True)):
        missing = f"No such file or directory: '{folder}/credz.txt'"
        (root / "train.log").write_text(f"FileNotFoundError: [Errno 2] {missing}\n")
        answer = _whole(tools, tools.diagnose, path="train.log")
        assert ("creds.txt" in answer) is found


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def other(outside: Path) -> Path:
    """A repository outside."""
    other = outside / "repository"
    other.mkdir()
    (other / f"{CANARY}.py").write_text(f"def {CANARY}():\n    raise KeyError\n")
    _git(other, "init", "-q")
    _git(other, "add", ".")
    _git(other, "commit", "-q", "-m", CANARY)
    return other


@pytest.mark.parametrize(
    "way", ["path", "alternates", "gitdir", "commondir", "link", "linked objects", "above"]
)
def test_git_reads_no_repository_outside(tools: Tools, root: Path, other: Path, way: str) -> None:
    repository = root / "repository"
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=other, check=True, capture_output=True, text=True
    ).stdout.strip()
    if way == "path":
        repository = other
    elif way == "link":
        repository.symlink_to(other)
    elif way == "above":
        repository.mkdir()
        (other / ".git").rename(root.parent / ".git")
    else:
        repository.mkdir()
        _git(repository, "init", "-q")
        git = repository / ".git"
        (repository / "own.py").write_text("x = 1\n")
        _git(repository, "add", ".")
        _git(repository, "commit", "-q", "-m", "own")
        if way == "alternates":
            (git / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")
        elif way == "gitdir":
            subprocess.run(["rm", "-rf", str(git)], check=True)
            git.write_text(f"gitdir: {other}/.git\n")
        elif way == "commondir":
            (git / "commondir").write_text(f"{other}/.git\n")
        else:
            for folder in (other / ".git" / "objects").iterdir():
                if not (git / "objects" / folder.name).exists():
                    (git / "objects" / folder.name).symlink_to(folder)
    for rev in ("HEAD", revision):
        answer = _whole(
            tools,
            tools.locate,
            repository=str(repository),
            report=f"KeyError in {CANARY.lower()[:3]}",
            revision=rev,
            level="function",
        )
        assert CANARY not in answer
        assert (
            "outside the allowed directories" in answer
            or "outside the allowed directories" in answer
        )


def test_a_repository_inside_is_searched(tools: Tools, root: Path) -> None:
    (root / "train.py").write_text("def report():\n    raise KeyError('fox')\n")
    _git(root, "init", "-q")
    _git(root, "add", ".")
    _git(root, "commit", "-q", "-m", "first")
    assert "train.py" in _whole(tools, tools.locate, repository=".", report="KeyError in report")


def test_a_check_still_knows_the_installed_libraries(tools: Tools, root: Path) -> None:
    (root / "train.py").write_text(
        "import json\nimport torch\ntorch.no_such_name(1)\njson.no_such_thing(1)\n"
    )
    answer = _whole(tools, tools.check, command="python train.py")
    assert "torch.no_such_name" in answer
