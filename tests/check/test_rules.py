"""Every rule keeps what its own cases promise, and the catalogue takes no rule that promises nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from epochzero.check import CheckResult, check
from epochzero.check.rule import Claims
from epochzero.check.rule_examples import examples
from epochzero.check.rules import Case, Rule, builtin, choose, find, load
from epochzero.check.view.job import JobView
from epochzero.diagnose import Diagnoser
from epochzero.errors import CatalogError, InputError
from epochzero.logs.source import Log
from tests.catalogs import every

CASES = [(rule, number, case) for rule in builtin() for number, case in enumerate(rule.cases)]
CAUGHT = [(rule, number, case) for rule, number, case in CASES if case.is_caught]
IGNORED = [(rule, number, case) for rule, number, case in CASES if not case.is_caught]
Numbered = tuple[Rule, int, Case]


def problems_of_cases(rule: Rule) -> Iterable[str]:
    """The faults of a rule's cases, which `load` does not read: a check that a user waits for needs none of them."""
    if {case.is_caught for case in rule.cases} != {True, False}:
        yield "a rule needs a case with a finding (mark its line with # <-) and one without"
    for case in rule.cases:
        if "-m" not in case.command and not case.files.keys() & set(case.command):
            yield f"a case runs {case.command[-1]}, which is not among its files"


def named(numbered: Numbered) -> str:
    rule, number, _ = numbered
    return f"{rule.id}-{number}"


def checked(numbered: Numbered, parent: Path) -> CheckResult:
    """The result of a rule for one of its cases."""
    rule, _, case = numbered
    folder = parent / named(numbered)
    job = folder / "job"
    for name, text in case.files.items():
        path = job / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    target = folder / "target.toml"
    target.write_text(f"format = 1\n{case.target}", encoding="utf-8")
    return check(
        case.command, target, folder=job, select=[rule.id], environment=dict(case.environment)
    )


@every("numbered", CAUGHT, named)
def test_a_rule_finds_what_its_case_marks(numbered: Numbered, tmp_path: Path) -> None:
    rule, _, case = numbered
    found = checked(numbered, tmp_path).findings
    assert (case.path, case.line) in [(one.place.path, one.place.line) for one in found]
    for one in found:
        assert one.rule == rule.id
        assert one.message
        assert one.consequence
        assert one.fix


AGREED = frozenset(["attribute-missing", "cpu-build-on-gpu", "scheduler-steps"])
RAISED = re.compile(r"[A-Z]\w+Error: ")


@every("numbered", [one for one in CAUGHT if one[0].id in AGREED], named)
def test_a_predicted_error_has_the_category_of_its_diagnosis(
    numbered: Numbered, tmp_path: Path
) -> None:
    for one in checked(numbered, tmp_path).findings:
        if one.severity == "error" and RAISED.match(one.consequence):
            log = f"Traceback (most recent call last):\n{one.consequence}\n"
            assert one.category == Diagnoser().diagnose([Log("log", text=log.encode())]).category


@every("numbered", IGNORED, named)
def test_a_rule_finds_nothing_where_its_case_marks_nothing(
    numbered: Numbered, tmp_path: Path
) -> None:
    found = checked(numbered, tmp_path)
    assert found.findings == ()
    assert not [one for one in found.unknowns if "rule failed" in one.reason]


def test_an_example_is_a_small_job() -> None:
    first, second, third = examples(r"""
        $ SEED='1 2' torchrun --nproc_per_node=2 main.py --name 'a b'  # <-
        ==> main.py <==
        ==> data/a.csv <==
        a,b
        1,2
        \ No newline at end of file
        ==> target.toml <==
        gpus = 2
        ----
        import os

        print(os.missing)  # <-
        print("# <-")
        ----
        import helper
        ==> helper.py <==

        x = 1 / 0  # <-
    """)
    words = ("torchrun", "--nproc_per_node=2", "main.py", "--name", "a b")
    assert first == Case(
        {"main.py": "", "data/a.csv": "a,b\n1,2"},
        words,
        {"SEED": "1 2"},
        "gpus = 2\n",
        path="<command>",
    )
    assert second == Case({"train.py": 'import os\n\nprint(os.missing)\nprint("# <-")\n'}, line=3)
    assert third == Case(
        {"train.py": "import helper\n", "helper.py": "\nx = 1 / 0\n"}, line=2, path="helper.py"
    )


def test_an_example_may_be_what_differs_from_another() -> None:
    full, moved, ignored, marked, other = examples("""
        import os

        print(os.missing)  # <-
        print(1)
        ---- caught if
         import os
        +import sys
        @@
        -print(os.missing)  # <-
        -print(1)
        +print(1, os.missing)  # <-
        ---- ignored if
        -print(os.missing)
        +print(os.sep)
        ---- ignored if
        -print(os.missing)  # <-
        +print(os.sep)
        ----
        print(2)
    """)
    assert (full.line, full.is_caught) == (3, True)
    assert moved == Case({"train.py": "import os\nimport sys\n\nprint(1, os.missing)\n"}, line=4)
    assert ignored == Case({"train.py": "import os\n\nprint(os.sep)\nprint(1)\n"})
    assert not ignored.is_caught
    assert marked == ignored
    assert other == Case({"train.py": "print(2)\n"})


@pytest.mark.parametrize("diff", ["-x = 1\n+x = 2", "-x = 3\n+x = 2", "+x = 2", "x = 1"])
def test_a_difference_that_does_not_apply_in_one_place_is_refused(diff: str) -> None:
    with pytest.raises(ValueError, match="exactly once"):
        examples(f"x = 1\nx = 1\ny = 3  # <-\n---- caught if\n{diff}\n")


# -- The catalogue -----------------------------------------------------------------------------

RULE = '''\
"""Something goes wrong."""

from epochzero.check.rule import Rule

RULE = Rule(
    category="path_not_found", why="It does.",
    fix="Correct it.", source="A study", check=lambda view: (),
    examples="x  # <-\\n----\\ny",
)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of rules that can be imported, and its name."""
    folder = tmp_path / f"rules_{tmp_path.name}"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helper.py").write_text("HELP = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def module(folder: Path) -> ModuleType:
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]
    return import_module(folder.name)


def test_a_new_rule_is_one_new_file(package: Path) -> None:
    (package / "some_rule.py").write_text(RULE)
    (rule,) = load(module(package))
    assert (rule.id, rule.title) == ("some-rule", "Something goes wrong")
    assert not list(problems_of_cases(rule))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("path_not_found", "bad_luck", "'bad_luck' is not in the taxonomy"),
        ("Something goes wrong.", ".", "title is empty"),
        ('"It does."', '" "', "why is empty"),
        ('"Correct it."', '""', "fix is empty"),
        ('"A study"', '""', "source is empty"),
        ("RULE = Rule", "RULE = 1, Rule", "not a Rule"),
        ("RULE = ", "RULE = missing or ", "cannot be imported: name 'missing'"),
    ],
)
def test_a_rule_that_is_not_complete_is_refused(
    package: Path, old: str, new: str, said: str
) -> None:
    (package / "some_rule.py").write_text(RULE.replace(old, new))
    with pytest.raises(CatalogError, match=r"some_rule[: ]") as refused:
        load(module(package))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x\n----\ny", "a rule needs a case with a finding"),
        ("x  # <-", "and one without"),
        ("x  # <-\n----\n$ python main.py\ny", "a case runs main.py"),
    ],
)
def test_a_rule_has_cases_of_both_kinds_that_can_run(text: str, said: str) -> None:
    (problem,) = problems_of_cases(replace(builtin()[0], examples=text))
    assert said in problem


def test_the_cases_of_each_rule_are_complete() -> None:
    assert [(rule.id, *problems_of_cases(rule)) for rule in builtin()] == [
        (rule.id,) for rule in builtin()
    ]


def test_rules_are_chosen_by_name() -> None:
    names = [rule.id for rule in builtin()]
    assert names == sorted(set(names))
    assert choose() == builtin()
    assert [rule.id for rule in choose(["undefined-name"])] == ["undefined-name"]
    assert "undefined-name" not in [rule.id for rule in choose(ignore=["undefined-name"])]
    assert find("undefined-name").category == "undefined_variable"
    with pytest.raises(InputError, match="did you mean undefined-name"):
        choose(["undefined-names"])
    with pytest.raises(InputError, match="check --rules"):
        choose(ignore=["?"])


def test_a_rule_that_fails_does_not_take_the_others_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: JobView) -> Claims:
        raise ValueError("odd")

    broken = replace(find("module-missing"), check=fail)
    monkeypatch.setattr(
        import_module("epochzero.check.pipeline"),
        "choose",
        lambda *_: (broken, find("undefined-name")),
    )
    (tmp_path / "train.py").write_text("print(missing)\n")
    found = check(["python", "train.py"], folder=tmp_path)
    assert [one.rule for one in found.findings] == ["undefined-name"]
    assert [one.reason for one in found.unknowns] == ["the rule failed: ValueError: odd"]
