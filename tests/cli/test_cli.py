"""The command line: exit codes, formats, bad input, and a start that is fast."""

from __future__ import annotations

import json
import os
import pty
import re
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from epochzero import taxonomy
from epochzero.diagnose import builtin
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from conftest import Command

FAILED = """\
Epoch 1: loss 0.9
Traceback (most recent call last):
  File "/job/train.py", line 12, in train_step
    loss = model(batch)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)
"""
GOOD = "Epoch 1: loss 0.9\nEpoch 2: loss 0.5\nTraining complete\n"
ANSI = re.compile(r"\x1b")


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(FAILED)
    return path


# -- Start -------------------------------------------------------------------------------------


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "epochzero", "--help"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "epochzero.cli" in loaded
    heavy = ("hyperscan", "numpy", "backports.zstd", "tomllib", "epochzero.diagnose", "epochzero.logs",
             "epochzero.code", "epochzero.locate")  # fmt: skip
    assert not [name for name in loaded if name.startswith(heavy)]


@pytest.mark.parametrize("command", ["diagnose", "run", "export", "watch show", "target diff"])
def test_a_command_without_its_arguments_shows_how_it_is_called(run: Command, command: str) -> None:
    done = run(*command.split())
    assert (done.code, done.out) == (2, "")
    assert f"Usage: epochzero {command} [OPTIONS]" in done.err
    assert f"\n  epochzero {command} " in done.err


@pytest.mark.parametrize(
    ("prefix", "advice"),
    [
        ("/home/ann/.venv", "pip install 'epochzero[serve]'"),
        ("/home/ann/.local/share/pipx/venvs/epochzero", "pipx install --force 'epochzero[serve]'"),
        ("/home/ann/.local/share/uv/tools/epochzero", "uv tool install 'epochzero[serve]'"),
    ],
)
def test_a_missing_extra_is_installed_as_epochzero_was(
    run: Command, monkeypatch: pytest.MonkeyPatch, prefix: str, advice: str
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr("epochzero.cli.serve.find_spec", lambda name: None)
    done = run("serve")
    assert done.code == 2
    assert done.err.startswith("epochzero: `epochzero serve` requires fastapi, ")
    assert done.err.endswith(f": {advice}\n")


@pytest.mark.parametrize("command", [[], ["diagnose"], ["locate"], ["explain"], ["signatures"],
                                     ["data"], ["data", "profile"], ["data", "validate"],
                                     ["data", "synthesize"], ["data", "sample"], ["signatures", "list"], ["signatures", "check"],
                                     ["watch"], ["watch", "show"], ["watch", "export"]])  # fmt: skip
def test_every_command_has_help(run: Command, command: list[str]) -> None:
    ran = run(*command, "--help")
    assert ran.code == 0
    assert "Usage: epochzero" in ran.out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["chekc"], "did you mean check?"),
        (["target", "captrue"], "did you mean capture?"),
        (["data", "profle"], "did you mean profile?"),
        (["signatures", "lst"], "did you mean list?"),
        (["data", "xyzzy"], "there are profile, sample, synthesize, validate"),
    ],
)
def test_a_wrong_command_is_told_with_what_may_be_meant(
    run: Command, words: list[str], hint: str
) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert f"no command '{words[-1]}'; {hint}" in ran.err


def test_version(run: Command) -> None:
    from epochzero import __version__

    assert __version__ in run("--version").out


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["diagnose"], ["diagnose", "--format", "xml", "x"], ["diagnose", "--top", "0", "x"],
     ["diagnose", "--start", "yesterday", "x"], ["diagnose", "--signatures", "/no/such", "x"]],
)  # fmt: skip
def test_wrong_usage_is_exit_code_2(run: Command, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert "Usage:" in ran.err


# -- Formats -----------------------------------------------------------------------------------


@pytest.mark.parametrize("log", [FAILED, GOOD, "", "epoch 1\nKilled\n"])
@pytest.mark.parametrize("form", ["text", "json", "jsonl", "markdown", "github"])
def test_a_diagnosis_is_exit_code_0(run: Command, tmp_path: Path, form: str, log: str) -> None:
    (tmp_path / "train.log").write_text(log)
    ran = run("diagnose", tmp_path / "train.log", "--format", form)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.strip()
    assert not ANSI.search(ran.out)


def test_text_says_what_a_person_asks(run: Command, failed: Path) -> None:
    out = run("diagnose", failed).out
    assert "Tensor Mismatch" in out
    assert f"{failed}:5" in out
    assert "(32x784 and 512x10)" in " ".join(out.split())
    assert "/job/train.py:12 in train_step" in out
    assert "1. " in out
    assert "Retry" in out


def test_json(run: Command, failed: Path) -> None:
    raw = json.loads(run("diagnose", failed, "-f", "json").out)
    assert raw["schema"] == "epochzero.diagnosis/1"
    assert raw["category"] == "tensor_mismatch"
    assert raw["root"]["line"] == 5


def test_json_of_each_is_a_list(run: Command, failed: Path) -> None:
    ran = run("diagnose", "--each", failed, failed, "-f", "json")
    assert [raw["category"] for raw in json.loads(ran.out)] == ["tensor_mismatch"] * 2


def test_each_searches_a_directory_for_facts_once(
    run: Command, failed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("epochzero.cli.diagnose")
    searched = Mock(wraps=module.find_facts)
    monkeypatch.setattr(module, "find_facts", searched)
    ran = run("diagnose", "--each", failed, failed, "-f", "json")
    assert len(json.loads(ran.out)) == 2
    searched.assert_called_once_with([failed.parent])


def test_jsonl_is_one_line_each(run: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.log").write_text(FAILED + "\u2028 and more\n")
    ran = run("diagnose", "--each", *sorted(tmp_path.iterdir()), "-f", "jsonl")
    lines = ran.out.rstrip("\n").split("\n")
    assert [json.loads(line)["category"] for line in lines] == ["tensor_mismatch"] * 2


HOSTILE = """\
Traceback (most recent call last):
  File "/job/a`<img src=x>`@all.py", line 12, in f`g`
    x()
ValueError: ``` </details> <script>alert(1)</script> @everyone #1 [x](http://evil) | 100%: a,b
"""


def test_markdown_cannot_be_broken_out_of(run: Command, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(HOSTILE)
    out = run("diagnose", tmp_path / "train.log", "-f", "markdown").out
    lines = out.split("\n")
    fences = [line for line in lines if re.fullmatch(r"`{3,}", line)]
    assert len(fences) == 2
    assert len(set(fences)) == 1
    inside = lines[lines.index(fences[0]) + 1 : len(lines) - 1 - lines[::-1].index(fences[0])]
    assert not any(fences[0] in line for line in inside)
    outside = "\n".join(line for line in lines if line not in inside)
    # What remains outside of code blocks and code spans must not be markup of the log's making.
    plain = re.sub(r"(`+) ?.+? ?\1(?!`)", "", outside).replace("<sub>", "").replace("</sub>", "")
    assert "<" not in plain
    assert "@" not in plain
    assert "](" not in plain


def test_github_escapes_what_is_special(run: Command, tmp_path: Path) -> None:
    text = FAILED.replace("train.py", "a,b:c%d.py").replace("cannot", "100% cannot\n::error::x")
    (tmp_path / "train.log").write_text(text)
    out = run("diagnose", tmp_path / "train.log", "-f", "github").out
    assert out.count("\n") == 1
    command, _, message = out.removeprefix("::error ").partition("::")
    assert re.match(r"file=/job/a%2Cb%3Ac%25d\.py,line=12,title=[^:,]+$", command)
    assert not re.search(r"%(?!25|0A|0D)", message.rstrip("\n"))


def test_top_limits_the_fixes(run: Command, failed: Path) -> None:
    def fixes(top: int) -> int:
        out = run("diagnose", failed, "--top", str(top), "-f", "markdown").out
        return len(re.findall(r"(?m)^\d+\. ", out))

    assert fixes(1) == 1
    assert fixes(9) == len(json.loads(run("diagnose", failed, "-f", "json").out)["fixes"]) > 1


def test_secrets(run: Command, tmp_path: Path) -> None:
    secret = "hf_" + "AbCdEfGh1234567890IjKlMnOpQrStUvWx"
    path = tmp_path / "train.log"
    path.write_text(f"ValueError: invalid token {secret}\n")
    for form in ("text", "json", "markdown", "github"):
        assert secret not in run("diagnose", path, "-f", form).out
        assert secret in run("diagnose", path, "-f", form, "--no-redact").out


@pytest.mark.parametrize("code", ["\x07", "\x08\x08\x08", "\x9b31m", "\x1b[31m", "\x1b]0;x\x07", "\x00", "\x7f"])  # fmt: skip
@pytest.mark.parametrize("form", ["text", "markdown", "github"])
def test_control_characters_of_a_log_stay_in_it(
    run: Command, tmp_path: Path, form: str, code: str
) -> None:
    (tmp_path / "train.log").write_text(f"{FAILED.rstrip()} {code}and more\n", encoding="utf-8")
    out = run("diagnose", tmp_path / "train.log", "-f", form).out
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_every_character(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "train.log").write_text("ValueError: größer als 3 — 误\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "epochzero", "diagnose", str(tmp_path / "train.log")],
        capture_output=True, timeout=PATIENCE_S, check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"ValueError: gr" in done.stdout


def on_a_terminal(*arguments: str | Path, env: dict[str, str]) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "epochzero", *map(str, arguments)],
        stdout=theirs, stderr=theirs, env={**os.environ, **env},
    ):  # fmt: skip
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass  # the other end has gone
    os.close(ours)
    return shown.decode()


def test_colour_is_for_terminals_that_want_it(failed: Path) -> None:
    assert ANSI.search(on_a_terminal("diagnose", failed, env={"NO_COLOR": ""}))
    assert not ANSI.search(on_a_terminal("diagnose", failed, env={"NO_COLOR": "1"}))
    assert not ANSI.search(on_a_terminal("explain", "timeout", env={"NO_COLOR": "1"}))


# -- Input -------------------------------------------------------------------------------------


def test_standard_input(run: Command) -> None:
    ran = run("diagnose", "-", "-f", "json", stdin=FAILED.encode())
    raw = json.loads(ran.out)
    assert raw["category"] == "tensor_mismatch"
    assert raw["root"]["file"] == "<stdin>"


def test_a_missing_file(run: Command) -> None:
    ran = run("diagnose", "/no/such/train.log")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "epochzero: /no/such/train.log: no such file or directory\n"


def test_an_empty_folder(run: Command, tmp_path: Path) -> None:
    ran = run("diagnose", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "no log files" in ran.err


def test_a_binary_file_is_a_clear_error(run: Command, tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(bytes(range(256)) * 400)
    ran = run("diagnose", tmp_path / "model.pt")
    assert (ran.code, ran.out) == (2, "")
    assert "model.pt" in ran.err
    assert ran.err.count("\n") == 1


def test_an_empty_file_is_a_clear_answer(run: Command, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(b"")
    ran = run("diagnose", tmp_path / "train.log")
    assert ran.code == 0
    assert "empty" in ran.out.lower()
    assert "FAILED" not in ran.out
    assert ran.out.startswith("UNKNOWN")


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "markdown", "github"])
def test_a_bad_facts_file_costs_no_diagnosis(run: Command, failed: Path, form: str) -> None:
    (failed.parent / "facts.json").write_text('{"exit_code": "one"}')
    ran = run("diagnose", failed, "-f", form)
    assert (ran.code, ran.err) == (0, "")
    words = " ".join(ran.out.replace("\\", "").split())
    assert 'exit_code is "one", expected an integer' in words
    assert "it was ignored" in words


def test_a_folder_with_facts_alone(run: Command, tmp_path: Path) -> None:
    (tmp_path / "describe.txt").write_text(
        "Containers:\n  main:\n    Reason:       OOMKilled\n    Exit Code:    137\n"
    )
    raw = json.loads(run("diagnose", tmp_path, "-f", "json").out)
    assert (raw["outcome"], raw["category"]) == ("failed", "cpu_out_of_memory")


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("form", ["text", "json", "jsonl", "markdown", "github"])
def test_of_each_a_bad_one_does_not_hide_the_others(
    run: Command, failed: Path, form: str, order: int
) -> None:
    paths: list[Path] = [failed, failed]
    paths.insert(order, Path("/no/such.log"))
    ran = run("diagnose", "--each", *paths, "-f", form)
    assert ran.code == 2
    assert "/no/such.log: no such file or directory" in ran.err
    assert ran.out.count("cannot be multiplied") >= 2
    if form == "json":
        assert len(json.loads(ran.out)) == 2


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder that this process may not read, with a log in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        inner = folder / "logs"
        inner.mkdir()
        (inner / "train.log").write_text(FAILED)
        (folder / "secret.log").write_text(FAILED)
        (folder / "secret.log").chmod(0)
        inner.chmod(0)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            inner.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("name", ["logs", "logs/train.log", "secret.log"])
def test_what_may_not_be_read(run: Command, locked: Path, name: str) -> None:
    ran = run("diagnose", locked / name)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"epochzero: {locked / name}")
    assert "ermission denied" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["explain"], ["signatures", "list"], ["diagnose", "--each", "-f", "jsonl"]]
)
def test_a_reader_that_goes_away(failed: Path, arguments: list[str]) -> None:
    paths = [str(failed)] * 300 if arguments[0] == "diagnose" else []
    writer = subprocess.Popen(
        [sys.executable, "-m", "epochzero", *arguments, *paths],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert writer.stdout is not None
    assert writer.stderr is not None
    assert writer.stdout.readline()
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait(timeout=PATIENCE_S) in {0, 1, 141}


def test_facts_by_options_and_by_file(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(GOOD.replace("Training complete\n", ""))
    options = ["--exit-code", "137", "--gpus", "8", "--start", "2024-05-01T12:00:00", "--end",
               "2024-05-01T13:30:00Z"]  # fmt: skip
    raw = json.loads(run("diagnose", path, "-f", "json", *options).out)
    assert raw["outcome"] == "evidence_missing"
    assert raw["cost"] == {"gpus": 8, "seconds": 5400.0, "gpu_hours": 12.0}
    facts = tmp_path / "elsewhere.json"
    facts.write_text('{"exit_code": 139}')
    raw = json.loads(run("diagnose", path, "-f", "json", "--facts", facts).out)
    assert raw["category"] == "process_crash"


@pytest.mark.parametrize("text", ["{", "hello", ""])
def test_facts_that_are_none(run: Command, failed: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    ran = run("diagnose", failed, "--facts", tmp_path / "x.json")
    assert (ran.code, ran.out) == (2, "")
    assert "x.json" in ran.err


# -- Signatures and words ----------------------------------------------------------------------

SIGNATURE = """\
title = "Share full"
meaning = "The share is full."
pattern = 'share (?P<share>\\w+) is full'
anchors = ["is full"]
category = "storage_full"
fixes = ["Delete files on {share}."]
[[examples]]
log = "ERROR: share scratch is full"
fields = { share = "scratch" }
"""


@pytest.fixture
def signatures(tmp_path: Path) -> Path:
    folder = tmp_path / "signatures"
    folder.mkdir()
    (folder / "share.toml").write_text(SIGNATURE)
    return folder


def test_own_signatures(run: Command, tmp_path: Path, signatures: Path) -> None:
    (tmp_path / "train.log").write_text("ERROR: share scratch is full\n")
    ran = run("diagnose", tmp_path / "train.log", "--signatures", signatures)
    assert ran.code == 0
    assert "Delete files on scratch." in ran.out


def test_a_wrong_signature_is_an_error_that_names_it(
    run: Command, failed: Path, signatures: Path
) -> None:
    (signatures / "bad.toml").write_text(SIGNATURE.replace("title", "titel"))
    ran = run("diagnose", failed, "--signatures", signatures)
    assert (ran.code, ran.out) == (2, "")
    assert "bad.toml" in ran.err
    assert "titel" in ran.err


def test_signatures_check(run: Command, signatures: Path) -> None:
    ran = run("signatures", "check", signatures)
    assert (ran.code, ran.err) == (0, "")
    assert "1 signature" in ran.out
    (signatures / "bad.toml").write_text(SIGNATURE.replace("is full'", "is empty'"))
    ran = run("signatures", "check", signatures)
    assert ran.code == 1
    assert "bad: example 1 does not match" in ran.err


@pytest.mark.parametrize("option", [[], ["--category", "timeout"], ["--role", "benign"]])
def test_signatures_list(run: Command, option: list[str]) -> None:
    lines = run("signatures", "list", *option).out.splitlines()
    assert lines
    assert (len(lines) == len(builtin())) is not bool(option)


def test_explain_lists_every_word(run: Command) -> None:
    out = run("explain").out
    for vocabulary in (
        taxonomy.categories(), taxonomy.root_causes(), taxonomy.phases(), taxonomy.faults(),
        taxonomy.symptoms(), taxonomy.leaves(),
    ):  # fmt: skip
        for name in vocabulary:
            assert name in out


@pytest.mark.parametrize(
    "word",
    [name for words in (taxonomy.categories(), taxonomy.dimensions(), taxonomy.root_causes(),
                        taxonomy.phases(), taxonomy.retries(), taxonomy.faults(),
                        taxonomy.symptoms()) for name in words],
)  # fmt: skip
def test_explain_a_word(run: Command, word: str) -> None:
    ran = run("explain", word)
    assert ran.code == 0
    term = taxonomy.find(word)
    assert ran.out.startswith(f"{term.title} ({term.name})\n{term.definition}\n")


@pytest.mark.parametrize(
    ("leaf", "lines"),
    [
        ("redundant_softmax_layer", [
            "Counted:   in code and questions 1, in interviews 0",
            "Survey:    24\xa0% of developers had encountered such a fault",
            "Found by:  epochzero check, by softmax-before-cross-entropy",
            "Found by:  epochzero run --watch, as last_activation_wrong",
            "Inject:    epochzero model mutate train.py --leaf redundant_softmax_layer -o mutants/",
        ]),
        ("missing_argument_scoping", [
            "Found by:  not detected by any tool",
            "Inject:    not possible: only graphs of TensorFlow 1 have it",
        ]),
    ],
)  # fmt: skip
def test_explain_a_leaf(run: Command, leaf: str, lines: list[str]) -> None:
    assert set(lines) <= set(run("explain", leaf).out.splitlines())


def test_explain_a_fault_names_its_leaf(run: Command) -> None:
    assert "Leaf:      missing_api_call" in run("explain", "zero_grad_missing").out


def test_explain_a_signature(run: Command) -> None:
    for signature in list(builtin())[::100]:
        ran = run("explain", signature.name)
        assert ran.code == 0
        assert signature.title in ran.out


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("tensor_mismach", "tensor_mismatch"),
        ("zero_grad_mising", "zero_grad_missing"),
        ("xyzzy", "lists all"),
        ("a/b", "list"),
    ],
)
def test_explain_an_unknown_word(run: Command, word: str, hint: str) -> None:
    ran = run("explain", word)
    assert (ran.code, ran.out) == (2, "")
    assert hint in ran.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(nothing)\n")
    command = [sys.executable, "-m", "epochzero", "check", "--", "python", "train.py"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "epochzero: cannot write the output: No space left on device\n"


# What the core does without: the packages of extras.
EXTRAS = (
    "alembic",
    "sqlalchemy",
    "numpy",
    "Stemmer",
    "tree_sitter_c",
    "tree_sitter_python",
    "torch",
    "pyarrow",
    "scipy",
    "PIL",
)
WITHOUT_EXTRAS = f"""
import sys
sys.modules |= dict.fromkeys({EXTRAS!r})
from epochzero.cli import main
main()
"""


def without_extras(*arguments: str, home: Path) -> tuple[int, str, str]:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *arguments],
        capture_output=True,
        text=True,
        cwd=home,
        env={**os.environ, "EPOCHZERO_HOME": str(home)},
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_the_core_works_without_the_packages_of_extras(
    run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("open('absent.csv')\n")
    code, out, _ = without_extras("check", "--", "python", "train.py", home=tmp_path)
    assert (code, "absent.csv" in out) == (1, True)
    code, _, err = without_extras("run", "--", sys.executable, "train.py", home=tmp_path)
    assert (code, "absent.csv" in err) == (1, True)
    assert "pip install 'epochzero[store]', then epochzero show" in err
    # What ran without the library of the store is in the list of jobs once the library is installed.
    monkeypatch.setenv("EPOCHZERO_HOME", str(tmp_path))
    listed = run("jobs")
    assert (listed.code, "failed" in listed.out) == (0, True)
    # Past jobs improve a check, but their store need not be readable.
    code, out, _ = without_extras("check", "--", "python", "train.py", home=tmp_path)
    assert (code, "absent.csv" in out) == (1, True)
    (tmp_path / "train.log").write_text("step 1\n" * 200_000 + "KeyError: 'fox'\n")
    code, out, _ = without_extras("diagnose", "train.log", home=tmp_path)
    assert (code, "fox" in out) == (0, True)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["jobs"], "store"),
        (["show", "last"], "store"),
        (["locate", "train.py"], "locate"),
        (["data", "profile", "train.py"], "data"),
        (["run", "--watch", "--", "true"], "watch"),
        (["study", "failures", "train.py", "--out", "x"], "study"),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(
    tmp_path: Path, command: list[str], extra: str
) -> None:
    (tmp_path / "train.py").write_text("")
    code, _, err = without_extras(*command, home=tmp_path)
    assert (code, f"pip install 'epochzero[{extra}]'" in err) == (2, True)


def test_long_work_shows_a_bar_with_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from epochzero.cli import line

    now = iter((0.0, 10.0, 20.0, 30.0, 40.0))
    monkeypatch.setattr(line.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(line, "shows_progress", lambda: True)
    shown: list[str] = []
    monkeypatch.setattr(line, "write_line", shown.append)
    status = line.StatusLine()
    status.show("files parsed", 50, 200)
    status.show("files parsed", 100, 200)
    status.show("rows read", 3)
    status.show("rows read", 8003)
    assert shown == [
        "[#####               ] files parsed: 50 of 200 ...",
        "[##########          ] files parsed: 100 of 200, 5 a second, 20 s left ...",
        "rows read: 3 ...",
        "rows read: 8,003, 800 a second ...",
    ]


@pytest.mark.parametrize(
    "command", [("mcp", "--http", "127.0.0.1:{}"), ("serve", "--port", "{}")], ids=" ".join
)
def test_a_server_reports_a_port_that_is_in_use(
    run: Command, tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPOCHZERO_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(*(word.format(port) for word in command))
    assert (done.code, done.out) == (2, "")
    assert (
        done.err == f"epochzero: 127.0.0.1:{port}: Address already in use; choose another address\n"
    )


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["diagnose", "train.log", "--format", "jsom"], "did you mean json?"),
        (["study", "failures", "x", "--format", "jsn"], "did you mean json?"),
        (["run", "--retries", "atuo", "--", "true"], "did you mean auto?"),
        (["run", "--policy", "alwayss-3", "--", "true"], "did you mean always-3?"),
    ],
)
def test_a_wrong_value_is_answered_with_the_nearest(
    run: Command, words: list[str], nearest: str
) -> None:
    done = run(*words)
    assert (done.code, done.err.rstrip().endswith(nearest)) == (2, True)
