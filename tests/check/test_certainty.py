"""A job that is perhaps not run, or not so, fails perhaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check import Target, check
from epochzero.check.target.model import Distribution


@pytest.mark.parametrize(
    ("launch", "severity"),
    [
        ("python train.py\n", "error"),
        ('if [ -e "$(date)" ]; then python train.py; fi\n', "warning"),
        ("python train.py $(cat more)\n", "warning"),
        ('python train.py "$(date)"\n', "error"),
    ],
)
def test_an_uncertain_job_has_no_errors(tmp_path: Path, launch: str, severity: str) -> None:
    (tmp_path / "run.sh").write_text(launch)
    (tmp_path / "train.py").write_text("print(missing)\n")
    found = check(["bash", "run.sh"], Target("there"), folder=tmp_path, select=["undefined-name"])
    assert [one.severity for one in found.findings] == [severity]


@pytest.mark.parametrize(
    ("handler", "severity"),
    [
        ("import simplejson as json", "error"),
        ("import os; os.system('pip install simplejson'); import simplejson", "warning"),
    ],
)
def test_a_fallback_is_certain_where_what_it_stands_for_is_missing(
    tmp_path: Path, handler: str, severity: str
) -> None:
    (tmp_path / "train.py").write_text(
        f"try:\n    import ujson as json\nexcept ImportError:\n    {handler}\n"
    )
    numpy = Distribution("numpy", "2.1.0", ("numpy",))
    target = Target("there", distributions={"numpy": numpy})
    found = check(["python", "train.py"], target, folder=tmp_path, select=["module-missing"])
    assert [one.severity for one in found.findings] == [severity]


@pytest.mark.parametrize(
    ("start", "severity"),
    [
        ("threading.Thread(target=work, args=(1, 2)).start()", "warning"),
        ("work(1, 2)", "error"),
    ],
)
def test_a_thread_that_fails_does_not_end_the_job(
    tmp_path: Path, start: str, severity: str
) -> None:
    (tmp_path / "train.py").write_text(f"import threading\n\ndef work(one):\n    pass\n\n{start}\n")
    found = check(["python", "train.py"], Target("there"), folder=tmp_path)
    assert [(one.rule, one.severity) for one in found.findings] == [("argument-count", severity)]


FACTORY = """
from dataclasses import dataclass, field

def default():
    return table()["name"]

@dataclass
class Settings:
    name: str = field(default_factory=default)

def table():
    return {"name": "softplus"}

print(Settings())
"""
REGISTERED = """
from functools import wraps

members = {}

def register(function):
    assert function.__name__ not in members
    members[function.__name__] = function
    return function

def timed(function):
    @wraps(function)
    def wrapper():
        return function()

    return register(wrapper)

@timed
def first():
    return 1

@timed
def second():
    return 2

print(first(), second())
"""
DOWNLOADED = "from torchvision import datasets\ndatasets.MNIST('.data/mnist', download=True)\n"


@pytest.mark.parametrize("script", [FACTORY, REGISTERED, DOWNLOADED])
def test_what_runs_well_is_no_error(tmp_path: Path, script: str) -> None:
    (tmp_path / "train.py").write_text(script)
    assert check(["python", "train.py"], Target("there"), folder=tmp_path).findings == ()


def test_refused_arguments_are_one_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--domain_sweep')\nparser.add_argument('--domain_name')\n"
        "print(parser.parse_args().domain_name)\n"
    )
    found = check(["python", "train.py", "--domain", "x"], Target("there"), folder=tmp_path)
    assert [finding.rule for finding in found.findings] == ["argument-unknown"]


@pytest.mark.parametrize(("mode", "rules"), [("NonIndexed", []), ("Indexed", ["world-size"])])
def test_pods_that_take_work_from_a_queue_may_share_a_machine(
    tmp_path: Path, mode: str, rules: list[str]
) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "job.yaml").write_text(
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: search}}\nspec:\n  parallelism: 5\n"
        f"  completions: 5\n  completionMode: {mode}\n  template:\n    spec:\n"
        "      containers:\n      - {name: worker, image: search, command: [python, train.py]}\n"
    )
    target = Target("there", nodes=1)
    found = check(["kubectl", "apply", "-f", "job.yaml"], target, folder=tmp_path)
    assert [f.rule for f in found.findings if f.severity == "error"] == rules


@pytest.mark.parametrize(
    ("before", "is_reported"),
    [
        ("", True),
        ("print(options); json.dumps(options); numpy.array(options)", True),
        ("lib.fill(options)", False),
        ("lib.fill({'all': [options]})", False),
        ("lib.build(options)(3)", False),
        ("lib.make()(options)", False),
        ("lib.registry['a'](options)", False),
        ("threading.Thread(target=fill, args=(options,)).start()", False),
        ("holder = Holder(options); lib.fit(holder)", False),
        ("def hook(x): options['epoch'] = x\nlib.register(hook)", False),
        ("lib.model.layers[0] = Holder(options)", False),
        ("list(map(fill, [options]))", False),
        ("visit(options, 5)", False),
    ],
)
def test_an_item_is_missing_only_where_all_code_that_could_add_it_was_followed(
    tmp_path: Path, before: str, is_reported: bool
) -> None:
    (tmp_path / "train.py").write_text(
        "import json, threading\nimport numpy\nimport lib\n\n"
        "class Holder:\n    def __init__(self, o):\n        self.o = o\n\n"
        "def fill(o):\n    o['epoch'] = 1\n\n"
        "def visit(o, n):\n    if n == lib.depth:\n        fill(o)\n    else:\n        visit(o, n - 1)\n\n"
        f"options = {{'epochs': 3}}\n{before}\nprint(options['epoch'])\n"
    )
    found = check(["python", "train.py"], Target("there"), folder=tmp_path, select=["key-missing"])
    assert [one.severity for one in found.findings] == ["error"] * is_reported


@pytest.mark.parametrize("call", ["copy.copy", "copy.deepcopy"])
def test_a_copy_has_its_own_attributes(tmp_path: Path, call: str) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse, copy\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--mode', default='train')\n"
        f"args = parser.parse_args()\nother = {call}(args)\nother.mode = 'test'\n"
        "if args.mode == 'test':\n    raise ValueError(args.mode)\n"
    )
    assert not check(["python", "train.py"], Target("there"), folder=tmp_path).findings


def test_what_the_job_lacks_is_an_error_only_where_it_certainly_reads_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import lib\n\ndef hook():\n    print({'a': 1}['b'])\n\nlib.at_the_end(hook)\n"
    )
    found = check(
        ["python", "train.py"], Target("there"), folder=tmp_path, ignore=["module-missing"]
    )
    assert [(one.rule, one.severity) for one in found.findings] == [("key-missing", "warning")]
