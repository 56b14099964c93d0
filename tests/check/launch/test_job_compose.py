"""Compose files, and the commands that start their services."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.check.launch import Job, Submission
from epochzero.errors import InputError

Submit = Callable[..., Submission]
One = Callable[..., Job]

COMPOSE = """\
x-common: &common
  image: registry/image:2
  volumes:
    - .:/job
    - /raid/data:/data:ro
    - {type: volume, source: cache, target: /cache}
  working_dir: /job
services:
  train:
    <<: *common
    command: python train.py --lr ${LR:-0.1} --name "a b"
    environment:
      - HF_HOME=/cache
      - PASSED
    env_file: job.env
    shm_size: 8gb
    user: "1000:1000"
    network_mode: none
    deploy:
      resources:
        reservations:
          devices:
            - {driver: nvidia, count: 2, capabilities: [gpu]}
  evaluate:
    extends: train
    shm_size: 1gb
    entrypoint: [python]
    command: [evaluate.py, "--run=$RUN", "cost $$5"]
  database:
    image: postgres
"""
FILES = {"compose.yaml": COMPOSE, "job.env": "# of the job\nTOKEN='x=y'\n"}


@pytest.mark.parametrize("command", [
    "docker compose up train", "docker-compose up -d train", "docker compose run --rm train",
    "podman compose -p mine -f compose.yaml run train",
])  # fmt: skip
def test_a_service_says_what_it_runs_and_may_use(one: One, tmp_path: Path, command: str) -> None:
    job = one(command, FILES, {})
    assert job.script == tmp_path / "train.py"
    assert job.argv == ("--lr", "0.1", "--name", "a b")
    assert job.environment == {"HF_HOME": "/cache", "PASSED": None, "TOKEN": "x=y"}
    assert (job.allocation.gpus_per_node, job.allocation.shared_memory_bytes) == (2, 8 << 30)
    assert (job.container, job.working_folder) == ("registry/image:2", "/job")
    assert job.mounts == {"/job": str(tmp_path), "/data": "/raid/data", "/cache": "volume cache"}
    assert job.read_only == {"/data"}
    assert job.argument_sources["compose --network"].text == "none"
    assert (job.at.path, job.at.line) == ("compose.yaml", 11)


def test_a_command_takes_the_place_of_that_of_the_service(one: One, tmp_path: Path) -> None:
    job = one("docker compose run -e A=1 --entrypoint python train evaluate.py --x", FILES, {})
    assert (job.script, job.argv) == (tmp_path / "evaluate.py", ("--x",))
    assert job.environment["A"] == "1"
    assert job.allocation.shared_memory_bytes == 8 << 30


def test_without_a_name_all_services_run_and_variables_may_be_unknown(submit: Submit) -> None:
    for command in ("docker compose up", "compose.yaml"):
        train, evaluate = submit(command, FILES).jobs
        assert train.unsure == {1}
        assert evaluate.argv == ("--run=", "cost $5")
        assert evaluate.unsure == {0}
        assert evaluate.allocation.shared_memory_bytes == 1 << 30
    (known,) = submit("docker compose up evaluate", FILES, {"RUN": "7"}).jobs
    assert (known.argv, known.unsure) == (("--run=7", "cost $5"), frozenset())


def test_a_service_that_is_not_there_is_refused(submit: Submit) -> None:
    with pytest.raises(InputError, match=r"compose\.yaml does not exist"):
        submit("docker compose up")
    with pytest.raises(
        InputError, match="no service trian; its services: train, evaluate, database"
    ):
        submit("docker compose run trian", FILES)
    with pytest.raises(InputError, match="not valid YAML"):
        submit("docker compose up", {"compose.yaml": "services: ["})
