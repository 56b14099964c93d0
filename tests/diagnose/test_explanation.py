"""An earlier line that tells the reason of an error is the root cause."""

from __future__ import annotations

import pytest

from epochzero.diagnose import Diagnoser
from epochzero.logs.source import Log

IMPORT = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 7, in <module>\n'
    "    from data_tools.readers import ShardReader\n"
    "ModuleNotFoundError: No module named 'data_tools'\n"
)
OPEN = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 9, in <module>\n'
    "    index = json.load(open(path))\n"
    "FileNotFoundError: [Errno 2] No such file or directory: '/local/sets/birds/index.json'\n"
)


@pytest.mark.parametrize(
    ("steps", "failure", "line", "category"),
    [
        (
            "Cloning into 'data-tools'...\nfatal: unable to access "
            "'https://git.example.org/ml/data-tools.git/': Could not resolve host: git.example.org\n",
            IMPORT, 2, "communication_failure",
        ),
        ("job.sh: line 4: conda: command not found\n", IMPORT, 1, "library_not_found"),
        (
            "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'needs.txt'\n",
            IMPORT, 1, "path_not_found",
        ),
        (
            'rsync: [Receiver] mkdir "/local/sets/birds" failed: Permission denied (13)\n',
            OPEN, 1, "permission_denied",
        ),
        (
            "+ curl -fSLO https://data.example.org/birds.tar\n"
            "curl: (6) Could not resolve host: data.example.org\n"
            "tar: birds.tar: Cannot open: No such file or directory\n",
            OPEN, 2, "communication_failure",
        ),
        (
            "+ wget -q https://data.example.org/all-2024.zip\n"
            "unzip:  cannot find or open all-2024.zip, all-2024.zip.zip or all-2024.zip.ZIP.\n",
            OPEN, 2, "path_not_found",
        ),
        (
            "fatal error: An error occurred (403) when calling the HeadObject operation: Forbidden\n",
            OPEN, 1, "permission_denied",
        ),
    ],
)  # fmt: skip
def test_the_step_that_should_have_provided_it_is_the_root(
    steps: str, failure: str, line: int, category: str
) -> None:
    found = Diagnoser().diagnose([Log("job.log", text=(steps + failure).encode())])
    assert found.root
    assert (found.root.line, found.category) == (line, category)
    assert any(
        "ModuleNotFoundError" in c.text or "FileNotFoundError" in c.text for c in found.cascade
    )


@pytest.mark.parametrize(
    ("steps", "failure"),
    [
        ("job.sh: line 4: nvidia-smi: command not found\n", IMPORT),
        (
            "fatal: unable to access 'https://git.example.org/ml/other.git/': Could not resolve host: git.example.org\n",
            IMPORT,
        ),
        ("ls: cannot access '/local/sets/birds': No such file or directory\n", OPEN),
        ('rsync: [Receiver] mkdir "/local/sets/fish" failed: Permission denied (13)\n', OPEN),
    ],
)
def test_another_complaint_is_not(steps: str, failure: str) -> None:
    found = Diagnoser().diagnose([Log("job.log", text=(steps + failure).encode())])
    assert found.root
    assert found.root.line == 5


def test_a_warning_that_names_it_is_shown_as_a_note() -> None:
    warning = (
        "WARNING: Skipping mount /local/sets [binds]: /local/sets doesn't exist in container\n"
    )
    found = Diagnoser().diagnose([Log("job.log", text=(warning + OPEN).encode())])
    assert found.root
    assert found.root.line == 5
    assert found.notes == (f"job.log:1 may explain it: {warning.strip()}",)
    assert not Diagnoser().diagnose([Log("job.log", text=OPEN.encode())]).notes


METRIC = (
    "epoch 2 validation\n"
    "Traceback (most recent call last):\n"
    '  File "train.py", line 70, in validate\n'
    "    auc = roc_auc_score(labels, scores)\n"
    "ValueError: Input contains NaN.\n"
)


def test_nan_in_a_metric_after_a_loss_that_was_nan() -> None:
    losses = "step 10 loss 2.1\nstep 20 loss 9.7\nstep 30 loss nan\nstep 40 loss nan\n"
    found = Diagnoser().diagnose([Log("job.log", text=(losses + METRIC).encode())])
    assert found.root
    assert (found.root.line, found.category) == (3, "loss_nan")
    recovered = losses.replace("40 loss nan", "40 loss 2.0") + "step 50 loss 1.9\n" + METRIC
    assert (
        Diagnoser().diagnose([Log("job.log", text=recovered.encode())]).category == "corrupt_data"
    )
    healthy = losses.replace("nan", "2.0") + METRIC
    assert Diagnoser().diagnose([Log("job.log", text=healthy.encode())]).category == "corrupt_data"


def test_the_kernels_report_explains_the_error_of_the_program() -> None:
    log = (
        "n02: step 991 loss 1.2\n"
        "n02: kernel: NVRM: Xid (PCI:0000:4e:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
        "n02: RuntimeError: CUDA error: unspecified launch failure\n"
    )
    found = Diagnoser().diagnose([Log("job.log", text=log.encode())])
    assert found.root
    assert (found.root.line, found.signature) == (2, "cuda/xid-79")
