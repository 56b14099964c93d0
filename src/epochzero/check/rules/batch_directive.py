"""A line with options of the batch system is invalid or ignored."""

from epochzero.check.rule import Claims, JobView, Rule
from epochzero.check.rules.scripts import claim_of, problems_of


def _check(view: JobView) -> Claims:
    for problem in problems_of(view.program, "directive"):
        yield claim_of(
            problem,
            message=problem.text,
            consequence="sbatch: error: the job is not submitted, or ends at once without a log",
            fix="Write the option as described in sbatch(1). If a value depends on a variable, pass the "
            "value on the command line of sbatch.",
        )
    for problem in problems_of(view.program, "volume"):
        yield claim_of(
            problem,
            message=problem.text,
            consequence="The Pod is invalid: spec.containers[0].volumeMounts[0].name: Not found",
            fix="Declare the volume under spec.volumes, or mount one that is declared.",
        )
    for problem in problems_of(view.program, "ignored"):
        yield claim_of(
            problem,
            message=problem.text,
            consequence="No error: the job runs with the defaults of the cluster.",
            fix="Start the line with #SBATCH and place it above the first command.",
        )


RULE = Rule(
    category="illegal_argument",
    why="The shell treats these lines as comments, so a misspelt line causes no error. Slurm "
    "rejects options that it cannot parse, ignores #SBATCH lines after the first command, and "
    "does not expand variables in #SBATCH lines.",
    fix="Start the line with #SBATCH and place it above the first command. Write the options as "
    "in sbatch(1).",
    source="Slurm documentation, sbatch: DESCRIPTION, OPTIONS --time, --mem, and FILENAME PATTERN",
    check=_check,
    examples="""
        $ kubectl apply -f job.yaml
        ==> job.yaml <==
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          volumes:
          - name: results
            emptyDir: {}
          containers:
          - name: main
            image: train
            command: ["python", "train.py"]
            volumeMounts:
            - name: data  # <-
              mountPath: /data
        ==> train.py <==
        print(1)
        ----
        $ kubectl apply -f job.yaml
        ==> job.yaml <==
        apiVersion: apps/v1
        kind: StatefulSet
        metadata: {name: train}
        spec:
          template:
            spec:
              volumes:
              - name: results
                emptyDir: {}
              containers:
              - name: main
                image: train
                command: ["python", "train.py"]
                volumeMounts:
                - name: data
                  mountPath: /data
                - name: results
                  mountPath: /results
          volumeClaimTemplates:
          - metadata: {name: data}
        ==> train.py <==
        print(1)
        ----
        $ sbatch job.slurm
        ==> job.slurm <==
        #!/bin/bash
        #SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out
        python train.py
        ==> train.py <==
        ---- caught if
        -#SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out
        +# SBATCH --gres=gpu:4  # <-
        ---- caught if
        -#SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out
        +cd .
        +#SBATCH --gres=gpu:4  # <-
        ---- caught if
        -#SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out
        +#SBATCH --gpu-per-node=4  # <-
        ---- caught if
        -#SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out
        +#SBATCH --mem=16 GB  # <-
        ---- caught if
        -#SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out
        +#SBATCH --time=24h  # <-
        ---- caught if
        -#SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out
        +#SBATCH --output=$HOME/logs/%j.out  # <-
        ---- ignored if
        -#SBATCH --part=gpu --requeue --job-name='a b' --output=%x-%j.out
        +#SBATCH --time=1-00:00:00 --mem=16GB -N 2-4 -n 8 # a remark
    """,
)
