"""The processes cannot share the global batch evenly."""

from epochzero.check.program.configuration import get
from epochzero.check.program.values import Constant, integer_of
from epochzero.check.rule import Claims, JobView, Program, Rule, claim_at_start
from epochzero.check.rules.deepspeed import configurations
from epochzero.check.rules.world import option, world_size

_MODEL_PARALLEL = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
)


def _check(view: JobView) -> Claims:
    yield from _megatron(view.program)
    yield from _deepspeed(view.program)


def _megatron(program: Program) -> Claims:
    world = world_size(program.job)
    whole, micro = option(program, "global_batch_size"), option(program, "micro_batch_size")
    degrees = [option(program, name) for name in _MODEL_PARALLEL if name in program.options]
    if world is None or whole is None or micro is None or len(degrees) < 2:
        return
    split = 1
    for degree in degrees:
        if degree is None or degree[0] < 1:
            return
        split *= degree[0]
    replicas = world // split
    if micro[0] < 1 or replicas < 1 or world % split or whole[0] % (micro[0] * replicas) == 0:
        return
    yield claim_at_start(
        whole[1],
        message=f"The global batch of {whole[0]} is not a multiple of micro batch {micro[0]} x "
        f"{replicas} data-parallel replicas.",
        consequence=f"AssertionError: global batch size ({whole[0]}) is not divisible by micro batch size "
        f"({micro[0]}) times data parallel size ({replicas})",
        fix=f"Set the global batch to a multiple of {micro[0] * replicas}.",
    )


def _deepspeed(program: Program) -> Claims:
    """DeepSpeed's three batch sizes, two of which determine the third."""
    world = world_size(program.job)
    # If the number of nodes is unknown, the batch must still be a multiple of one node's share.
    processes = world or program.job.allocation.processes_per_node
    if processes is None:
        return
    for call, config in configurations(program):
        sizes = [
            integer_of(get(config, name))
            for name in (
                "train_batch_size",
                "train_micro_batch_size_per_gpu",
                "gradient_accumulation_steps",
            )
        ]
        if None in sizes:
            continue
        whole, micro, steps = (size for size in sizes if size is not None)
        product = micro * steps * processes
        fits = whole == product if world else product > 0 and whole % product == 0
        if "mpu" in call.keywords or fits:
            continue
        where = get(config, "train_batch_size")
        place = where.origin if isinstance(where, Constant) else None
        yield claim_at_start(
            place or call.at.place,
            message=f"train_batch_size {whole} is not micro batch {micro} x accumulation {steps} x "
            f"{processes} processes{'' if world else ' of a node'} = {product}.",
            consequence="AssertionError: Check batch related parameters. train_batch_size is not equal to "
            "micro_batch_per_gpu * gradient_acc_step * world_size",
            fix="Remove train_batch_size, or set it to the product.",
            via=call.at.via,
        )


RULE = Rule(
    category="illegal_argument",
    why="A configuration sets a fixed global batch size, but the number of GPUs often changes. "
    "Frameworks reject a global batch that does not divide evenly.",
    fix="Set the global batch size to a multiple of micro-batch size x data-parallel size.",
    source="Megatron-LM, num_microbatches_calculator; DeepSpeed documentation, 'Batch Size Related "
    "Parameters'",
    check=_check,
    examples="""
        $ deepspeed --num_gpus 3 train.py
        import deepspeed

        model = object()
        deepspeed.initialize(model=model, config={'train_batch_size': 32,  # <-
            'train_micro_batch_size_per_gpu': 4, 'gradient_accumulation_steps': 2})
        ---- caught if
        -$ deepspeed --num_gpus 3 train.py
        +$ torchrun --nproc_per_node=8 train.py
        ---- ignored if
        -$ deepspeed --num_gpus 3 train.py
        +$ deepspeed --num_gpus 2 train.py
        ----
        $ torchrun --nproc_per_node=8 train.py --micro-batch-size 4 --global-batch-size 64
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--tensor-model-parallel-size', type=int, default=1)
        p.add_argument('--pipeline-model-parallel-size', type=int, default=1)
        p.add_argument('--micro-batch-size', type=int)
        p.add_argument('--global-batch-size', type=int)
        args = p.parse_args()
        ---- ignored if
        -$ torchrun --nproc_per_node=8 train.py --micro-batch-size 4 --global-batch-size 64
        +$ python train.py --micro-batch-size 4 --global-batch-size 3
        ---- caught if
        -$ torchrun --nproc_per_node=8 train.py --micro-batch-size 4 --global-batch-size 64
        +$ torchrun --nproc_per_node=8 train.py --micro-batch-size 4 --global-batch-size 36  # <-
    """,
)
