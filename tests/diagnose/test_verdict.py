"""The diagnosis as a whole: exits without a message, evidence, redaction, cost."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from epochzero import taxonomy
from epochzero.diagnose import Diagnoser, Facts
from epochzero.logs.source import Log, find_logs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from epochzero.diagnose import Diagnosis

    Diagnose = Callable[..., Diagnosis]

QUIET = "loading data\nEpoch 1: loss 0.9\nEpoch 2: loss 0.5\n"
FAILED = """\
Epoch 1: loss 0.9
Traceback (most recent call last):
  File "/job/train.py", line 12, in train_step
    loss = model(batch)
  File "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)
"""


@pytest.mark.parametrize(
    ("facts", "categories", "word"),
    [
        (Facts(exit_code=137), {"process_crash"}, "SIGKILL"),
        (Facts(exit_code=-9), {"process_crash"}, "SIGKILL"),
        (Facts(signal=9), {"process_crash"}, "SIGKILL"),
        (Facts(exit_code=139), {"process_crash"}, "SIGSEGV"),
        (Facts(exit_code=-7), {"process_crash", "storage_full"}, "SIGBUS"),
        (Facts(exit_code=134), {"process_crash"}, "SIGABRT"),
        (Facts(exit_code=143), {"interrupted", "timeout"}, "SIGTERM"),
        (Facts(exit_code=130), {"interrupted"}, "SIGINT"),
        (Facts(exit_code=1), None, "1"),
        (Facts(exit_code=77), None, "77"),
        (Facts(state="FAILED"), None, ""),
    ],
)
@pytest.mark.parametrize("log", [QUIET, ""])
def test_an_exit_without_a_message(
    diagnose: Diagnose, facts: Facts, categories: set[str] | None, word: str, log: str
) -> None:
    found = diagnose(log, facts)
    assert found.outcome == "evidence_missing"
    assert found.root is None
    assert categories is None or found.category in categories
    assert word in f"{found.title} {found.meaning}"
    assert found.fixes, "where to look"
    assert found.confidence <= 0.7
    assert found.retry in taxonomy.retries()


@pytest.mark.parametrize(
    ("facts", "categories"),
    [
        (Facts(exit_code=137, state="OOMKilled"), {"cpu_out_of_memory"}),
        (Facts(exit_code=0, state="OUT_OF_MEMORY"), {"cpu_out_of_memory"}),
        (Facts(exit_code=0, state="TIMEOUT"), {"timeout"}),
        (Facts(state="DEADLINE"), {"timeout"}),
        (Facts(exit_code=0, state="PREEMPTED"), {"interrupted"}),
        (Facts(state="CANCELLED"), {"interrupted"}),
        (
            Facts(exit_code=143, state="Evicted"),
            {"interrupted", "storage_full", "cpu_out_of_memory"},
        ),
        (Facts(state="NODE_FAIL"), {"communication_failure", "process_crash", "gpu_fault"}),
    ],
)
def test_a_scheduler_s_word_on_a_silent_log(
    diagnose: Diagnose, facts: Facts, categories: set[str]
) -> None:
    found = diagnose(QUIET, facts)
    assert found.outcome in {"failed", "evidence_missing"}
    assert found.category in categories


def test_jobs_that_ended_without_a_message_are_grouped_by_their_exit_status(
    diagnose: Diagnose,
) -> None:
    later = QUIET + "Epoch 3: loss 0.4\n"
    killed, killed_later = (diagnose(log, Facts(signal=9)) for log in (QUIET, later))
    assert killed.fingerprint == killed_later.fingerprint
    assert killed.fingerprint == diagnose(QUIET, Facts(exit_code=137)).fingerprint
    assert killed.fingerprint != diagnose(QUIET, Facts(signal=11)).fingerprint


def test_a_job_that_ended_well(diagnose: Diagnose) -> None:
    found = diagnose(QUIET, Facts(exit_code=0))
    assert (found.outcome, found.category) == ("no_failure", "not_a_failure")
    assert found.fingerprint == ""
    assert found.root is None
    # Without the exit code, it only shows no failure.
    assert (found.confidence, diagnose(QUIET).confidence) == (0.95, 0.8)


def test_the_evidence_of_a_log_counts_more_than_an_exit_code(diagnose: Diagnose) -> None:
    found = diagnose(FAILED, Facts(exit_code=137))
    assert (found.outcome, found.category) == ("failed", "tensor_mismatch")


SHAPES = FAILED.splitlines()[-1]
NO_SPACE = "OSError: [Errno 28] No space left on device"
FAILED_TWICE = f"""{FAILED}

Traceback (most recent call last):
  File "/job/train.py", line 40, in save
    os.write(fd, data)
{NO_SPACE}: {"/data" * 100}
"""


def test_a_later_error_of_the_same_process_is_evidence_and_another_possible_category(
    diagnose: Diagnose,
) -> None:
    found = diagnose(FAILED_TWICE)
    assert (found.category, found.also) == ("tensor_mismatch", ("storage_full",))
    assert [line.partition(": /")[0] for line in found.evidence] == [SHAPES, NO_SPACE]
    (later,) = found.cascade
    assert (later.line, later.role, len(later.text)) == (13, "later", 300)
    assert diagnose({"a.log": FAILED, "b.log": FAILED_TWICE}).evidence == (SHAPES,)


def test_a_launcher_that_reports_a_failure_may_exit_with_0(diagnose: Diagnose) -> None:
    assert diagnose(FAILED, Facts(exit_code=0)).outcome == "no_failure"
    report = "torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 815)"
    found = diagnose(
        f"{FAILED}E0501 12:00:09.100000 812 {report} of binary: python\n", Facts(exit_code=0)
    )
    assert (found.outcome, found.category) == ("failed", "tensor_mismatch")


def test_all_fields_of_a_failure(diagnose: Diagnose) -> None:
    found = diagnose(FAILED, Facts(exit_code=1))
    assert found.outcome == "failed"
    assert (found.category, found.dimension) == ("tensor_mismatch", "deep_learning_specific")
    assert found.root_cause in taxonomy.root_causes()
    assert found.phase == "training"
    assert found.retry == "fails_again"
    assert found.retry_reason
    assert found.root is not None
    assert (found.root.file, found.root.line) == ("train.log", 7)
    assert found.exception is not None
    assert found.exception.type == "RuntimeError"
    assert found.user_frame is not None
    assert (found.user_frame.file, found.user_frame.line) == ("/job/train.py", 12)
    assert found.evidence[0] == found.root.text.strip()
    assert any("784" in fix or "512" in fix for fix in found.fixes), "the numbers of the log"
    assert 0.5 <= found.confidence <= 1


def test_the_json_form_is_complete_and_plain(diagnose: Diagnose) -> None:
    raw = json.loads(json.dumps(diagnose(FAILED).to_dict()))
    assert raw["schema"] == "epochzero.diagnosis/1"
    assert raw.keys() >= {
        "source", "outcome", "dimension", "category", "also", "root_cause", "phase", "retry",
        "retry_reason", "confidence", "root", "exception", "user_frame", "evidence", "cascade",
        "fixes", "signature", "fingerprint", "cost",
    }  # fmt: skip
    assert raw["root"].keys() >= {"file", "line", "text", "rank", "host", "time"}


@pytest.mark.parametrize(
    ("facts", "gpu_hours"),
    [
        (Facts(exit_code=1, start=0.0, end=7200.0, gpus=8), 16.0),
        (Facts(exit_code=1, start=7200.0, end=0.0, gpus=8), 0.0),
        (Facts(exit_code=1, start=0.0, gpus=8), None),
        (Facts(exit_code=1, start=0.0, end=1.0), None),
    ],
)
def test_cost(diagnose: Diagnose, facts: Facts, gpu_hours: float | None) -> None:
    cost = diagnose(FAILED, facts).cost
    assert (cost.gpu_hours if cost else None) == gpu_hours


SECRET = "hf_" + "AbCdEfGh1234567890IjKlMnOpQrStUvWx"
LEAKS = [
    f"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: bad token {SECRET}\n",
    f"ERROR: login with {SECRET} failed: Connection refused\n",
    f"OSError: [Errno 28] No space left on device: '/x?token={SECRET}'\n",
    f"KeyError: '{SECRET}'\n",
    f"FileNotFoundError: [Errno 2] No such file or directory: 'https://u:{SECRET}@h/x'\n",
    f"[rank0]: ERROR: connecting with {SECRET} failed: Connection refused\n"
    f"[rank1]: RuntimeError: NCCL error, key {SECRET}\n",
]  # fmt: skip


@pytest.mark.parametrize("log", LEAKS, ids=range(len(LEAKS)))
def test_no_secret_is_shown_unless_asked_for(log: str) -> None:
    logs = [Log("train.log", text=log.encode())]
    hidden = Diagnoser().diagnose(logs, Facts(exit_code=1))
    assert hidden.outcome == "failed"
    assert SECRET not in json.dumps(hidden.to_dict())
    assert SECRET in json.dumps(Diagnoser(redact=False).diagnose(logs).to_dict())


def test_a_launcher_s_word_on_an_exit_code_is_read(diagnose: Diagnose) -> None:
    log = QUIET + (
        "E0501 12:00:09.100000 812 torch/distributed/elastic/multiprocessing/api.py:869] failed "
        "(exitcode: -11) local_rank: 2 (pid: 815) of binary: /opt/conda/bin/python\n"
    )
    found = diagnose(log)
    assert found.outcome in {"failed", "evidence_missing"}
    assert found.category == "process_crash"
    assert "SIGSEGV" in f"{found.title} {found.meaning}"


def test_what_was_read_is_recorded(diagnose: Diagnose) -> None:
    assert diagnose({"a/rank_0.log": "", "b.log": ""}).source == ("a/rank_0.log", "b.log")


@pytest.mark.parametrize("log", ["", "\n", " ", "\0" * 100, "\x1b[0m"])
@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        (Facts(), "unknown"),
        (Facts(exit_code=0), "no_failure"),
        (Facts(exit_code=1), "evidence_missing"),
        (Facts(exit_code=137), "evidence_missing"),
        (Facts(state="TIMEOUT"), "failed"),
    ],
)
def test_next_to_nothing(diagnose: Diagnose, log: str, facts: Facts, outcome: str) -> None:
    found = diagnose(log, facts)
    assert found.outcome == outcome
    assert found.meaning
    assert ("empty" in found.meaning) is (outcome != "no_failure")


@pytest.mark.parametrize(
    ("log", "facts", "outcome"),
    [
        (QUIET, Facts(), "unknown"),
        (QUIET, Facts(exit_code=0), "no_failure"),
        (QUIET, Facts(exit_code=1), "evidence_missing"),
        (FAILED, Facts(), "failed"),
    ],
)
def test_of_a_log_that_was_cut_off_the_end_is_not_known(
    tmp_path: Path, log: str, facts: Facts, outcome: str
) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(log.encode())[:-4])
    found = Diagnoser().diagnose(find_logs([path]), facts)
    assert found.outcome == outcome
    (note,) = found.notes
    assert "train.log.gz: the compressed data are truncated" in note


def test_a_hole_changes_no_line_number(diagnose: Diagnose) -> None:
    hole = "\0" * 5000
    log = f"start\nstep 1 lo{hole}Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'lr'\n"
    found = diagnose(log)
    assert found.root is not None
    assert (found.category, found.root.line) == ("key_not_found", 4)
    assert found.notes == ("train.log: 5,000 NUL bytes skipped",)


def test_a_traceback_that_was_cut_off_is_a_failure_whose_evidence_is_missing(
    diagnose: Diagnose,
) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 31, in main',
        '    lr = config["lr"]',
    ]
    found = diagnose("\n".join(["starting", *lines]))
    assert (found.outcome, found.category) == ("evidence_missing", "internal_error")
    assert found.title == "Truncated traceback"
    assert found.user_frame is not None
    assert (found.user_frame.line, found.user_frame.function) == (31, "main")
    assert diagnose("\n".join([*lines, "KeyError: 'lr'"])).category == "key_not_found"


@pytest.mark.parametrize(
    "line",
    [
        "Exception: the model has no head",
        "[1]    2770763 illegal hardware instruction (core dumped)  python3 train.py",
        "[1]+  Segmentation fault      (core dumped) python3 train.py",
    ],
)
def test_a_line_alone_can_tell_of_a_failure(diagnose: Diagnose, line: str) -> None:
    assert diagnose(f"starting\n{line}\n").outcome == "failed"


@pytest.mark.parametrize(
    "line",
    ["[1]+  Killed                  python3 train.py", "[1]  + 4411 killed     python3 train.py"],
)
def test_a_shell_s_job_that_was_killed(diagnose: Diagnose, line: str) -> None:
    found = diagnose(f"Epoch 1: loss 0.9\n{line}\n")
    assert (found.outcome, found.category) == ("evidence_missing", "process_crash")


def test_a_fix_names_the_users_source_line_without_its_secrets(diagnose: Diagnose) -> None:
    log = """Traceback (most recent call last):
  File "/job/eval.py", line 9, in mean
    return total / len(scores)
ZeroDivisionError: division by zero
"""
    found = diagnose(log)
    assert found.user_frame is not None
    assert found.user_frame.code == "return total / len(scores)"
    assert "len(scores)" in found.fixes[0]
    hidden = diagnose(log.replace("total / len(scores)", 'call(password="hunter2x") / 0'))
    assert "hunter2x" not in json.dumps(hidden.to_dict())


BELOW = """\
Traceback (most recent call last):
  File "/job/train.py", line 9, in <module>
    batch = tokenizer(text)
"""
LIBRARY = '  File "/opt/lib/python3.11/site-packages/lib/part{0}.py", line {0}, in call{0}\n    return inner{0}(x)\n'


@pytest.mark.parametrize(("calls", "cause"), [(2, "programming_error"), (9, "library_defect")])
def test_a_slip_right_below_the_user_s_call_is_the_user_s(
    diagnose: Callable[..., Diagnosis], calls: int, cause: str
) -> None:
    frames = "".join(LIBRARY.format(n) for n in range(calls))
    assert diagnose(BELOW + frames + "KeyError: 'length'\n").root_cause == cause


@pytest.mark.parametrize(
    ("code", "category"),
    [
        ("assert a.shape == b.shape", "tensor_mismatch"),
        ("assert mask.dtype == torch.bool", "type_mismatch"),
        ("assert ready", "illegal_argument"),
    ],
)
def test_a_bare_assertion_is_read_by_its_code(
    diagnose: Callable[..., Diagnosis], code: str, category: str
) -> None:
    trace = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in <module>\n'
    assert diagnose(f"{trace}    {code}\nAssertionError\n").category == category


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("'Linear' object has no attribute 'weights'", "programming_error"),
        ("module 'numpy' has no attribute 'float'", "environment"),
    ],
)
def test_only_a_name_of_a_module_depends_on_its_version(
    diagnose: Callable[..., Diagnosis], message: str, cause: str
) -> None:
    trace = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in <module>\n'
    found = diagnose(f"{trace}    print(model.weights)\nAttributeError: {message}\n")
    assert (found.category, found.root_cause) == ("attribute_not_found", cause)


@pytest.mark.parametrize(
    ("status", "title"),
    [
        (1, "Exit code 1 without a message"),
        (139, "Killed by SIGSEGV without a message"),
        (200, "Exit code 200 without a message"),
    ],
)
def test_only_the_exit_code_of_a_signal_is_named_by_it(
    diagnose: Callable[..., Diagnosis], status: int, title: str
) -> None:
    assert diagnose("step 1\n", Facts(exit_code=status)).title == title


@pytest.mark.parametrize(
    "said",
    [
        "ERROR:trainer:evaluation failed: no checkpoint was better than -inf",
        "2026-11-29 10:00:00,123 - trainer - ERROR - could not build the vocabulary",
    ],
)
def test_the_last_logged_error_says_why_a_program_chose_its_exit_code(
    diagnose: Diagnose, said: str
) -> None:
    found = diagnose(f"{QUIET}{said}\n", Facts(exit_code=3))
    assert found.outcome == "failed"
    assert found.category != "loss_nan"
    assert found.root is not None
    assert found.root.text == said


def test_nothing_is_claimed_of_an_error_that_is_not_recognized(diagnose: Diagnose) -> None:
    log = f"{QUIET}2026-11-29 10:00:00,123 - trainer - ERROR - could not build the vocabulary\n"
    found = diagnose(log, Facts(exit_code=3))
    assert (found.basis, found.root_cause, found.retry) == ("nothing", "unknown", "unknown")
    assert "library" not in " ".join((found.meaning, found.retry_reason, *found.fixes))


@pytest.mark.parametrize(
    ("log", "facts"),
    [
        ("ERROR:cache:not usable\n" + QUIET * 5, Facts(exit_code=3)),
        (QUIET + "ERROR:cache:not usable\n", Facts(exit_code=139)),
        (QUIET + "ERROR:cache:not usable\n", Facts(state="TIMEOUT")),
    ],
)
def test_an_error_that_was_survived_or_a_kill_is_not_explained_by_it(
    diagnose: Diagnose, log: str, facts: Facts
) -> None:
    found = diagnose(log, facts)
    assert found.root is None or "not usable" not in found.root.text


@pytest.mark.parametrize(
    ("function", "message", "category"),
    [
        ("__getitem__", "sequence_length=888 is larger than max_length=768", "corrupt_data"),
        ("__getitem__", "5D images are not supported yet", "not_implemented"),
        ("build", "sequence_length=888 is larger than max_length=768", "not_implemented"),
    ],
)
def test_what_a_data_set_rejects_is_in_the_data(function: str, message: str, category: str) -> None:
    log = f"""\
Traceback (most recent call last):
  File "/job/train.py", line 9, in <module>
    main()
  File "/job/data.py", line 48, in {function}
    raise NotImplementedError(text)
NotImplementedError: {message}
"""
    assert Diagnoser().diagnose([Log("log", text=log.encode())]).category == category
