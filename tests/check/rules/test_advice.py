"""What findings advise fits what the job asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check import check

TRAIN = "import torch.distributed as dist\n\ndist.init_process_group('nccl')\n"


@pytest.mark.parametrize(
    ("gres", "gpus", "advice"),
    [
        (4, "none", "Choose a platform that has 4 GPUs on each node."),
        (4, "2 x V100", "Start at most 2 processes on a node, or choose a platform that has 4"),
        (4, "V100", "Start at most 1 process on a node, or choose a platform that has 4"),
        (2, "4 x V100", "Start at most 2 processes on a node, or request 4 GPUs on each node."),
    ],
)
def test_gpus_that_a_job_asks_for_are_not_advised_to_be_asked_for(
    tmp_path: Path, gres: int, gpus: str, advice: str
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "job.sh").write_text(
        f"#!/bin/bash\n#SBATCH --gres=gpu:{gres}\ntorchrun --nproc_per_node 4 train.py\n"
    )
    found = check(["sbatch", "job.sh"], gpus, folder=tmp_path, select=["world-size"])
    (finding,) = found.findings
    assert finding.fix.startswith(advice)
