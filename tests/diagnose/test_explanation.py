"""What is missing because an earlier step failed: the step is the root cause."""

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
