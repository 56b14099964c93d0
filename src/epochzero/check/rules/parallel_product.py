"""Parallel degrees whose product does not divide the processes."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.check.findings import Finding, Place
from epochzero.check.program.model import Program
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.situation import finding_at
from epochzero.check.rules.world import gpus_of_a_node, number, option, world_size
from epochzero.check.target.model import Target

__all__ = ["RULE"]

# The degrees that split one replica of the model, in the names of Megatron-LM and its descendants.
_DEGREES = (
    ("tensor_model_parallel_size", "tensor_parallel_size", "tp_size", "tp"),
    ("pipeline_model_parallel_size", "pipeline_parallel_size", "pp_size", "pp"),
    ("context_parallel_size", "cp_size", "cp"),
)
_ENGINES = ("vllm.LLM", "vllm.AsyncEngineArgs", "vllm.EngineArgs")

_PARSER = (
    "import argparse\n\np = argparse.ArgumentParser()\n"
    "p.add_argument('--tensor-model-parallel-size', type=int, default=1)\n"
    "p.add_argument('--pipeline-model-parallel-size', type=int, default=1)\n"
    "p.add_argument('--micro-batch-size', type=int)\n"
    "p.add_argument('--global-batch-size', type=int)\n"
    "args = p.parse_args()\n"
)


def _check(program: Program, target: Target) -> Iterable[Finding]:
    yield from _megatron(program)
    yield from _engines(program, target)


def _megatron(program: Program) -> Iterable[Finding]:
    world = world_size(program.job)
    found = [degree for names in _DEGREES if (degree := option(program, *names))]
    # One degree alone may mean something else in a program of one's own, unless it is so named.
    named = option(program, *(names[0] for names in _DEGREES)) is not None
    if world is None or not (named or len(found) > 1) or any(degree < 1 for degree, _ in found):
        return
    product = 1
    for one, _ in found:
        product *= one
    if world % product:
        given = " x ".join(str(degree) for degree, _ in found)
        place = next((place for _, place in found if program.job.says(place)), found[0][1])
        yield Finding(
            "parallel-product",
            "error",
            "illegal_argument",
            "initialization",
            place if place.path else Place("<command>"),
            f"The parallel degrees {given} = {product} do not divide the {world} processes.",
            f"AssertionError: world size ({world}) is not divisible by {product}",
            f"Start a multiple of {product} processes, or choose degrees whose product divides "
            f"{world}.",
        )


def _engines(program: Program, target: Target) -> Iterable[Finding]:
    """Engines that start their own workers, one a GPU of the node."""
    seen = gpus_of_a_node(program.job, target)
    for call in program.calls:
        if call.name not in _ENGINES or seen is None or (program.job.nodes or 1) > 1:
            continue
        degree = number(call.keywords.get("tensor_parallel_size")) or 1
        degree *= number(call.keywords.get("pipeline_parallel_size")) or 1
        if degree > seen[0] and "distributed_executor_backend" not in call.keywords:
            yield finding_at(
                call.at,
                "parallel-product",
                "illegal_argument",
                message=f"The engine needs {degree} GPUs, and {seen[1]} {seen[0]}.",
                consequence=f"ValueError: the world size ({degree}) is larger than the GPUs there",
                fix=f"Choose tensor_parallel_size <= {seen[0]}, or ask for {degree} GPUs.",
            )


RULE = Rule(
    id="parallel-product",
    title="The parallel degrees do not fit the number of processes or GPUs",
    category="illegal_argument",
    why="Tensor, pipeline and context parallelism split a model over processes: their product must "
    "divide the world size. A command for 64 GPUs does not run on 8.",
    fix="Choose degrees whose product divides nodes x processes per node.",
    source="Megatron-LM, parallel_state.initialize_model_parallel; vLLM documentation, 'Distributed "
    "Inference and Serving'",
    check=_check,
    catches=(
        Case(
            {"train.py": _PARSER},
            ("--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "4"),
            command=("torchrun", "--nproc_per_node=8", "train.py"),
            path="<command>",
            line=0,
        ),
        Case(
            {"pretrain_gpt.py": "from megatron.training import pretrain\n\npretrain()\n"},
            ("--tensor-model-parallel-size", "8", "--num-layers", "24"),
            command=("torchrun", "--nproc_per_node=4", "pretrain_gpt.py"),
            path="<command>",
            line=0,
        ),
        Case(
            {"train.py": "import vllm\n\nvllm.LLM(model='m', tensor_parallel_size=8)\n"},
            target='gpus = "2 x H100"\n',
            line=3,
        ),
    ),
    leaves=(
        Case(
            {"train.py": _PARSER},
            ("--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "2"),
            command=("torchrun", "--nproc_per_node=8", "train.py"),
        ),
        Case({"train.py": _PARSER}, ("--tensor-model-parallel-size", "4")),
        Case(
            {"pretrain_gpt.py": "from megatron.training import pretrain\n\npretrain()\n"},
            ("--tensor-model-parallel-size=2", "--pipeline-model-parallel-size=2"),
            command=("torchrun", "--nproc_per_node=4", "pretrain_gpt.py"),
        ),
        Case({"train.py": "import vllm\nvllm.LLM(model='m', tensor_parallel_size=8)\n"}),
    ),
)
