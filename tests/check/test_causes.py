"""Each cause is told once, however many rules and runs tell of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochzero.check import Target, check
from epochzero.check.causes import SEEN_TOO, grouped, told_once
from epochzero.check.findings import Finding, SourceLocation

READ = Finding(
    rule="feature-mismatch",
    severity="warning",
    category="tensor_mismatch",
    phase="training",
    place=SourceLocation("model.py", 7, 9),
    message="The sizes differ.",
    consequence="RuntimeError: mat1 and mat2 shapes cannot be multiplied",
    fix="Use in_features=8.",
)
MET = replace(
    READ, rule="dry-run-failed", severity="error", message="The dry run failed on this line."
)
OTHER_END = "RuntimeError: another"


@pytest.mark.parametrize(
    ("files", "arguments", "rules"),
    [
        (
            {
                "train.py": "import json\n\nconfig = json.load(open('c.json'))\nprint(config['name'])\n",
                "c.json": '{"lr": 0.1}',
            },
            (),
            ["configuration-key-missing"],
        ),
        (
            {
                "train.py": "import argparse\n\np = argparse.ArgumentParser()\n"
                "p.add_argument('--a', action='store_true')\n"
                "p.add_argument('--b', action='store_true')\nargs = p.parse_args()\n"
                "if args.a and args.b:\n    raise ValueError('choose a or b')\n"
            },
            ("--a", "--b"),
            ["exception-raised"],
        ),
        (
            {
                "train.py": "from torch.utils.data import DataLoader\n"
                "loader = DataLoader([1, 2], num_workers=4)\n"
            },
            (),
            ["workers-shared-memory"],
        ),
        (
            {"train.py": "import os\n\nepochs = int(os.getenv('EPOCHS'))\n"},
            (),
            ["environment-unset"],
        ),
    ],
)
def test_the_rule_that_knows_most_tells_alone(
    tmp_path: Path, files: dict[str, str], arguments: tuple[str, ...], rules: list[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    target = Target("there", shared_memory_bytes=64 << 20, environment={})
    found = check(["python", "train.py", *arguments], target, folder=tmp_path)
    assert [one.rule for one in found.findings] == rules


@pytest.mark.parametrize(
    "met",
    [
        replace(MET, place=SourceLocation("model.py", 8), consequence=OTHER_END),
        replace(MET, place=SourceLocation("train.py", 30)),
        replace(
            MET,
            place=SourceLocation("blocks.py", 3),
            consequence=OTHER_END,
            via=(SourceLocation("train.py", 30), SourceLocation("model.py", 7)),
        ),
    ],
    ids=["at the place", "with its words", "on the way"],
)
def test_a_dry_run_confirms_what_was_read(met: Finding) -> None:
    (found,) = told_once([READ], [met], ())
    assert (found.rule, found.severity, found.place) == (READ.rule, "error", READ.place)
    assert found.message.endswith(SEEN_TOO)


@pytest.mark.parametrize(
    "met",
    [
        replace(MET, category="type_mismatch"),
        replace(MET, place=SourceLocation("train.py", 30), consequence=OTHER_END),
    ],
)
def test_another_failure_of_a_dry_run_is_told_beside(met: Finding) -> None:
    assert told_once([READ], [met], ()) == [READ, met]


def test_an_error_does_not_confirm_a_warning_of_wrong_results() -> None:
    read = replace(READ, consequence="The order of the data is the same in every epoch")
    assert told_once([read], [MET], ()) == [read, MET]


def test_words_that_name_nothing_are_those_of_many_failures() -> None:
    read = replace(READ, consequence="AssertionError")
    met = replace(MET, place=SourceLocation("train.py", 30), consequence="AssertionError")
    assert told_once([read], [met], ()) == [read, met]


def test_another_missing_key_does_not_confirm() -> None:
    read = replace(READ, category="key_not_found", consequence="KeyError: 'image'")
    met = replace(MET, category="key_not_found", consequence="KeyError: 'class'")
    assert told_once([read], [met], ()) == [read, met]
    frame = replace(met, consequence="KeyError: \"['image'] not in index\"")
    assert len(told_once([read], [frame], ())) == 1


def test_keys_that_one_part_of_a_configuration_lacks_are_one_finding() -> None:
    said = "c.yaml has no {} at this position; it has lr."
    findings = [
        replace(READ, message=said.format(key), place=SourceLocation("optim.py", line))
        for line, key in enumerate(("'betas'", "'decay'", "'eps'"), 9)
    ]
    findings[0] = replace(findings[0], message=f"{findings[0].message} {SEEN_TOO}")
    (found,) = grouped(findings)
    assert found.place.line == 9
    assert found.message.endswith(f"{SEEN_TOO} Missing there too: 'decay', 'eps'.")
    assert [place.line for place in found.also] == [10, 11]
    other = replace(findings[1], message="c.yaml has no 'steps' at this position; it has batch.")
    assert len(grouped([*findings, other])) == 2


def test_what_two_dry_runs_meet_is_told_once() -> None:
    assert told_once([], [MET, MET], ()) == [MET]


def test_a_general_rule_gives_way_only_to_the_same_end_and_hands_on_its_severity() -> None:
    general = replace(READ, rule="general", severity="error")
    (found,) = told_once([general, READ], [], {"general"})
    assert (found.rule, found.severity) == (READ.rule, "error")
    other = replace(general, consequence=OTHER_END)
    assert sorted(told_once([other, READ], [], {"general"}), key=lambda one: one.rule) == [
        READ,
        other,
    ]


def finding(line: int, **values: object) -> Finding:
    return replace(READ, place=SourceLocation("train.py", line), **values)  # type: ignore[arg-type]


def missing(module: str, line: int, severity: str = "error") -> Finding:
    return finding(
        line,
        rule="module-missing",
        severity=severity,
        message=f"The job imports {module}, but no installed distribution provides it.",
        consequence=f"ModuleNotFoundError: No module named '{module}'",
        fix=f"Install {module}.",
    )


def test_findings_that_differ_only_in_their_place_are_one() -> None:
    other = finding(9, message="Another.")
    [one, second] = grouped([finding(3), other, finding(5), finding(8)])
    assert (one.place.line, [place.line for place in one.also]) == (3, [5, 8])
    assert second == other


def test_an_environment_that_is_not_installed_is_one_cause() -> None:
    few = [missing("yaml", 1), missing("einops", 2)]
    assert grouped(few) == few
    warnings = [missing("wandb", 7, "warning")]
    [one, wandb] = grouped([*few, missing("timm", 3), *warnings])
    assert "imports 3 modules" in one.message
    assert "yaml, einops, timm" in one.message
    assert one.consequence == few[0].consequence
    assert [place.line for place in one.also] == [2, 3]
    assert wandb == warnings[0]


def test_what_an_open_list_may_bring_is_one_cause() -> None:
    doubt = " A package of the list may depend on it: scipy has no version."
    many = [missing(name, line) for line, name in enumerate(["yaml", "einops", "timm"], 1)]
    [one] = grouped([replace(each, message=each.message + doubt) for each in many])
    assert one.message.endswith(f"that no installed distribution provides.{doubt}")


def test_a_module_that_several_files_import_counts_once() -> None:
    [yaml, timm] = grouped([missing("yaml", 1), missing("timm", 2), missing("yaml", 3)])
    assert [place.line for place in yaml.also] == [3]
    assert not timm.also


def test_names_that_one_release_removed_are_one_cause() -> None:
    def removed(name: str, line: int, release: str = "tensorflow 2.0") -> Finding:
        message = f"{name} was removed in {release}; the target has 2.21.0."
        return finding(
            line, rule="api-removed", message=message, consequence=f"AttributeError: {name}"
        )

    few = [removed("tensorflow.Session", 1), removed("tensorflow.layers", 2)]
    assert grouped(few) == few
    other = removed("numpy.int", 9, "numpy 1.24")
    [one, numpy] = grouped([*few, removed("tensorflow.contrib", 3), other])
    assert "3 names (tensorflow.Session, tensorflow.layers, tensorflow.contrib)" in one.message
    assert one.fix.startswith("Install tensorflow<2.0")
    assert [place.line for place in one.also] == [2, 3]
    assert numpy == other


def test_files_of_one_missing_directory_are_one_cause(tmp_path: Path) -> None:
    def read(path: Path, line: int) -> Finding:
        end = f"FileNotFoundError: No such file or directory: '{path}'"
        return finding(line, rule="path-not-found", message=f"open reads {path}.", consequence=end)

    gone = tmp_path / "gone"
    here = [read(tmp_path / "a.txt", 1), read(tmp_path / "b.txt", 2)]
    assert grouped(here) == here  # each may be forgotten for itself
    [one] = grouped([read(gone / "train" / "x.txt", 3), read(gone / "val", 4)])
    assert f"2 paths in {gone}, which does not exist" in one.message
    assert [place.line for place in one.also] == [4]
    [same] = grouped([read(gone, 3), read(gone, 4)])
    assert same.message == f"open reads {gone}."


def test_the_dry_run_knows_what_a_general_rule_only_sees_raised() -> None:
    read = replace(READ, rule="exception-raised", severity="error", category="illegal_argument")
    met = replace(MET, category="permission_denied", consequence="OSError: [Errno 30] Read-only")
    assert told_once([read], [met], {"exception-raised"}) == [met]
    elsewhere = replace(met, place=SourceLocation("model.py", 70))
    assert told_once([read], [elsewhere], {"exception-raised"}) == [read, elsewhere]
