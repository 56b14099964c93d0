"""Programs that stand in the command or in a launch script are read and run like any other."""

from __future__ import annotations

import sys
from pathlib import Path

from epochzero.check import Limits, Target, check

HEREDOC = """\
export WIDTH=3
python - --rate 1 <<'EOF'
from helper import n
print(n, missing)
EOF
"""


def test_a_program_in_a_launch_script_is_read_at_its_lines(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(HEREDOC)
    (tmp_path / "helper.py").write_text("n = 1\n")
    found = check(["bash", "run.sh"], Target("there"), folder=tmp_path)
    (finding,) = found.findings
    assert (finding.rule, finding.place.path) == ("undefined-name", "run.sh")
    assert (finding.place.line, finding.place.column) == (4, 10)
    assert found.files == 2
    assert not found.unknowns


def test_a_finding_in_a_launch_script_is_suppressed_there(tmp_path: Path) -> None:
    said = "print(n, missing)  # epochzero: ignore[undefined-name] set by a hook"
    (tmp_path / "run.sh").write_text(HEREDOC.replace("print(n, missing)", said))
    (tmp_path / "helper.py").write_text("n = 1\n")
    found = check(["bash", "run.sh"], Target("there"), folder=tmp_path)
    assert not found.findings
    assert len(found.suppressed) == 1


def test_a_program_on_the_command_line_is_read(tmp_path: Path) -> None:
    found = check(["python", "-c", "x = 1\nprint(y)"], Target("there"), folder=tmp_path)
    (finding,) = found.findings
    assert (finding.rule, finding.place.path, finding.place.line) == (
        "undefined-name",
        "<command>",
        2,
    )


def test_a_program_that_depends_on_the_run_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("python - <<EOF\nprint($(date), missing)\nEOF\n")
    found = check(["bash", "run.sh"], Target("there"), folder=tmp_path)
    assert not found.findings
    assert ["depends on the run" in one.reason for one in found.unknowns] == [True]


def test_a_program_on_the_command_line_is_run_dry(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(10**6):\n    x = n\nprint(1 / (len(sys.argv) - 2))"
    command = [sys.executable, "-c", code]

    def found(*arguments: str) -> list[tuple[str, str, int]]:
        checked = check(
            [*command, *arguments],
            Target("there"),
            folder=tmp_path,
            select=["dry-run-failed"],
            dry=Limits(seconds=60),
        )
        return [(one.category, one.place.path, one.place.line) for one in checked.findings]

    assert found("one") == [("division_by_zero", "<command>", 4)]
    assert found() == []
