"""Batch files of Slurm and manifests of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.check.launch import Job, Submission
from epochzero.errors import InputError

Submit = Callable[..., Submission]
One = Callable[..., Job]

BATCH = """\
#!/bin/bash
#SBATCH --job-name=big   # a name
#SBATCH --nodes=4 --ntasks-per-node=1
#SBATCH --gres=gpu:a100:8
#SBATCH --mem=64G
#SBATCH -t 1-12:00:00
#SBATCH -o logs/%j.out
# a remark
#SBATCH --cpus-per-task 12

module load cuda/12.1
#SBATCH --nodes=9
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 \\
    --rdzv_endpoint=$MASTER_ADDR:29500 train.py --name $SLURM_JOB_NAME --rank $SLURM_PROCID
"""


@pytest.mark.parametrize("command", ["sbatch run.slurm", "run.slurm", "./run.slurm"])
def test_a_batch_file_says_what_is_asked_for(one: One, command: str) -> None:
    job = one(command, {"run.slurm": BATCH})
    assert job.launchers == ("sbatch", "srun", "torchrun")
    assert (job.allocation.nodes, job.allocation.processes_per_node, job.allocation.processes) == (
        4,
        8,
        32,
    )
    assert (job.allocation.gpus_per_node, job.allocation.gpus, job.allocation.memory_bytes) == (
        8,
        32,
        64 << 30,
    )
    assert job.allocation.time_limit_s == 36 * 3600
    assert job.argv == ("--name", "big", "--rank", "$SLURM_PROCID")
    assert job.unsure == {3}
    assert job.environment["OMP_NUM_THREADS"] == "12"
    assert job.environment["MASTER_ADDR"] is None
    assert [source.text for source in job.launch_script.writes] == ["logs/%j.out"]
    place = job.argument_sources["--gres"].place
    assert (place.path, place.line, place.code) == ("run.slurm", 4, "#SBATCH --gres=gpu:a100:8")


def test_options_of_sbatch_win_over_those_of_the_file(one: One) -> None:
    job = one("sbatch -N 2 --time=60 run.slurm a", {"run.slurm": BATCH})
    assert (job.allocation.nodes, job.allocation.processes, job.allocation.time_limit_s) == (
        2,
        16,
        3600,
    )
    assert job.argument_sources["--nodes"].place.path == "<command>"


def test_a_batch_file_that_bash_runs_is_only_a_script(submit: Submit) -> None:
    (job,) = submit("bash run.slurm", {"run.slurm": BATCH}).jobs
    assert (job.allocation.nodes, job.allocation.gpus_per_node, job.launchers) == (
        None,
        None,
        ("srun", "torchrun"),
    )


def test_a_batch_job_starts_in_the_folder_it_was_submitted_from(one: One, tmp_path: Path) -> None:
    text = "#!/bin/sh\n#SBATCH -n 8\n#SBATCH --chdir=src\n{}python fit.py $SLURM_NTASKS\n"
    job = one("sbatch jobs/run.sh", {"jobs/run.sh": text.format("")})
    assert (job.folder, job.working_folder, job.argv) == (tmp_path / "src", "src", ("8",))
    back = text.format("cd $SLURM_SUBMIT_DIR/src\n")
    assert one("sbatch jobs/run.sh", {"jobs/run.sh": back}).folder == tmp_path / "src"


def test_tasks_of_an_array_are_one_job_of_which_the_number_is_not_known(submit: Submit) -> None:
    text = "#!/bin/sh\n#SBATCH --array=0-9\npython train.py --seed $SLURM_ARRAY_TASK_ID\n"
    (job,) = submit("sbatch run.sh", {"run.sh": text}).jobs
    assert job.unsure == {1}
    assert job.environment["SLURM_ARRAY_TASK_ID"] is None


def test_a_line_can_be_wrapped(one: One) -> None:
    assert one("sbatch --wrap=./train.py -N 1").allocation.nodes == 1


POD = """\
kind: Pod
spec:
  activeDeadlineSeconds: 3600
  containers:
  - image: registry/image:2
    workingDir: /work
    command: [python, train.py]
    args:
    - --lr=$(LR)
    - --key=$(KEY)
    - $(OTHER)
    env:
    - {name: LR, value: "0.1"}
    - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
    resources:
      limits: {nvidia.com/gpu: 2, memory: 16Gi, cpu: 4}
    volumeMounts:
    - {name: code, mountPath: /work}
    - {name: data, mountPath: /data, readOnly: true}
    - {name: shm, mountPath: /dev/shm}
  volumes:
  - {name: code, hostPath: {path: HERE}}
  - {name: data, persistentVolumeClaim: {claimName: images}}
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}
"""


@pytest.mark.parametrize("command", ["kubectl apply -f pod.yaml", "kubectl -n ns create -f pod.yaml", "pod.yaml"])  # fmt: skip
def test_a_pod_says_what_it_runs_and_may_use(one: One, tmp_path: Path, command: str) -> None:
    job = one(command, {"pod.yaml": POD.replace("HERE", str(tmp_path))})
    assert job.script == tmp_path / "train.py"
    assert job.argv == ("--lr=0.1", "--key=$(KEY)", "$(OTHER)")
    assert job.unsure == {1}
    assert job.environment == {"LR": "0.1", "KEY": None}
    assert (job.allocation.nodes, job.allocation.gpus_per_node, job.allocation.time_limit_s) == (
        1,
        2,
        3600,
    )
    assert (job.allocation.memory_bytes, job.allocation.shared_memory_bytes) == (16 << 30, 8 << 30)
    assert (job.container, job.working_folder) == ("registry/image:2", "/work")
    assert job.mounts == {"/work": str(tmp_path), "/data": "persistentVolumeClaim:images"}
    assert job.read_only == {"/data"}
    assert (job.at.path, job.at.line) == ("pod.yaml", 7)
    assert [place.line for place in job.argv_at] == [9, 10, 11]
    assert job.argument_sources["nvidia.com/gpu"].place.line == 16


TRAINING = """\
apiVersion: v1
kind: Service
---
kind: PyTorchJob
spec:
  nprocPerNode: "4"
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: &pod
        spec:
          containers:
          - image: i
            command: [torchrun, --nproc_per_node=4, train.py]
            resources: {limits: {nvidia.com/gpu: 4}}
    Worker:
      replicas: 3
      template: *pod
---
kind: Job
spec:
  template:
    spec:
      containers:
      - image: i
        command: ["/bin/bash", "-c"]
        args:
        - |
          set -e
          pip install foo
          python evaluate.py
---
kind: RayJob
spec:
  entrypoint: python src/fit.py --x 1
"""


TRAIN_JOB = """\
kind: TrainJob
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    image: train:1
    command: [torchrun, train.py, --lr=1]
    numNodes: 2
    numProcPerNode: 4
    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}
"""


def test_the_trainer_of_a_train_job(submit: Submit) -> None:
    (job,) = submit("kubectl apply -f job.yaml", {"job.yaml": TRAIN_JOB}).jobs
    assert job.argv == ("--lr=1",)
    assert (job.allocation.nodes, job.allocation.gpus) == (2, 8)
    assert (job.container, job.launchers) == ("train:1", ("kubectl", "TrainJob", "torchrun"))
    assert "PET_NODE_RANK" in job.environment


def test_replicas_with_the_same_command_are_one_job(submit: Submit) -> None:
    found = submit("kubectl apply -f all.yaml", {"all.yaml": TRAINING})
    training, evaluation, ray = found.jobs
    assert (training.allocation.nodes, training.allocation.processes, training.allocation.gpus) == (
        4,
        16,
        16,
    )
    assert training.launchers == ("kubectl", "PyTorchJob", "torchrun")
    assert evaluation.at.line == 31
    assert evaluation.launch_script.stops_at_error
    assert [(source.text, source.place.line) for source in evaluation.launch_script.installs] == [
        ("foo", 30)
    ]
    assert ray.argv == ("--x", "1")
    assert training.launch_script.installs == ray.launch_script.installs == ()
    assert "pip" not in [
        source.text for source in (*training.launch_script.programs, *ray.launch_script.programs)
    ]
    assert "pip" in [source.text for source in evaluation.launch_script.programs]


def test_workers_of_an_mpi_job_are_its_nodes(submit: Submit) -> None:
    text = """\
kind: MPIJob
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      template: {spec: {containers: [{image: i, command: [mpirun, -np, "4", python, train.py]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{image: i, resources: {limits: {nvidia.com/gpu: 2}}}]}}
"""
    (job,) = submit("pod.yaml", {"pod.yaml": text}).jobs
    assert (job.allocation.nodes, job.allocation.processes_per_node, job.allocation.processes) == (
        2,
        2,
        4,
    )


def test_a_command_of_the_image_is_not_known(submit: Submit) -> None:
    found = submit(
        "pod.yaml", {"pod.yaml": "kind: Pod\nspec: {containers: [{image: i, args: [a]}]}\n"}
    )
    assert found.jobs == ()
    assert "image" in found.unknowns[0].reason


@pytest.mark.parametrize("text", ["a: [", "\t- x", "kind: {a: &x [*y]}", "x\0y"])
def test_what_is_no_manifest_is_refused(submit: Submit, text: str) -> None:
    with pytest.raises(InputError, match=r"^pod\.yaml(?:: | is not )"):
        submit("kubectl apply -f pod.yaml", {"pod.yaml": text})


def test_a_manifest_without_pods_runs_nothing(submit: Submit) -> None:
    with pytest.raises(InputError, match="runs no Python program"):
        submit("kubectl apply -f x.yaml", {"x.yaml": "kind: Service\nspec: {ports: []}\n"})


def test_a_batch_file_that_submits_another_asks_for_nothing_on_its_behalf(submit: Submit) -> None:
    text = "#!/bin/sh\n#SBATCH -N 4\nsbatch --time=10 --wrap='python train.py'\n"
    (job,) = submit("sbatch run.sh", {"run.sh": text}).jobs
    assert (job.allocation.nodes, job.allocation.time_limit_s) == (None, 600)


def test_a_batch_file_in_a_here_document_is_read(submit: Submit) -> None:
    text = """\
for lr in 0.1 0.2; do
sbatch <<EOF
#!/bin/bash
#SBATCH --nodes=3
export OUT=\\$SLURM_JOB_ID
python train.py --lr $lr
EOF
done
bash -s <<'EOF'
python evaluate.py $lr
EOF
"""
    found = submit("bash sweep.sh", {"sweep.sh": text})
    first, second, third = found.jobs
    assert (first.argv, second.argv) == (("--lr", "0.1"), ("--lr", "0.2"))
    assert (first.allocation.nodes, first.launchers) == (3, ("sbatch",))
    assert (first.at.path, first.at.line) == ("sweep.sh", 6)
    assert (third.argv, third.allocation.nodes, third.at.line) == (("$lr",), None, 10)


PBS = """\
#!/bin/bash
#PBS -N fit
#PBS -l select=2:ncpus=8:ngpus=4:mem=64gb,walltime=24:00:00
#PBS -j oe
cd $PBS_O_WORKDIR
python train.py --job $PBS_JOBID
"""


@pytest.mark.parametrize("command", ["qsub job.pbs", "job.pbs", "qsub -q gpu job.pbs"])
def test_a_batch_file_of_pbs(one: One, command: str) -> None:
    job = one(command, {"job.pbs": PBS})
    assert (job.launchers, job.allocation.nodes, job.allocation.gpus_per_node) == (("qsub",), 2, 4)
    assert (job.allocation.memory_bytes, job.allocation.time_limit_s) == (64 << 30, 86400)
    assert job.unsure == {1}


def test_pbs_starts_in_the_home_folder(submit: Submit) -> None:
    found = submit("qsub job.pbs", {"job.pbs": "#PBS -N fit\npython train.py\n"})
    assert "home directory" in found.unknowns[0].reason
    for cwd in ("#$ -cwd", "#PBS -d ."):
        assert submit("qsub job.pbs", {"job.pbs": f"{cwd}\npython train.py\n"}).unknowns == ()


def test_a_batch_file_of_grid_engine(one: One) -> None:
    text = "#!/bin/bash\n#$ -cwd -l gpu=2,h_rt=3600\n#$ -pe smp 4\n#$ -t 1-3\npython train.py $SGE_TASK_ID\n"
    job = one("qsub job.sge", {"job.sge": text})
    assert (job.allocation.gpus_per_node, job.allocation.time_limit_s, job.unsure) == (2, 3600, {0})


def test_a_batch_file_and_a_command_of_lsf(one: One) -> None:
    text = '#!/bin/bash\n#BSUB -n 4\n#BSUB -W 24:00\n#BSUB -gpu "num=2"\npython train.py\n'
    job = one("bsub job.lsf", {"job.lsf": text})
    assert (
        job.allocation.processes,
        job.allocation.time_limit_s,
        job.allocation.gpus_per_node,
    ) == (4, 86400, 2)
    assert one("bsub -n 2 python train.py --x").argv == ("--x",)


@pytest.mark.parametrize(
    "command",
    [
        "ray job submit --working-dir . -- python train.py --x",
        "colossalai run --nproc_per_node 4 train.py --x",
        "fabric run --devices=4 train.py --x",
        "lightning run model --devices=4 train.py --x",
        "composer -n 4 train.py --x",
        "tune run --nproc_per_node 4 train.py --x",
        "jsrun -n 4 -g 1 python train.py --x",
    ],
)
def test_launchers_of_frameworks_and_systems(one: One, command: str) -> None:
    job = one(command)
    assert job.argv == ("--x",)
    assert job.allocation.processes_per_node in (4, None)


def test_flux_starts_processes_on_nodes(one: One) -> None:
    job = one("flux run -N 2 -n 16 --gpus-per-node 8 python train.py")
    assert (job.allocation.nodes, job.allocation.processes, job.allocation.gpus) == (2, 16, 16)
    assert job.environment["FLUX_JOB_SIZE"] == "16"
