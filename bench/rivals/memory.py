"""What others say of the memory of a training job, for ``memory.py``.

None of them reads a training program of one's own. To their advantage, all are told the number of
parameters, and torch-preflight the architecture by its own name and every setting by its own words.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["FORMULAS", "torch_preflight"]

FORMULAS: Mapping[str, Callable[[int], int]] = {
    # estimate_zero2_model_states_mem_needs without offload on one GPU (DeepSpeed's stage_1_and_2.py).
    "deepspeed_states": lambda parameters: (2 + 18) * parameters,
    # Parameters, gradients and Adam's states in mixed precision (Rajbhandari et al., 2020, section 3.1).
    "16_bytes_a_parameter": lambda parameters: 16 * parameters,
    "20_bytes_a_parameter": lambda parameters: 20 * parameters,
}
"""Bytes on one GPU for a number of parameters."""

_PROGRAM = """
import json, sys
from torch_preflight import vram
answers = []
for run in json.load(sys.stdin):
    given = run["config"]
    report = vram.estimate_config(
        vram.resolve_profile(run["model"], allow_network=False),
        vram.RunConfig(
            batch_size=given["batch_size"], seq_len=given.get("seq_len"),
            image_size=given.get("image_size"),
            precision=vram.PrecisionMode(given["precision"]),
            optimizer=vram.OptimizerKind(given["optimizer"]),
            gradient_checkpointing=given["gradient_checkpointing"],
            flash_attention=given["flash_attention"],
        ),
        gpu=run.get("gpu"), gpu_memory=run.get("gpu_memory"), with_remediations=False,
    )
    parts = report.breakdown
    reserved = report.total - parts.cuda_context
    answers.append([reserved - parts.fragmentation, reserved, report.total])
json.dump(answers, sys.stdout)
"""


def torch_preflight(python: str, runs: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Bytes allocated, reserved and of the whole process of each run, by torch-preflight's formula."""
    done = subprocess.run(
        [python, "-c", _PROGRAM],
        input=json.dumps(runs),
        capture_output=True,
        text=True,
        check=True,
    )
    answers: list[list[int]] = json.loads(done.stdout)
    return answers
