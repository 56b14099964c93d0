"""Command lines: Python itself, and what stands in front of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero import launchers
from epochzero.check.launch import Job, Submission, read_job
from epochzero.errors import InputError

Submit = Callable[..., Submission]
One = Callable[..., Job]


def test_what_python_is_told_in_front_of_the_script_is_not_for_the_script(one: One) -> None:
    job = one("/opt/conda/bin/python3.11 -u -W ignore -Xdev -OO train.py --lr 0.1 -m x")
    assert job.script is not None
    assert (job.script.name, job.argv) == ("train.py", ("--lr", "0.1", "-m", "x"))
    assert job.program == "/opt/conda/bin/python3.11"
    assert job.launchers == ()


@pytest.mark.parametrize(
    ("command", "module", "script"),
    [
        ("python -m package.main", "package.main", "package/main.py"),
        ("python -um package", "package", "package/__main__.py"),
        ("python -mpackage.main", "package.main", "package/main.py"),
        ("torchrun -m package.main", "package.main", "package/main.py"),
        ("coverage run -m package.main", "package.main", "package/main.py"),
        ("python package", "", "package/__main__.py"),
        ("python -m lightning.fabric", "lightning.fabric", None),
    ],
)
def test_modules_are_found_where_python_finds_them(
    one: One, tmp_path: Path, command: str, module: str, script: str | None
) -> None:
    job = one(command)
    assert job.module == module
    assert job.script == (tmp_path / script if script else None)


@pytest.mark.parametrize(
    "command",
    [
        "env A=1 python train.py --lr 1",
        "A=1 python train.py --lr 1",
        "nohup nice -n 5 env A=1 python train.py --lr 1",
        "env -u B A=1 timeout -k 9 2h python train.py --lr 1",
        "time -p env A=1 python train.py --lr 1",
        "numactl --cpunodebind=0 -m 0 env A=1 python train.py --lr 1",
        "stdbuf -oL -eL env A=1 python train.py --lr 1",
        "xvfb-run -a -s x env A=1 python train.py --lr 1",
        "taskset -c 0-3 env A=1 python train.py --lr 1",
        "sudo -u me A=1 python train.py --lr 1",
        "env A=1 uv run --with torch python train.py --lr 1",
        "env A=1 uv run train.py --lr 1",
        "env A=1 poetry run python train.py --lr 1",
        "env A=1 pipenv run python train.py --lr 1",
        "env A=1 conda run --no-capture-output -n e python train.py --lr 1",
        "env A=1 nsys profile -t cuda,nvtx -o out python train.py --lr 1",
        "env A=1 ncu --set full -o out python train.py --lr 1",
        "env A=1 kernprof -l -o out train.py --lr 1",
        "env A=1 coverage run --source package train.py --lr 1",
        "env A=1 python -m cProfile -s time train.py --lr 1",
        "env A=1 ipython train.py --lr 1",
        "A=1 ./train.py --lr 1",
    ],
)
def test_prefixes_are_passed(one: One, command: str) -> None:
    job = one(command)
    assert job.script is not None
    assert (job.script.name, job.argv, job.environment) == ("train.py", ("--lr", "1"), {"A": "1"})
    assert job.certain


@pytest.mark.parametrize(
    ("command", "nodes", "each", "every"),
    [
        ("python train.py", None, None, None),
        ("torchrun train.py", 1, 1, 1),
        ("torchrun --standalone --nproc-per-node 4 train.py", 1, 4, 4),
        ("torchrun --nnodes=2 --nproc_per_node=8 --rdzv-id x train.py", 2, 8, 16),
        ("torchrun --nnodes=1:4 --nproc-per-node=8 train.py", None, 8, None),
        ("torchrun --nproc-per-node=gpu train.py", 1, None, None),
        ("python -m torch.distributed.launch --nproc_per_node=2 train.py", 1, 2, 2),
        ("accelerate launch --num_processes 8 --num_machines 2 train.py", 2, 4, 8),
        ("accelerate launch --multi_gpu --mixed_precision bf16 train.py", None, None, None),
        ("python -m accelerate.commands.launch --num_processes=2 train.py", None, None, 2),
        ("deepspeed --num_nodes 2 --num_gpus 4 train.py --deepspeed", 2, 4, 8),
        ("deepspeed --include a@b:0,1 train.py", 2, None, None),
        ("deepspeed --include a:0,1@b:2,3 train.py", 2, 2, 4),
        ("horovodrun -np 4 -H a:2,b:2 python train.py", 2, 2, 4),
        ("mpirun -np 8 -npernode 4 --mca btl tcp -x A python train.py", 2, 4, 8),
        ("mpiexec -n 8 --map-by ppr:2:node python train.py", 4, 2, 8),
        ("srun -N2 --ntasks-per-node=4 python train.py", 2, 4, 8),
        ("srun --nodes 2 -n 8 python train.py", 2, 4, 8),
        ("srun -N 2 --ntasks-per-node 1 torchrun --nproc_per_node 8 train.py", 2, 8, 16),
    ],
)
def test_processes_are_counted(
    one: One, command: str, nodes: int | None, each: int | None, every: int | None
) -> None:
    job = one(command)
    assert (job.allocation.nodes, job.allocation.processes_per_node, job.allocation.processes) == (
        nodes,
        each,
        every,
    )


def test_a_launcher_sets_the_world_size(one: One) -> None:
    job = one("torchrun --nnodes=2 --nproc_per_node=8 train.py")
    assert job.environment["WORLD_SIZE"] == "16"
    assert job.environment["LOCAL_RANK"] is None


def test_launcher_arguments_keep_their_place_under_one_name(one: One) -> None:
    job = one("srun -N 2 torchrun --nproc-per-node 8 train.py")
    assert job.argument_sources["--nproc_per_node"].text == "8"
    assert job.argument_sources["srun --nodes"].text == "2"
    place = job.argument_sources["--nproc_per_node"].place
    assert (place.path, place.code[place.column - 1 :]) == ("<command>", "8 train.py")


def test_options_that_nobody_listed_do_not_hide_the_script(one: One) -> None:
    assert one("torchrun --brand-new-switch train.py --x").argv == ("--x",)
    assert one("torchrun --brand-new-option 3 train.py --x").argv == ("--x",)


def test_dashes_after_the_script_of_a_launcher_are_not_an_argument(one: One) -> None:
    assert one("torchrun --nproc_per_node=8 -m package.main -- --x").argv == ("--x",)
    assert one("accelerate launch train.py -- --x").argv == ("--x",)
    assert one("python train.py -- --x").argv == ("--", "--x")


def test_a_configuration_of_accelerate_counts_the_processes(one: One) -> None:
    config = {"conf/a.yaml": "# mine\nnum_machines: 2\nnum_processes: 16\nmixed_precision: fp16\n"}
    job = one("accelerate launch --config_file conf/a.yaml train.py", config)
    assert (job.allocation.nodes, job.allocation.processes, job.allocation.processes_per_node) == (
        2,
        16,
        8,
    )
    place = job.argument_sources["--num_processes"].place
    assert (place.path, place.line) == ("conf/a.yaml", 3)
    command = "accelerate launch --num_processes 4 --config_file conf/a.yaml train.py"
    assert one(command, config).allocation.processes == 4


def test_accelerate_passes_on_what_its_configuration_says(one: One) -> None:
    sharded = "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n"
    job = one("accelerate launch --config_file a.yaml train.py", {"a.yaml": sharded})
    passed = {
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": "2",
        "ACCELERATE_MIXED_PRECISION": "bf16",
    }
    assert passed.items() <= job.environment.items()
    divided = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
    command = "accelerate launch --config_file a.yaml --gradient_accumulation_steps 4 train.py"
    passed = {
        "ACCELERATE_USE_DEEPSPEED": "true",
        "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3",
        "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4",
    }
    assert passed.items() <= one(command, {"a.yaml": divided}).environment.items()
    plain = one("accelerate launch --zero_stage 3 train.py").environment
    assert not plain.keys() & (passed.keys() | {"ACCELERATE_USE_FSDP"})


def test_the_processes_of_one_node_count_where_the_nodes_are_not_known(one: One) -> None:
    assert one("deepspeed --num_gpus 4 train.py").ranks == 4
    assert one("deepspeed --num_nodes 2 --num_gpus 4 train.py").ranks == 8
    assert one("python train.py").ranks == 1


def test_a_hostfile_of_deepspeed_counts_the_nodes(one: One) -> None:
    hosts = {"hosts": "# ours\na slots=4\nb slots=4\n"}
    job = one("deepspeed --hostfile hosts train.py", hosts)
    assert (job.allocation.nodes, job.allocation.processes_per_node) == (2, 4)


@pytest.mark.parametrize(
    ("options", "gpus"),
    [
        ("--gres=gpu:4", 4),
        ("--gres=gpu:a100:8,shard:2", 8),
        ("--gres=gpu", 1),
        ("--gres=tmp:4", None),
        ("--gpus-per-node=h100:2", 2),
        ("-N 2 --gpus=8", 4),
        ("--gpus=8", None),
    ],
)
def test_gpus_are_those_asked_for_on_a_node(one: One, options: str, gpus: int | None) -> None:
    assert one(f"srun {options} python train.py").allocation.gpus_per_node == gpus


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 1800), ("30:15", 1815), ("2:00:00", 7200), ("1-12", 129600), ("1-0:30", 88200), ("0", None)],
)  # fmt: skip
def test_times_of_slurm(one: One, text: str, seconds: int | None) -> None:
    assert one(f"srun --time={text} python train.py").allocation.time_limit_s == seconds


def test_the_shorter_of_two_limits_counts(one: One) -> None:
    assert one("srun -t 60 timeout 90s python train.py").allocation.time_limit_s == 90
    assert one("srun -t 1 timeout 1h python train.py").allocation.time_limit_s == 60


def test_a_container_sees_its_mounts(submit: Submit, tmp_path: Path) -> None:
    found = submit(
        f"docker run --rm -it --gpus 2 --shm-size=8g -m 32g -v {tmp_path}/src:/work "
        "-v /data:/data:ro --mount type=bind,source=/a,target=/b,readonly -w /work -e A=1 -e B "
        "--env-file secrets image:1 python fit.py --data /data"
    )
    assert found.unknowns == ()
    (job,) = found.jobs
    assert job.script == tmp_path / "src" / "fit.py"
    assert job.folder == tmp_path / "src"
    assert (job.container, job.working_folder) == ("image:1", "/work")
    assert job.mounts == {"/work": f"{tmp_path}/src", "/data": "/data", "/b": "/a"}
    assert job.read_only == {"/data", "/b"}
    assert job.environment == {"A": "1"}
    assert (
        job.allocation.gpus_per_node,
        job.allocation.shared_memory_bytes,
        job.allocation.memory_bytes,
    ) == (2, 8 << 30, 32 << 30)


def test_a_script_in_an_image_is_looked_for_here_and_that_is_said(
    submit: Submit, tmp_path: Path
) -> None:
    found = submit("podman run image python /app/src/fit.py")
    assert [job.script for job in found.jobs] == [tmp_path / "src" / "fit.py"]
    assert "src/fit.py is assumed to be its copy" in found.unknowns[0].reason
    assert submit("docker run image python /app/other.py").jobs == ()
    assert submit("docker run image").unknowns


def test_singularity_sees_the_current_folder(one: One) -> None:
    job = one("apptainer exec --nv -B /data:/d:ro --env A=1,B=2 image.sif python train.py")
    assert (job.container, job.read_only) == ("image.sif", {"/d"})
    assert job.environment == {"A": "1", "B": "2"}


def test_a_notebook_and_what_comes_from_standard_input_are_not_followed(submit: Submit) -> None:
    for command in (
        "jupyter nbconvert --to notebook --execute x.ipynb",
        "python -",
        "bash",
    ):
        found = submit(command)
        assert isinstance(found, Submission)
        assert found.jobs == ()
        assert len(found.unknowns) == 1


def test_a_program_that_runs_its_arguments_may_be_a_launcher(submit: Submit) -> None:
    (job,) = submit("my-launcher --gpus 3 python train.py --lr 1").jobs
    assert (job.argv, job.certain, job.launchers) == (("--lr", "1"), False, ("my-launcher",))
    outer, inner = submit("python src/fit.py 2 python train.py").jobs
    assert outer.certain
    assert not inner.certain


def test_every_module_of_a_launcher_is_one_of_python(submit: Submit) -> None:
    for module in launchers.by_module():
        command = f"python -m {module} {'run' if module == 'coverage' else ''} train.py"
        assert [job.script.name for job in submit(command).jobs if job.script] == ["train.py"]


def test_reading_leaves_the_folder_as_it_is(submit: Submit, tmp_path: Path) -> None:
    script = {"run.sh": "touch made\necho x > written\npython train.py $(touch made2)\n"}
    submit("bash run.sh", script)
    assert not {"made", "written", "made2"} & {path.name for path in tmp_path.iterdir()}


def test_the_folder_may_be_relative(submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    submit("python train.py")
    monkeypatch.chdir(tmp_path)
    assert read_job(["python", "train.py"], Path()).jobs[0].folder == tmp_path


def test_uv_installs_what_a_script_requires(submit: Submit) -> None:
    header = (
        '# /// script\n# requires-python = ">=3.11"\n# dependencies = [\n#   "tqdm",\n# ]\n# ///\n'
    )
    (job,) = submit("uv run --with einops fit.py", {"fit.py": f"{header}import tqdm\n"}).jobs
    assert job.launch_script.requires == ("einops", "tqdm")
    (job,) = submit("python fit.py").jobs
    assert job.launch_script.requires == ()


@pytest.mark.parametrize("header", ["# /// script\n# dependencies = [\n# ///\n", "# /// script\n"])
def test_a_header_that_is_no_toml_requires_nothing(submit: Submit, header: str) -> None:
    (job,) = submit("uv run fit.py", {"fit.py": header}).jobs
    assert job.launch_script.requires == ()


def test_a_named_volume_is_no_folder_of_this_machine(submit: Submit, tmp_path: Path) -> None:
    (job,) = submit(
        f"docker run -v data:/data -v {tmp_path}:/work:ro,z -w /work image python train.py"
    ).jobs
    assert job.mounts == {"/data": "volume data", "/work": str(tmp_path)}
    assert job.read_only == {"/work"}
    with pytest.raises(InputError, match="does not exist in /work"):
        submit("docker run -v code:/work -w /work image python a.py", {"code/a.py": "print(1)\n"})


def test_enroot_starts_a_command_in_a_container(submit: Submit) -> None:
    (job,) = submit("enroot start --rw --mount data:/data -e A=1 image python train.py").jobs
    assert job.container == "image"
    assert job.mounts == {"/data": "data"}
    assert job.environment["A"] == "1"


MAKEFILE = """\
DATA ?= data
ARGS = --data $(DATA) \\
  --epochs 3
.PHONY: all train prepare
all: train  # the first
train: prepare train.py
\t@python train.py $(ARGS) --name $@
prepare:
\t-python evaluate.py
"""


@pytest.mark.parametrize(
    ("command", "data"),
    [("make", "data"), ("make train DATA=more", "more"), ("make -f rules.mk all", "data")],
)
def test_make_runs_the_recipes_of_its_targets(submit: Submit, command: str, data: str) -> None:
    files = {"rules.mk" if "-f" in command else "Makefile": MAKEFILE}
    before, job = submit(command, files).jobs
    assert before.script is not None
    assert before.script.name == "evaluate.py"
    assert job.argv == ("--data", data, "--epochs", "3", "--name", "train")
    assert job.at.line == 7


def test_a_target_that_a_makefile_lacks_is_unknown(submit: Submit) -> None:
    read = submit("make missing", {"Makefile": MAKEFILE})
    assert read.jobs == ()
    assert [one.what for one in read.unknowns] == ["the target missing"]


def test_targets_that_need_one_another_end(submit: Submit) -> None:
    (job,) = submit("make a", {"Makefile": "a: b\n\tpython train.py $(X)\nX = $(X)\nb: a\n"}).jobs
    assert job.script is not None


def test_a_makefile_that_is_no_text_is_unknown(submit: Submit) -> None:
    read = submit("make", {"Makefile": "a:\0"})
    assert [one.reason for one in read.unknowns] == ["binary, not a script"]
