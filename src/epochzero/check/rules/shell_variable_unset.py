"""A launch script uses a variable that nothing sets."""

from dataclasses import replace

from epochzero.check.rule import Claims, JobView, Rule
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(view: JobView) -> Claims:
    for problem in problems_of(view.program, "unset", "root"):
        if problem.text in (view.target.environment or {}):
            continue
        fails = problem.kind == "unset"
        # On other systems another shell submits the job, which may set it.
        sure = problem.certain and fails and view.target.here
        yield claim_of(
            replace(problem, certain=sure),
            message=f"{problem.text} is used, but neither the script nor the environment sets it"
            + (", under `set -u`." if fails else f": ${problem.text}/ is then the root directory."),
            consequence=f"{problem.text}: unbound variable (exit status 1)"
            if fails
            else "No such file or directory, or Permission denied, for a path that begins with /",
            fix=f"Set {problem.text} in the script, or use a default: ${{{problem.text}:-default}}.",
        )


RULE = Rule(
    category="undefined_variable",
    why="Variables such as $DATA and $OUT are often set in a user's shell but not on the platform. "
    "If $OUT is not set, $OUT/model.pt is a file in the root directory.",
    fix="Set the variable in the script, or provide a default with ${NAME:-default}.",
    source="POSIX, Shell Command Language, 2.5.3 Shell Variables and 2.14 set -u",
    check=_check,
    examples="""
        $ bash run.sh
        ==> run.sh <==
        set -u
        python train.py --name $RUN  # <-
        ==> train.py <==
        ---- caught if
        -set -u
        -python train.py --name $RUN  # <-
        +python train.py
        +python train.py --out "${OUT}/model.pt"  # <-
        ---- ignored if
        -set -u
        -python train.py --name $RUN
        +source /etc/site.sh
        +python train.py $OUT/model.pt
        ----
        $ bash run.sh a
        ==> run.sh <==
        set -u
        OUT=out
        if [[ -n "${C:-}" && -d "$C" ]] || [[ -z "${D:-}" || ! -d "$D" ]]; then echo; fi
        python train.py $OUT/a ${B:-b} $1
        ==> train.py <==
        ----
        $ sbatch run.sh
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --array=0-7%4
        set -u
        SEEDS=(1 2 3 4)
        RATES=(1e-3 1e-4)
        RATE=${RATES[$((SLURM_ARRAY_TASK_ID % 2))]}
        python train.py --seed ${SEEDS[$SLURM_ARRAY_TASK_ID]} --rate $RATE  # <-
        ==> train.py <==
        ---- ignored if
        -#SBATCH --array=0-7%4
        +#SBATCH --array=0-3
        ---- ignored if
        -SEEDS=(1 2 3 4)
        +mapfile -t SEEDS < seeds.txt
        ----
        $ OUT=/scratch bash run.sh
        ==> run.sh <==
        python train.py --out $OUT/model.pt
        ==> train.py <==
    """,
)
