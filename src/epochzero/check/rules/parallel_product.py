"""The parallel degrees do not match the number of processes or GPUs."""

import math
from collections.abc import Mapping

from epochzero.check.program.configuration import Unreadable, get, load
from epochzero.check.program.values import Constant, Items, Value, constant_of, integer_of
from epochzero.check.rule import (
    Claims,
    JobView,
    Program,
    Rule,
    SourceLocation,
    Target,
    claim_at,
    claim_at_start,
)
from epochzero.check.rules.world import given, gpus_of_a_node, option, world_size

# The degrees that split one replica of the model, under the names of Megatron-LM and its forks.
_DEGREES = (
    ("tensor_model_parallel_size", "tensor_parallel_size", "tp_size", "tp"),
    ("pipeline_model_parallel_size", "pipeline_parallel_size", "pp_size", "pp"),
    ("context_parallel_size", "cp_size", "cp"),
)
# Degrees in the section "parallelism" of a configuration, by the library that reads it: their product
# is the world size. One of torchtitan's is computed where it is -1 or left out.
_CONFIGURED = {
    "nanotron": ("dp", "pp", "tp"),
    "torchtitan": (
        "data_parallel_replicate_degree", "data_parallel_shard_degree", "context_parallel_degree",
        "tensor_parallel_degree", "pipeline_parallel_degree",
    ),
}  # fmt: skip
_FILES = ("config_file", "job.config_file")
_COMPUTED = "data_parallel_shard_degree"
_ENGINES = ("vllm.LLM", "vllm.AsyncEngineArgs", "vllm.EngineArgs")


def _check(view: JobView) -> Claims:
    yield from _megatron(view.program)
    yield from _configured(view.program)
    yield from _engines(view.program, view.target)


def _megatron(program: Program) -> Claims:
    world = world_size(program.job)
    found = [degree for names in _DEGREES if (degree := option(program, *names))]
    # In a custom program a single degree may mean something else, unless its name is explicit.
    named = option(program, *(names[0] for names in _DEGREES)) is not None
    if world is None or not (named or len(found) > 1) or any(degree < 1 for degree, _ in found):
        return
    product = 1
    for factor, _ in found:
        product *= factor
    if world % product:
        written = " x ".join(str(degree) for degree, _ in found)
        place = next((place for _, place in found if program.job.says(place)), found[0][1])
        yield claim_at_start(
            place,
            message=f"The product of the parallel degrees {written} = {product} does not divide the "
            f"number of processes, {world}.",
            consequence=f"AssertionError: world size ({world}) is not divisible by {product}",
            fix=f"Start a multiple of {product} processes, or choose degrees whose product divides "
            f"{world}.",
        )


def _configured(program: Program) -> Claims:
    world, section = world_size(program.job), _section(program)
    used = {program.job.module.partition(".")[0]}
    used |= {imported.module.partition(".")[0] for imported in program.imports}
    for library in used & _CONFIGURED.keys():
        if world is None or not isinstance(section, Items) or not section.complete:
            return
        entries = {name: get(section, name) for name in _CONFIGURED[library]}
        known = {name: entry for name, entry in entries.items() if isinstance(entry, Constant)}
        if len(known) < sum(entry is not None for entry in entries.values()):
            return
        degrees = {name: integer_of(constant) or 0 for name, constant in known.items()}
        computed = library == "torchtitan" and degrees.get(_COMPUTED, -1) == -1
        if computed:
            degrees.pop(_COMPUTED, None)
        if degrees and all(degree > 0 for degree in degrees.values()):
            place = known[next(iter(degrees))].origin
            yield from _of_degrees(degrees, world, computed, place or SourceLocation("<command>"))


def _of_degrees(
    degrees: Mapping[str, int], world: int, computed: bool, place: SourceLocation
) -> Claims:
    """A finding if the degrees do not equal the world size, or do not divide it if one is computed."""
    product = math.prod(degrees.values())
    if world % product == 0 if computed else world == product:
        return
    written = " x ".join(f"{name} {degree}" for name, degree in degrees.items())
    fits = "divide" if computed else "equal"
    yield claim_at_start(
        place,
        message=f"The product of the parallel degrees {written} = {product} does not {fits} the "
        f"number of processes, {world}.",
        consequence=f"AssertionError: the product of the parallel degrees ({product}) does not divide the world size "
        f"({world})",
        fix=f"Start {'a multiple of ' * computed}{product} processes, or choose other degrees.",
    )


def _section(program: Program) -> Value | None:
    """The degrees in the configuration file of the command line."""
    names = (constant_of(given(program, name)) for name in _FILES)
    name = next((name for name in names if isinstance(name, str)), None)
    config = None if name is None else load(program.job.folder / name, name=name)
    return None if config is None or isinstance(config, Unreadable) else get(config, "parallelism")


def _engines(program: Program, target: Target) -> Claims:
    """Engines that start their own workers, one per GPU of the node."""
    seen = gpus_of_a_node(program.job, target)
    for call in program.calls:
        if call.name not in _ENGINES or seen is None or (program.job.allocation.nodes or 1) > 1:
            continue
        degree = integer_of(call.keywords.get("tensor_parallel_size")) or 1
        degree *= integer_of(call.keywords.get("pipeline_parallel_size")) or 1
        gpus = f"{degree} GPU{'s' * (degree != 1)}"
        if degree > seen[0] and "distributed_executor_backend" not in call.keywords:
            yield claim_at(
                call.at,
                message=f"The engine needs {gpus}, but {seen[1]} {seen[0]}.",
                consequence=f"ValueError: the world size ({degree}) is larger than the GPUs there",
                fix=f"Set tensor_parallel_size <= {seen[0]}, or request {gpus}.",
            )


RULE = Rule(
    category="illegal_argument",
    why="Tensor, pipeline and context parallelism split a model across processes. The product of "
    "the parallelism degrees must divide the world size. A command for 64 GPUs may fail on 8 GPUs.",
    fix="Choose degrees whose product divides the world size (nodes x processes per node).",
    source="Megatron-LM, parallel_state.initialize_model_parallel; vLLM documentation, 'Distributed "
    "Inference and Serving'",
    check=_check,
    examples="""
        $ torchrun --nproc_per_node=4 train.py --config-file c.yaml
        from nanotron.trainer import DistributedTrainer

        DistributedTrainer('c.yaml')
        ==> c.yaml <==
        parallelism:
          dp: 2  # <-
          pp: 2
          tp: 2
        ----
        $ torchrun --nproc_per_node=6 train.py --job.config_file c.toml
        from torchtitan.train import main

        main()
        ==> c.toml <==
        [parallelism]
        tensor_parallel_degree = 4  # <-
        data_parallel_shard_degree = -1
        ---- ignored if
        -$ torchrun --nproc_per_node=6 train.py --job.config_file c.toml
        +$ torchrun --nproc_per_node=8 train.py --job.config_file c.toml
        ----
        import vllm

        vllm.LLM(model='m', tensor_parallel_size=8)  # <-
        ==> target.toml <==
        gpus = "2 x H100"
        ----
        $ python train.py --tensor-model-parallel-size 4
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--tensor-model-parallel-size', type=int, default=1)
        p.add_argument('--pipeline-model-parallel-size', type=int, default=1)
        p.add_argument('--micro-batch-size', type=int)
        p.add_argument('--global-batch-size', type=int)
        args = p.parse_args()
        ----
        $ torchrun --nproc_per_node=4 pretrain_gpt.py --tensor-model-parallel-size 8 --num-layers 24  # <-
        ==> pretrain_gpt.py <==
        from megatron.training import pretrain

        pretrain()
        ---- ignored if
        -$ torchrun --nproc_per_node=4 pretrain_gpt.py --tensor-model-parallel-size 8 --num-layers 24
        +$ torchrun --nproc_per_node=4 pretrain_gpt.py --tensor-model-parallel-size=2 --pipeline-model-parallel-size=2
    """,
)
