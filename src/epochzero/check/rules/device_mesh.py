"""A device mesh has more or fewer positions than the job has processes."""

import math

from epochzero.check.program.values import Items, Value, constant_of, integer_of
from epochzero.check.rule import Claims, JobView, Rule, argument, claim_at, guarded
from epochzero.check.rules.world import world_size

_MAKES = ("torch.distributed.device_mesh.init_device_mesh", "torch.distributed.init_device_mesh")


def _check(view: JobView) -> Claims:
    world = world_size(view.job)
    for call in view.calls:
        shape = _numbers(argument(call, 1, "mesh_shape"))
        if call.name not in _MAKES or shape is None or guarded(call.at, RuntimeError):
            continue
        names = call.keywords.get("mesh_dim_names")
        if isinstance(names, Items) and names.complete and len(names.values) != len(shape):
            yield claim_at(
                call.at,
                message=f"The mesh has {len(shape)} dimensions and {len(names.values)} names: "
                f"{', '.join(str(constant_of(name) or '?') for name in names.values)}.",
                consequence="RuntimeError: mesh_shape and mesh_dim_names should have same length!",
                fix="Pass one name for each dimension.",
            )
            continue
        size = math.prod(shape)
        if world is None or size == world:
            continue
        written = f"{' x '.join(map(str, shape))} = {size}"
        yield claim_at(
            call.at,
            message=f"The mesh has {written} positions, but the job starts {world} processes.",
            consequence=f"RuntimeError: Mesh should not be bigger than default world size {world}, but "
            f"found {size} ranks!"
            if size > world
            else (
                f"{world - size} processes have no position in the mesh: their results are lost, "
                "or they wait forever"
            ),
            fix=f"Choose sizes whose product is {world}, or start {size} processes.",
            severity=None if size > world else "warning",
        )


def _numbers(shape: Value | None) -> list[int] | None:
    """The sizes of a mesh; None if they are not all known."""
    if not isinstance(shape, Items) or not shape.complete:
        return None
    sizes = [integer_of(value) for value in shape.values]
    known = [size for size in sizes if size is not None and size > 0]
    return known if len(known) == len(sizes) else None


RULE = Rule(
    category="illegal_argument",
    why="Programs often set mesh sizes for a fixed number of GPUs. With fewer GPUs, PyTorch "
    "rejects the mesh. With more GPUs, some processes have no position in the mesh.",
    fix="Compute one of the mesh sizes from the world size.",
    source="PyTorch documentation, torch.distributed.device_mesh.init_device_mesh",
    check=_check,
    examples="""
        $ torchrun --nproc_per_node=4 train.py
        import argparse
        from torch.distributed.device_mesh import init_device_mesh

        p = argparse.ArgumentParser()
        p.add_argument('--tp', type=int, default=4)
        p.add_argument('--dp', type=int, default=2)
        a = p.parse_args()
        mesh = init_device_mesh('cuda', (a.dp, a.tp), mesh_dim_names=('dp', 'tp'))  # <-
        ---- caught if
        -$ torchrun --nproc_per_node=4 train.py
        +$ torchrun --nproc_per_node=8 train.py --tp 2
        ----
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh('cuda', (2, 4), mesh_dim_names=('dp', 'pp', 'tp'))  # <-
        ----
        $ torchrun --nproc_per_node=8 train.py
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh

        dist.init_process_group('nccl')
        world = dist.get_world_size()
        mesh = init_device_mesh('cuda', (world // 2, 2))
    """,
)
