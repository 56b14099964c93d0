"""``epochzero locate``: what it prints, what it refuses, and where it writes."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from epochzero.cli.formats import formats, names_of
from epochzero.locate.model import SCHEMA, Extrinsic, Item, Ranking, Reason
from tests.language_model import LanguageModel

if TYPE_CHECKING:
    from conftest import Command, Made

LOADER = """\
class ShardReader:
    def read_shard(self, name):
        size = os.path.getsize(name)
        if size % 8:
            raise ValueError("the shard was cut off in the middle of a sample")
        return open(name, "rb").read()
"""
REPORT = """\
# Shards that are cut off stop the job

    Traceback (most recent call last):
      File "/job/src/loader.py", line 5, in read_shard
        raise ValueError("the shard was cut off in the middle of a sample")
    ValueError: the shard was cut off in the middle of a sample
"""


@pytest.fixture
def project(made: Made) -> Made:
    made.write("src/loader.py", LOADER)
    made.write("src/model.py", "def forward(batch):\n    return batch\n")
    made.write("tests/test_loader.py", LOADER)
    made.commit("Fix the reader of shards")
    return made


@pytest.fixture
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "cache home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home


@pytest.fixture
def report(tmp_path: Path, cache_home: Path) -> Path:
    path = tmp_path / "issue.md"
    path.write_text(REPORT)
    return path


# -- Answers -----------------------------------------------------------------------------------


def test_text_says_what_was_searched_and_where_the_bug_may_be(
    run: Command, project: Made, report: Path
) -> None:
    ran = run("locate", report, "--repo", project.folder)
    assert (ran.code, ran.err) == (0, "")
    head, place, reason, *_ = ran.out.splitlines()
    assert "2 files" in head
    assert project.git("rev-parse", "HEAD")[:10] in head
    assert "learned" in head
    assert place.split() == ["1", "src/loader.py"]
    assert reason.strip() == "the traceback ends here: read_shard, line 5"
    assert "tests/" not in ran.out


def test_explain_gives_more_reasons_and_fixes(run: Command, project: Made, report: Path) -> None:
    short = run("locate", report, "--repo", project.folder).out
    long = run("locate", report, "--repo", project.folder, "--explain").out
    assert len(long.splitlines()) > len(short.splitlines())
    found = json.loads(
        run("locate", report, "--repo", project.folder, "--explain", "-f", "json").out
    )
    kinds = [reason["kind"] for reason in found["items"][0]["reasons"]]
    assert kinds[0] == "frame"
    assert {"message", "words", "history"} <= set(kinds)


def test_functions_and_lines(run: Command, project: Made, report: Path) -> None:
    function = run("locate", report, "--repo", project.folder, "--level", "function").out
    assert "src/loader.py:2-6  ShardReader.read_shard" in function
    line = run("locate", report, "--repo", project.folder, "--level", "line", "--top", "1").out
    assert "src/loader.py:5  ShardReader.read_shard" in line
    assert 'raise ValueError("the shard was cut off' in line


def test_json(run: Command, project: Made, report: Path) -> None:
    found = json.loads(run("locate", report, "--repo", project.folder, "-f", "json").out)
    assert found["schema"] == SCHEMA == "epochzero.ranking/1"
    assert found["commit"] == project.git("rev-parse", "HEAD")
    assert (found["level"], found["method"], found["searched"]) == ("file", "learned", 2)
    assert found["items"][0]["path"] == "src/loader.py"


def test_a_report_from_standard_input(run: Command, project: Made, cache_home: Path) -> None:
    issue = json.dumps({"title": "Crash", "body": "`read_shard` fails", "number": 3})
    for text in (REPORT, issue, "\ufeff" + REPORT):
        ran = run("locate", "-", "--repo", project.folder, stdin=text.encode())
        assert ran.code == 0
        assert "1  src/loader.py" in ran.out


def test_a_log_is_diagnosed_first(
    run: Command, project: Made, tmp_path: Path, cache_home: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text("Epoch 1\n" + re.sub("(?m)^    |^#.*$", "", REPORT))
    ran = run("locate", "--log", log, "--repo", project.folder)
    assert ran.code == 0
    assert "1  src/loader.py" in ran.out
    vague = tmp_path / "issue.txt"
    vague.write_text("It stops\nafter an hour")
    both = run("locate", vague, "--log", log, "--repo", project.folder)
    assert "1  src/loader.py" in both.out


def test_a_log_without_a_failure(run: Command, project: Made, report: Path, tmp_path: Path) -> None:
    log = tmp_path / "good.log"
    log.write_text("Epoch 1: loss 0.5\nTraining complete\n")
    alone = run("locate", "--log", log, "--repo", project.folder)
    assert (alone.code, "no failure" in alone.err) == (2, True)
    with_report = run("locate", report, "--log", log, "--repo", project.folder)
    assert (with_report.code, "no failure" in with_report.err) == (0, True)
    assert "1  src/loader.py" in with_report.out


def test_revisions_and_the_work_tree(run: Command, project: Made, report: Path) -> None:
    project.git("rm", "-q", "src/loader.py")
    gone = project.commit("Remove")
    assert "src/loader.py" not in run("locate", report, "--repo", project.folder).out
    earlier = run("locate", report, "--repo", project.folder / "src", "--rev", "HEAD~1")
    assert "1  src/loader.py" in earlier.out
    project.write("src/loader.py", LOADER)
    there = run("locate", report, "--repo", project.folder, "--work-tree")
    assert "1  src/loader.py" in there.out
    assert "of the working tree" in there.out
    assert gone[:10] not in there.out


def test_past_reports(run: Command, project: Made, report: Path, tmp_path: Path) -> None:
    past = tmp_path / "past.jsonl"
    one = {"title": "Cut off shards", "body": "", "closed_at": "2020-01-01T00:00:00Z"}
    past.write_text(json.dumps({**one, "files": ["src/loader.py"]}) + "\n")
    options = ("--repo", project.folder, "--past", past, "-f", "json")
    found = json.loads(run("locate", report, *options).out)
    assert "report" in {reason["kind"] for reason in found["items"][0]["reasons"]}
    past.write_text(json.dumps(one))
    ran = run("locate", report, *options)
    assert ran.code == 2
    assert ran.err.startswith(f"epochzero: {past}: line 1: files")


@pytest.mark.parametrize("form", names_of("ranking"))
def test_nothing_in_common_is_an_answer(
    run: Command, project: Made, tmp_path: Path, cache_home: Path, form: str
) -> None:
    report = tmp_path / "zh.txt"
    report.write_text("训练时程序崩溃\n显存不足", encoding="utf-8")
    ran = run("locate", report, "--repo", project.folder, "-f", form)
    assert (ran.code, ran.err) == (0, "")
    if form == "text":
        assert ran.out.startswith("NOT LOCATED")
    if form == "json":
        assert json.loads(ran.out)["items"] == []
    if form == "sarif":
        assert json.loads(ran.out)["runs"][0]["results"] == []


@pytest.mark.parametrize(("probability", "explain"), [(0.79, False), (0.79, True), (0.8, False)])
@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_cause_outside_the_code_is_reported_when_it_is_likely(
    capsys: pytest.CaptureFixture[str], form: str, probability: float, explain: bool
) -> None:
    extrinsic = Extrinsic(probability, "library", "torch 1.4")
    found = Ranking("", "file", "combined", 2, (), "api", extrinsic)
    formats()[form].ranking(found, explain=explain)
    out = capsys.readouterr().out
    assert ("suspect: library torch 1.4" in out) == (explain or probability >= 0.8)


# -- A language model --------------------------------------------------------------------------


def test_a_language_model_reorders(
    run: Command, project: Made, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("src/open_shards.py", "def open_shards():\n    return read_shard('cut off')\n")
    project.commit("Open shards")
    monkeypatch.setenv("EPOCHZERO_RERANK_KEY", "k3y")
    arguments = ("locate", report, "--repo", project.folder)
    second = json.loads(run(*arguments, "-f", "json").out)["items"][1]["path"]
    with LanguageModel(
        answers=['{"ranking": [2], "comments": {"2": "*It* passes the name."}}']
    ) as model:
        options = ("--rerank", model.url, "--rerank-price", "1,10")
        first = run(*arguments, *options)
        again = run(*arguments, *options, "--top", "1", "-f", "markdown")
        assert (first.code, first.err, again.err) == (0, "", "")
        _, used, place, comment, *_ = first.out.splitlines()
        assert used.split(maxsplit=1) == [
            "Model",
            f"tiny at {model.url[7:-3]} reordered 3 places in 1 request: "
            "900 prompt and 30 completion tokens, $0.0012",
        ]
        assert place == f"1  {second}"
        assert comment.strip() == "tiny: *It* passes the name."
        assert "(stored answer)" in again.out
        assert r"tiny: \*It\* passes" in again.out
        assert len(model.prompts) == 1
        run(*arguments, *options, "--no-cache")
        assert len(model.prompts) == 2
        assert model.requests[-1][2]["Authorization"] == "Bearer k3y"
        model.answers = ["no"]
        failed = run(*arguments, "--rerank", model.url, "--level", "function")
    assert failed.code == 0
    assert failed.out.splitlines()[2].startswith("1  src/loader.py")
    assert "not reranked: the answer of tiny names no candidate" in " ".join(failed.out.split())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--rerank-model", "x"), "--rerank-model requires --rerank"),
        (("--rerank", "http://h/v1", "--rerank-price", "1"), "--rerank-price 1: expected two"),
        (("--rerank", "http://h/v1", "--rerank-price", "nan,1"), "expected two"),
        (("--rerank", "h:8000/v1"), "must start with http"),
    ],
)
def test_a_language_model_that_cannot_be_asked(
    run: Command, project: Made, report: Path, options: tuple[str, ...], problem: str
) -> None:
    ran = run("locate", report, "--repo", project.folder, *options)
    assert ran.code == 2
    assert problem in " ".join(ran.err.split())


# -- The documentation -------------------------------------------------------------------------

GUIDE = (Path(__file__).parents[2] / "docs/locate.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"(?m)^    epochzero (locate .*?)(?: +#.*)?$", GUIDE)


@pytest.fixture
def guide_folder(
    project: Made, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The repository in which the guide's commands make sense."""
    project.git("tag", "v1.0")
    past = {"title": "Cut off", "body": "", "closed_at": "2020-01-01T00:00:00Z"}
    files = {
        "issue.md": REPORT,
        "issue.json": json.dumps({"title": "Cut off shards", "body": REPORT}),
        "train.log": re.sub("(?m)^    |^#.*$", "", REPORT),
        "past.jsonl": json.dumps({**past, "files": ["src/loader.py"]}),
    }
    for name, text in files.items():
        project.write(name, text)
    monkeypatch.chdir(project.folder)
    return project.folder


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_guide(run: Command, guide_folder: Path, line: str) -> None:
    command, _, source = line.partition(" < ")
    ran = run(*shlex.split(command), stdin=Path(source).read_bytes() if source else None)
    assert (ran.code, ran.err) == (0, "")
    assert "src/loader.py" in ran.out


def test_the_answer_in_the_guide(run: Command, guide_folder: Path) -> None:
    (command, shown), *_ = re.findall(r"(?s)```text\n\$ epochzero (.*?)\n\n(.*?)```", GUIDE)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=guide_folder, capture_output=True, text=True, check=True
    )
    expected = re.sub(r"at [0-9a-f]{10}", f"at {commit.stdout[:10]}", shown)
    assert run(*shlex.split(command)).out == expected


# -- Forms -------------------------------------------------------------------------------------

HOSTILE = Ranking(
    commit="0" * 40,
    level="function",
    method="combined",
    searched=7,
    items=(
        Item(
            "src/`<b>`\x1b[31m\n[x](y) \udcff.py",
            0.5,
            "A.`f`",
            3,
            9,
            (Reason("history", "fix\x1b[2J <script>@all</script> ![x](http://x) {0} [a](b)\n# h"),),
            code="eval('`'); \x1b[31m",
        ),
    ),
    bug_type="gpu",
    extrinsic=Extrinsic(0.9, "library", "torch 1.4", ("torch==1.4\x1b[31m",)),
)


@pytest.mark.parametrize("form", names_of("ranking"))
@pytest.mark.parametrize("explain", [True, False])
def test_hostile_text_stays_text(
    capsys: pytest.CaptureFixture[str], form: str, explain: bool
) -> None:
    formats()[form].ranking(HOSTILE, explain=explain)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    if form == "text":
        assert re.search(r"(?m)^1  src/", out)
        assert ("GPU" in out) == explain
        assert "(90%); suspect: library torch 1.4" in out
    if form == "markdown":
        assert not re.search(r"(?m)^#(?!## Likely)|<script|(?<!\\)\]\(http|@all", out)
    if form == "json":
        path = json.loads(out)["items"][0]["path"]
        assert path == HOSTILE.items[0].path


def test_markdown_is_a_list_for_a_comment(run: Command, project: Made, report: Path) -> None:
    out = run("locate", report, "--repo", project.folder, "-f", "markdown").out
    assert re.search(r"(?m)^1\. `src/loader\.py`\n   - the traceback ends here", out)


@pytest.mark.parametrize("level", ["file", "function", "line"])
def test_sarif_has_what_the_standard_requires(
    run: Command, project: Made, report: Path, level: str
) -> None:
    project.write("src/with blank é.py", LOADER)
    project.commit()
    ran = run("locate", report, "--repo", project.folder, "-f", "sarif", "--level", level)
    log = json.loads(ran.out)
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    driver = one["tool"]["driver"]
    assert driver["name"] == "EpochZero"
    rules = [rule["id"] for rule in driver["rules"]]
    assert one["results"]
    for result in one["results"]:
        check_result(result, rules)
        (location,) = result["locations"]
        assert ("region" in location["physicalLocation"]) == (level != "file")
        assert ("logicalLocations" in location) == (level != "file")
    uris = {uri(result) for result in one["results"]}
    assert "src/with%20blank%20%C3%A9.py" in uris


def uri(result: dict[str, Any]) -> str:
    found: str = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    return found


def check_result(result: dict[str, Any], rules: list[str]) -> None:
    assert rules[result["ruleIndex"]] == result["ruleId"]
    assert result["level"] in {"none", "note", "warning", "error"}
    assert result["message"]["text"]
    assert -1.0 <= result["rank"] <= 100.0
    # RFC 3986 characters only, and relative.
    assert re.fullmatch(r"(?!/)(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri(result))
    region = result["locations"][0]["physicalLocation"].get("region")
    if region:
        assert 1 <= region["startLine"] <= region["endLine"]


def test_sarif_messages_have_no_links_and_placeholders(capsys: pytest.CaptureFixture[str]) -> None:
    formats()["sarif"].ranking(HOSTILE, explain=False)
    result = json.loads(capsys.readouterr().out)["runs"][0]["results"][0]
    check_result(result, ["locate/function"])
    text = result["message"]["text"]
    assert not re.search(r"(?<!\\)[\[\]]", text)
    assert "{{0}}" in text


def test_no_colour_in_a_pipe_and_with_no_color(project: Made, report: Path) -> None:
    command = [sys.executable, "-m", "epochzero", "locate", report, "--repo", project.folder]
    piped = subprocess.run(command, capture_output=True, check=True)
    assert b"\x1b" not in piped.stdout + piped.stderr
    for no_color in ("", "1"):
        seen = on_terminal(command, {**os.environ, "NO_COLOR": no_color})
        assert (b"\x1b" in seen) == (not no_color)


def on_terminal(command: list[Any], environment: dict[str, str]) -> bytes:
    """What a command prints on a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.DEVNULL, env=environment):
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 1 << 16)
            except OSError:  # how Linux says that the other end is closed
                break
            if not part:
                break
            seen += part
    os.close(master)
    return seen


# -- Refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (bytes(range(256)) * 40, "is not text (binary file)"),
    ],
)
def test_reports_that_are_none(
    run: Command, project: Made, report: Path, content: bytes, said: str
) -> None:
    report.write_bytes(content)
    ran = run("locate", report, "--repo", project.folder)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"epochzero: {report}")
    assert said in ran.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"title": "Crash", ', "invalid JSON at line 1, column 20"),
        ('{title: "Crash"}', "invalid JSON at line 1, column 2"),
        ("{'title': 'Crash'}", "invalid JSON"),
        ('{"title": "Crash"}\n{"title": "Hang"}', "invalid JSON at line 2"),
        ('"Crash"', "a JSON value"),
        ("[1, 2]", "a JSON list"),
    ],
)
def test_a_json_file_is_no_prose(
    run: Command, project: Made, tmp_path: Path, content: str, said: str
) -> None:
    report = tmp_path / "issue.json"
    report.write_text(content)
    ran = run("locate", report, "--repo", project.folder)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_what_cannot_be_used(
    run: Command, project: Made, made: Made, report: Path, tmp_path: Path
) -> None:
    repo = ("--repo", project.folder)
    for arguments, said in (
        ((report, "--repo", tmp_path), "not a git repository"),
        ((report, "--repo", tmp_path / "nowhere"), "no such directory"),
        ((report, *repo, "--rev", "nope"), "unknown revision 'nope'"),
        ((report, *repo, "--rev", "--output=x"), "is not a revision"),
        ((report, *repo, "--level", "class"), "'class' is not one of"),
        ((report, *repo, "--method", "magic"), "'magic' is not one of"),
        ((report, *repo, "--top", "0"), "--top"),
        ((report, *repo, "--rev", "HEAD", "--work-tree"), "mutually exclusive"),
        ((tmp_path / "missing.md", *repo), "cannot be read"),
        ((tmp_path, *repo), "cannot be read"),
        ((report, *repo, "--past", tmp_path / "missing.jsonl"), "cannot be read"),
        (("-", "--log", "-", *repo), "cannot be both"),
        (repo, "pass REPORT"),
    ):
        ran = run("locate", *arguments)
        assert (ran.code, ran.out) == (2, ""), arguments
        assert said in ran.err, arguments
        assert "Traceback (most" not in ran.err


def test_no_source_files(run: Command, tmp_path: Path, made: Made, report: Path) -> None:
    made.write("notes.md")
    made.commit()
    ran = run("locate", report, "--repo", made.folder)
    assert ran.code == 2
    assert "no source files to search" in ran.err


@pytest.mark.parametrize(
    "content",
    [
        ("Read shards " * 450_000).encode(),
        REPORT.encode() + b"noise = shard(1)\n" * 300_000,
        REPORT.encode("utf-16"),
        REPORT.encode() + b"\xff\xfe\xfa shards",
    ],
    ids=["one line of 5 MB", "many lines", "utf-16", "bytes that are no text"],
)
def test_reports_that_are_odd(run: Command, project: Made, report: Path, content: bytes) -> None:
    report.write_bytes(content)
    ran = run("locate", report, "--repo", project.folder)
    assert ran.code == 0
    assert "1  src/loader.py" in ran.out


# -- The cache ---------------------------------------------------------------------------------


def test_the_cache_is_the_users(
    run: Command, project: Made, report: Path, cache_home: Path
) -> None:
    first = run("locate", report, "--repo", project.folder)
    assert (cache_home / "epochzero/code/code.sqlite").is_file()
    assert run("locate", report, "--repo", project.folder) == first


def test_without_a_cache(run: Command, project: Made, report: Path, cache_home: Path) -> None:
    assert run("locate", report, "--repo", project.folder, "--no-cache", "--explain").code == 0
    assert not cache_home.exists()


def test_a_relative_cache_folder_is_ignored(
    run: Command, project: Made, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The XDG Base Directory Specification says so.
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project.folder)
    assert run("locate", report).code == 0
    assert not (project.folder / "relative").exists()
    assert (tmp_path / "home/.cache/epochzero/code/code.sqlite").is_file()


def test_a_damaged_cache_is_told_of(
    run: Command, project: Made, report: Path, cache_home: Path
) -> None:
    good = run("locate", report, "--repo", project.folder)
    (cache_home / "epochzero/code/code.sqlite").write_bytes(b"nonsense" * 100)
    ran = run("locate", report, "--repo", project.folder)
    assert (ran.code, ran.out) == (0, good.out)
    assert "damaged cache" in ran.err


def test_a_cache_that_cannot_be_made(
    run: Command, project: Made, report: Path, cache_home: Path
) -> None:
    cache_home.write_text("a file, where a folder should be")
    ran = run("locate", report, "--repo", project.folder)
    assert ran.code == 0
    assert "continuing without the cache" in ran.err


# -- By coverage -------------------------------------------------------------------------------


def covered(**contexts: list[str]) -> str:
    """A report of coverage.py: for lines of the loader, the tests that executed them."""
    lines = {name.removeprefix("line_"): tests for name, tests in contexts.items()}
    return json.dumps({"files": {"src/loader.py": {"contexts": lines}}})


@pytest.fixture
def coverage(tmp_path: Path, cache_home: Path) -> Path:
    path = tmp_path / "coverage.json"
    good, bad = "tests/test_loader.py::test_good|run", "tests/test_loader.py::test_bad|run"
    path.write_text(covered(line_3=[good, bad], line_4=[good, bad], line_5=[bad], line_6=[good]))
    return path


@pytest.mark.parametrize(
    "failed",
    ["tests/test_loader.py::test_bad\n", '{"tests/test_loader.py::test_bad": true}'],
    ids=["lines", "lastfailed"],
)
def test_what_failing_tests_cover(
    run: Command, project: Made, coverage: Path, tmp_path: Path, failed: str
) -> None:
    names = tmp_path / "failed"
    names.write_text(failed)
    arguments = ["--repo", project.folder, "--coverage", coverage, "--failed", names]
    found = json.loads(run("locate", *arguments, "--level", "line", "-f", "json").out)
    assert (found["method"], found["items"][0]["start"]) == ("ochiai", 5)
    assert [item["start"] for item in found["items"]] == [5, 3, 4]
    assert found["items"][0]["reasons"][0]["kind"] == "coverage"
    by_function = run("locate", *arguments, "--level", "function", "--method", "tarantula").out
    assert "ShardReader.read_shard" in by_function
    assert "src/loader.py" in run("locate", *arguments).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--coverage", "COVERAGE"], "--failed"),
        (["--failed", "FAILED", "REPORT"], "requires --coverage"),
        (["--method", "ochiai", "REPORT"], "ochiai requires --coverage"),
        (["--coverage", "COVERAGE", "--failed", "FAILED", "REPORT"], "excludes REPORT"),
        (["--coverage", "COVERAGE", "--failed", "FAILED", "--method", "bm25"], "ranks reports"),
        (["--coverage", "REPORT", "--failed", "FAILED"], "not JSON"),
        (["--coverage", "COVERAGE", "--failed", "REPORT"], "is a context of the coverage report"),
    ],
)
def test_coverage_that_cannot_be_used(
    run: Command,
    project: Made,
    coverage: Path,
    report: Path,
    tmp_path: Path,
    arguments: list[str],
    said: str,
) -> None:
    failed = tmp_path / "failed"
    failed.write_text("tests/test_loader.py::test_bad\n")
    files = {"COVERAGE": coverage, "FAILED": failed, "REPORT": report}
    ran = run("locate", "--repo", project.folder, *(files.get(a, a) for a in arguments))
    assert ran.code == 2
    assert said in ran.err
