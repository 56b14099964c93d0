"""Launch scripts: what the shell makes of their words, and which programs they run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.check.launch import Job, Submission, read_job
from epochzero.errors import InputError

Submit = Callable[..., Submission]
Run = Callable[..., Submission]


@pytest.fixture
def run(submit: Submit) -> Run:
    """Reads ``bash run.sh a "b"`` with the text of the script."""

    def read(text: str, command: str = "bash run.sh a b", **more: str) -> Submission:
        files = {name.replace("_sh", ".sh"): part for name, part in more.items()}
        environment = {"HOME": "/home/me", "GIVEN": "g"}
        return submit(command, {"run.sh": textwrap.dedent(text), **files}, environment)

    return read


def arguments(found: Submission) -> list[tuple[str, ...]]:
    return [job.argv for job in found.jobs]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A=1; python train.py $A '$A' \"$A\"", ("1", "$A", "1")),
        ("A='x y'; python train.py $A \"$A\"", ("x", "y", "x y")),
        ("python train.py ${B:-d} ${GIVEN:-d} ${B-e} ${B:+f} ${GIVEN:+f}", ("d", "g", "e", "f")),
        ("python train.py \"${B:-a b}\" ${B:=c} a\\ b 'a\"b' \"a\\\"b\\$\" $'a\\tb'",
         ("a b", "c", "a b", 'a"b', 'a"b$', "a\tb")),
        ("A=(1 'x y'); A+=(3); python train.py \"${A[@]}\" ${#A[@]} ${A[1]} \"${A[0]}\"",
         ("1", "x y", "3", "3", "x", "y", "1")),
        ("python train.py $1 \"$@\" $# ${3:-none} --x=$2", ("a", "a", "b", "2", "none", "--x=b")),
        ("shift; python train.py \"$@\"", ("b",)),
        ("set -- x y z; shift 2; python train.py \"$@\" $#", ("z", "1")),
        ("python train.py $((2 * (3 + 1))) $(basename /a/b.c .c) $(dirname /a/b.c)", ("8", "b", "/a")),
        ("A=a.tar.gz; python train.py ${A%.gz} ${A%%.*} ${A#*.} ${A/tar/zip} ${A^^}",
         ("a.tar", "a", "tar.gz", "a.zip.gz", "A.TAR.GZ")),
        ("python train.py {1..3} a{x,y}", ("1", "2", "3", "ax", "ay")),
        ("python train.py --a 1 \\\n    --b 2 \\\n    # no more", ("--a", "1", "--b", "2")),
        ("python train.py ~/data", ("/home/me/data",)),
        ("A=1; python train.py \"$A  $A ${A} $((A+1)) ${#A} ${A:-x}\" \"$A\n $A\"", ("1  1 1 2 1 1", "1\n 1")),
        ("python train.py \"${@:2}\" ${@:1:1}", ("b", "a")),
        ("A=(1 2 3); python train.py \"${A[@]:1}\" ${A[@]:0:2}", ("2", "3", "1", "2")),
        ("EMPTY=; python train.py $EMPTY \"$EMPTY\" x", ("", "x")),
        ("f() { local n=$1; shift; python \"$@\" $n; }; f 7 train.py x", ("x", "7")),
        ("eval \"python train.py 'a b'\"", ("a b",)),
        ("exec python train.py x; python evaluate.py", ("x",)),
        ("read_all() { return; python evaluate.py; }; read_all; python train.py x", ("x",)),
        ("python train.py \"x\ny\"", ("x\ny",)),
    ],
)  # fmt: skip
def test_words_become_what_the_shell_makes_of_them(
    run: Run, line: str, expected: tuple[str, ...]
) -> None:
    found = run(line)
    assert found.unknowns == ()
    (job,) = found.jobs
    assert job.argv == expected
    assert not job.unsure
    assert job.complete
    assert job.certain


@pytest.mark.parametrize(
    "word", ["$(date)", "$NOWHERE", "${A[2]}", "*.txt", "`hostname`", "$?", "$RANDOM", "a$(id -u)b"]
)
def test_what_only_the_run_knows_is_not_guessed(run: Run, word: str) -> None:
    (job,) = run(f"python train.py --a {word} --b 1").jobs
    assert job.argv == ("--a", word, "--b", "1")
    assert job.unsure == {1}


def test_a_word_that_is_not_known_may_be_several_only_without_quotes(run: Run) -> None:
    assert not run("python train.py $(cat args)").jobs[0].complete
    assert run('python train.py "$(cat args)"').jobs[0].complete


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if [ $1 = a ]; then python train.py yes; else python train.py no; fi", [("yes",)]),
        ("if [[ $1 == b* || -z $2 ]]; then python train.py yes; fi; python train.py x", [("x",)]),
        ("[ $# -eq 2 ] && python train.py yes || exit 1", [("yes",)]),
        ("if (( $# > 2 )); then python train.py yes; elif test $1 = a; then python train.py b; fi",
         [("b",)]),
        ("case $1 in b|c) python train.py no;; a) python train.py yes;; *) exit;; esac", [("yes",)]),
        ("for s in 1 2; do python train.py $s; done", [("1",), ("2",)]),
        ("for s in $(seq 2 3); do python train.py $s; done", [("2",), ("3",)]),
        ("for s; do python train.py $s; done", [("a",), ("b",)]),
        ("for s in 1 2 3; do [ $s = 2 ] && continue; python train.py $s; done", [("1",), ("3",)]),
        ("while [[ $# -gt 0 ]]; do case $1 in a) X=1;; b) Y=2;; esac; shift; done; "
         "python train.py $X $Y", [("1", "2")]),
        ("true && python train.py 1; false && python train.py 2; false || python train.py 3",
         [("1",), ("3",)]),
        ("test -z \"$1\" || python train.py 1; test -n \"$1\" && python train.py 2", [("1",), ("2",)]),
        ("! false && python train.py x", [("x",)]),
        ("A=1; (A=2; python train.py $A); python train.py $A", [("2",), ("1",)]),
        ("A=1; A=2 python train.py $A; python train.py $A", [("1",), ("1",)]),
    ],
)  # fmt: skip
def test_conditions_and_loops_of_constants_are_followed(
    run: Run, text: str, expected: list[tuple[str, ...]]
) -> None:
    found = run(text)
    assert arguments(found) == expected
    assert all(job.certain for job in found.jobs)


def test_where_a_condition_is_not_known_both_ways_are_read(run: Run) -> None:
    found = run(
        """
        if [ -f best.pt ]; then MODE=resume; python train.py resume; else MODE=start; fi
        python train.py $MODE
        command -v nvidia-smi || python evaluate.py
        """
    )
    first, second, third = found.jobs
    assert (first.argv, first.certain) == (("resume",), False)
    assert (second.certain, second.unsure) == (True, {0})
    assert not third.certain


def test_a_guard_that_may_end_the_script_leaves_the_rest_certain(run: Run) -> None:
    found = run('cd src || exit 1\n[ -d data ] || { echo no; exit 1; }\npython fit.py "$1"')
    assert [(job.argv, job.certain) for job in found.jobs] == [(("a",), True)]


def test_folders_are_followed(run: Run, tmp_path: Path) -> None:
    found = run(
        """
        here="$(cd "$(dirname "${BASH_SOURCE[0]}")" &> /dev/null && pwd)"
        (cd src && python fit.py)
        cd "$here/src"
        python fit.py --root $here
        cd ..
        python train.py
        """
    )
    assert found.unknowns == ()
    assert [job.folder for job in found.jobs] == [tmp_path / "src", tmp_path / "src", tmp_path]
    assert found.jobs[1].argv == ("--root", str(tmp_path))
    assert [source.text for source in found.jobs[1].launch_script.entered] == [f"{tmp_path}/src"]


def test_a_folder_that_is_not_here_leaves_the_script_to_its_copy(run: Run, tmp_path: Path) -> None:
    found = run("cd /mnt/nowhere/$1\npython train.py\n")
    assert [job.script for job in found.jobs] == [tmp_path / "train.py"]
    (entered,) = found.jobs[0].launch_script.entered
    assert (entered.text, entered.place.line) == ("/mnt/nowhere/a", 1)
    assert "not on this machine" in found.unknowns[0].reason


def test_what_is_exported_reaches_the_program(run: Run) -> None:
    found = run(
        """
        export A=1 B="$A.5" C
        D=4
        C=3
        export E=$(date)
        export F=6; unset F
        NOW=1 python train.py
        bash inner.sh
        """,
        inner_sh="python evaluate.py $A $D\n",
    )
    outer, inner = found.jobs
    assert outer.environment == {"A": "1", "B": "1.5", "C": "3", "E": None, "NOW": "1"}
    assert inner.environment == {"A": "1", "B": "1.5", "C": "3", "E": None}
    assert inner.argv == ("1", "$D")


def test_sourced_files_of_the_folder_are_read(run: Run) -> None:
    text = ". ./env.sh\nsource /etc/profile\npython train.py $LR\n"
    found = run(text, env_sh="LR=0.1\nexport SEED=3\n")
    assert arguments(found) == [("0.1",)]
    assert found.jobs[0].environment == {"SEED": "3"}
    assert [unknown.what for unknown in found.unknowns] == ["`source /etc/profile`"]


def test_environments_and_installs_are_noted(run: Run) -> None:
    found = run(
        """
        module load cuda/12.1
        source venv/bin/activate
        conda activate train
        pip install -r requirements.txt
        python -m pip install --user foo==1
        python train.py
        pip install later
        """
    )
    (job,) = found.jobs
    assert [source.text for source in job.launch_script.activated] == [
        "module load cuda/12.1", "source venv/bin/activate", "conda activate train",
    ]  # fmt: skip
    assert [source.text for source in job.launch_script.installs] == [
        "-r requirements.txt",
        "--user foo==1",
    ]
    assert job.launch_script.installs[1].place.line == 6


def test_programs_and_places_that_are_written_are_noted(run: Run) -> None:
    found = run(
        """
        set -euo pipefail
        mkdir -p logs "out/$1"
        ffmpeg -i a.mp4 b.wav
        torchrun train.py 2>&1 | tee logs/train.log
        cat > conf.yaml <<EOF
        lr: 1
        EOF
        ./score.sh > out/score.txt 2> /dev/null
        cat <<'EOF' | tee notes.txt > /dev/null
        x
        EOF
        [ -f x ] && rare
        cd src; python fit.py >> all.log
        """,
        score_sh="echo 1\n",
    )
    job = found.jobs[0]
    assert job.launch_script.stops_at_error
    assert [source.text for source in job.launch_script.programs] == [
        "mkdir", "ffmpeg", "torchrun", "tee", "cat", "./score.sh", "cat", "tee",
    ]  # fmt: skip
    assert [source.text for source in job.launch_script.makes] == ["logs", "out/a"]
    written = [source.text for source in job.launch_script.writes]
    assert written[:4] == ["logs/train.log", "conf.yaml", "out/score.txt", "notes.txt"]
    assert written[4].endswith("src/all.log")


def test_places_carry_the_line_of_the_script(run: Run) -> None:
    (job,) = run("\n\ntorchrun \\\n  --nproc_per_node=2 \\\n  train.py \\\n  --lr 1\n").jobs
    assert (job.at.path, job.at.line, job.at.code) == ("run.sh", 5, "train.py \\")
    assert [place.line for place in job.argv_at] == [6, 6]
    assert job.argument_sources["--nproc_per_node"].place.line == 4


def test_text_given_to_a_shell_is_read(run: Run) -> None:
    found = run(
        "bash -c \"python train.py $1\"\nsudo sh -ec '\n  python evaluate.py $0 $1\n' x y\n"
    )
    assert arguments(found) == [("a",), ("x", "y")]
    assert [job.at.line for job in found.jobs] == [1, 3]
    assert found.jobs[1].launch_script.stops_at_error


def test_a_script_that_is_not_there_is_told_with_the_nearest(run: Run, tmp_path: Path) -> None:
    found = run("python src/fti.py\npython train.py\n")
    wrong, right = found.jobs
    assert wrong.script == tmp_path / "src" / "fti.py"
    assert wrong.fault == "src/fti.py does not exist in src; did you mean src/fit.py?"
    assert (wrong.at.path, wrong.at.line) == ("run.sh", 1)
    assert right.fault == ""


def test_a_script_that_may_be_fetched_first_is_not_known(run: Run) -> None:
    found = run("git clone https://example.org/x\ncd x\npython run_all.py\n")
    assert found.jobs == ()
    assert any("run_all.py" in unknown.what for unknown in found.unknowns)


@pytest.mark.parametrize("line", ["cat > made.py <<EOF\npass\nEOF", "echo pass | tee made.py"])
def test_a_script_that_the_launch_script_writes_is_not_missing(run: Run, line: str) -> None:
    found = run(f"{line}\npython made.py\n")
    assert found.jobs == ()
    assert [unknown.what for unknown in found.unknowns] == ["the script made.py"]


def test_an_interpreter_in_a_variable_is_one(run: Run) -> None:
    found = run('"$PYTHON" train.py 1\n$(which python) train.py 2\nPY=python3; $PY train.py 3\n')
    assert arguments(found) == [("1",), ("2",), ("3",)]
    assert [job.program for job in found.jobs] == ["$PYTHON", "$(which python)", "python3"]


def test_what_does_not_parse_is_said_and_the_rest_is_not_certain(run: Run) -> None:
    found = run(
        "echo x\nfor s in 1 2; do\n    python train.py\n\nelse\n    python train.py 0\nfi\n"
    )
    (problem,) = found.jobs[0].launch_script.problems
    assert (problem.kind, problem.place.line) == ("syntax", 5)
    assert "`else'" in problem.text
    assert not any(job.certain for job in found.jobs)


def test_the_rest_of_an_endless_script_is_not_followed(run: Run) -> None:
    found = run("for s in {1..100}; do for t in 1 2; do python train.py $s $t; done; done\n")
    assert len(found.jobs) == 100
    assert found.unknowns[0].what == "the rest of the script"


def test_the_same_program_started_again_in_the_same_way_is_one_job(run: Run) -> None:
    assert len(run("for s in 1 2 3; do python train.py; done").jobs) == 1


def test_a_batch_variable_is_not_set_on_a_laptop(submit: Submit) -> None:
    script = {"run.sh": "python train.py ${SLURM_NNODES:-1}\n"}
    (job,) = submit("bash run.sh", script, {}).jobs
    assert job.argv == ("1",)
    (unknown,) = submit("srun bash run.sh", script, {}).jobs
    assert unknown.unsure == {0}


def test_results_cannot_be_changed(run: Run) -> None:
    job: Job = run("python train.py").jobs[0]
    with pytest.raises(AttributeError):
        job.module = "other"  # type: ignore[misc]


@pytest.mark.parametrize("text", ["exit 0; python train.py", "echo python train.py", "", "cd src"])
def test_a_script_that_runs_no_python_is_refused(run: Run, text: str) -> None:
    with pytest.raises(InputError, match=r"`bash run\.sh a b` runs no Python program"):
        run(text)


def test_a_command_in_a_variable_is_read_though_a_part_is_not_known(run: Run) -> None:
    found = run(
        """
        HEAD=$(scontrol show hostnames | head -n 1)
        NODES=2
        DISTRIBUTED="--nnodes $NODES --nproc_per_node=8 \\
            --rdzv_endpoint $HEAD:29500"
        LAUNCHER="torchrun $DISTRIBUTED"
        LAUNCHER+=" --max_restarts 0"
        ARGS=(--name "my run" --host $HEAD)
        CMD="train.py --lr 1"
        $LAUNCHER $CMD "${ARGS[@]}"
        srun bash -c "$LAUNCHER --node_rank \\$SLURM_PROCID $CMD"
        eval "$LAUNCHER $CMD"
        """
    )
    first, second, third = found.jobs
    assert (first.allocation.nodes, first.allocation.processes) == (2, 16)
    assert first.argv == ("--lr", "1", "--name", "my run", "--host", first.argv[-1])
    assert first.unsure == {5}
    assert (second.launchers, second.argv) == (("srun", "torchrun"), ("--lr", "1"))
    assert (third.argv, third.allocation.processes) == (("--lr", "1"), 16)
    assert found.unknowns == ()


def test_what_a_launcher_sets_is_seen_by_the_script_that_it_starts(run: Run) -> None:
    (job,) = run(
        "srun -n 4 bash -c 'python train.py --world $SLURM_NTASKS --id $SLURM_PROCID'"
    ).jobs
    assert job.argv[:2] == ("--world", "4")
    assert job.unsure == {3}


def test_what_other_machines_or_programs_start_is_said_not_to_be_followed(run: Run) -> None:
    found = run('ssh node2 "python train.py"\nfind . -name x | xargs -n1 python train.py\n')
    assert found.jobs == ()
    assert [unknown.what for unknown in found.unknowns] == ["`ssh`", "`xargs`"]


def problems(found: Submission) -> list[tuple[str, int, str, bool]]:
    return [
        (one.kind, one.place.line, one.text, one.certain)
        for one in found.jobs[0].launch_script.problems
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("set -u\npython train.py $A\n", [("unset", 2, "A", True)]),
        ("set -eu -o pipefail\npython train.py ${A}\n", [("unset", 2, "A", True)]),
        ("set -u\nset +u\npython train.py $A\n", []),
        ("set -u\npython train.py ${A:-a} $GIVEN $? $1 \"$@\"\n", []),
        ("set -u\n[ -f x ] && echo $A\npython train.py\n", [("unset", 2, "A", False)]),
        ("set -u\nread A\nfor B in 1; do python train.py $A $B; done\n", []),
        ("set -u\nsource /etc/profile\npython train.py $A\n", []),
        ("set -u\nmodule load cuda\npython train.py $CUDA_HOME\n", []),
        ("python train.py $A a/$A/b $GIVEN/b\n", []),
        ("python train.py $A/b\n", [("root", 1, "A", True)]),
        ("set -e\npython train.py | tee log\n", [("pipe", 2, "tee", False)]),
        ("set -e\nset -o pipefail\npython train.py | tee log\n", []),
        ("python train.py \\ \n  --lr 1\n", [("option", 2, "--lr", True)]),
        ("python train.py\necho \"it is\n", [("syntax", 2, "unexpected EOF while looking for matching "
          "`\"'", True)]),
        ("python train.py --name a\r\n", [("line ends", 1, "run.sh", False)]),
        ("python train.py\r\n", [("line ends", 1, "run.sh", True)]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_script(run: Run, text: str, expected: list[object]) -> None:
    assert problems(run(text)) == expected


@pytest.mark.parametrize(
    ("first", "mode", "expected"),
    [
        ("#!/usr/bin/env python3\n", 0o644, [("mode", 1, "./fit.py", True)]),
        ("import os\n", 0o755, [("first line", 1, "./fit.py", True)]),
        ("#!/usr/bin/env python3\r\n", 0o755, [("line ends", 1, "./fit.py", True)]),
        ("#!/usr/bin/env python3\n", 0o755, [("interpreter", 1, "python3", True)]),
        (
            "#!/opt/conda/bin/python -u\n",
            0o755,
            [("interpreter", 1, "/opt/conda/bin/python", True)],
        ),
    ],
)
def test_a_script_that_is_run_by_its_name(
    tmp_path: Path, first: str, mode: int, expected: list[object]
) -> None:
    (tmp_path / "fit.py").write_text(first)
    (tmp_path / "fit.py").chmod(mode)
    (tmp_path / "run.sh").write_text("./fit.py\n")
    assert problems(read_job(["bash", "run.sh"], tmp_path)) == expected
    alone = read_job(["./fit.py"], tmp_path).jobs[0].launch_script.problems
    assert not any(one.certain for one in alone)


def test_what_a_batch_script_leaves_in_the_background(submit: Submit) -> None:
    for text, expected in (
        ("python train.py &\n", [("background", 1, "python train.py", True)]),
        ("python train.py &\nsrun hostname\n", [("background", 1, "python train.py", False)]),
        ("python train.py &\nwait\n", []),
        ("python train.py\nnvidia-smi &\n", []),
    ):
        assert problems(submit("sbatch job.slurm", {"job.slurm": text})) == expected
    assert problems(submit("bash job.slurm", {"job.slurm": "python train.py &\n"})) == []


def test_problems_of_scripts_that_run_no_program_are_kept(submit: Submit) -> None:
    read = submit("bash run.sh", {"run.sh": "if true; then\necho 1\n"})
    (job,) = read.jobs
    assert not job.is_program
    assert [one.kind for one in job.launch_script.problems] == ["syntax"]
