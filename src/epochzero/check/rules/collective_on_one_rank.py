"""Only one rank reaches an operation that waits for all ranks."""

import ast
from collections.abc import Iterator

from epochzero.check.program.ranks import is_first_rank
from epochzero.check.program.syntax import Code, code_of
from epochzero.check.rule import Claims, JobView, Rule, claim_at
from epochzero.check.rules.world import world_size

_COLLECTIVES = frozenset(
    f"torch.distributed.{name}"
    for name in (
        "all_gather",
        "all_gather_into_tensor",
        "all_gather_object",
        "all_reduce",
        "all_to_all",
        "barrier",
        "broadcast",
        "broadcast_object_list",
        "gather",
        "gather_object",
        "monitored_barrier",
        "new_group",
        "reduce",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "scatter",
        "scatter_object_list",
    )
)


def _check(view: JobView) -> Claims:
    world = world_size(view.job)
    if world == 1:
        return
    reach = view.reach
    for module in view.modules:
        for node, name in _alone(code_of(module)):
            at = reach.at(module, node)
            if at is not None:
                yield claim_at(
                    at,
                    severity="error" if world is not None else "warning",
                    message=f"Only rank 0 calls {name}, which returns only after all ranks have "
                    "called it.",
                    consequence="The job hangs until the timeout: Watchdog caught collective operation "
                    "timeout",
                    fix=f"Call {name} on all ranks: move it out of the condition.",
                )


def _alone(code: Code) -> Iterator[tuple[ast.Call, str]]:
    """Collectives under ``if rank == 0`` that no other branch of the function calls."""
    calls = [
        (node, name)
        for node in code.of(ast.Call)
        if (name := code.imported_name(node.func)) in _COLLECTIVES and not _of_group(node)
    ]
    for node, name in calls:
        branch = _first_rank_branch(code, node)
        if branch is None:
            continue
        function = code.function(node)
        others = [
            other
            for other, called in calls
            if called == name
            and other is not node
            and code.function(other) is function
            and _first_rank_branch(code, other) is not branch
        ]
        if not others:
            yield node, name


def _of_group(call: ast.Call) -> bool:
    """Whether a collective may belong to a group that contains only rank 0."""
    return any(keyword.arg == "group" for keyword in call.keywords)


def _first_rank_branch(code: Code, node: ast.AST) -> ast.If | None:
    """The ``if`` in the same function that only rank 0 enters, with the node in its body."""
    inner = node
    for outer in code.around(node):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return None
        if isinstance(outer, ast.If) and inner in outer.body and _is_first(outer.test):
            return outer
        inner = outer
    return None


def _is_first(test: ast.expr) -> bool:
    """Whether only the first process meets a condition, which tests the rank, alone or with more."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_first(value) for value in test.values)
    # Each node has a first process, and a single process has the local rank -1.
    return is_first_rank(test) and "local" not in ast.unparse(test)


RULE = Rule(
    category="communication_failure",
    why="A barrier or a reduction returns only after every rank has called the operation. Code "
    "for saving or evaluation often runs only on rank 0. If this code calls the operation, rank 0 "
    "waits until the timeout. Meanwhile, the GPUs of all ranks stay allocated.",
    fix="Call the operation on all ranks. Limit the code under the condition to writing and "
    "printing.",
    source="PyTorch documentation, torch.distributed, collective functions: must be called by all ranks "
    "of the group",
    check=_check,
    examples="""
        $ torchrun --nproc_per_node=4 train.py
        import torch
        import torch.distributed as dist

        dist.init_process_group('gloo')
        rank = dist.get_rank()
        if rank == 0:
            torch.save({}, 'a.pt')
            dist.barrier()  # <-
        ---- caught if
        -if rank == 0:
        -    torch.save({}, 'a.pt')
        +if not rank:
        ---- ignored if
        -    torch.save({}, 'a.pt')
        -    dist.barrier()
        +    dist.broadcast(torch.ones(1), 0)
        +else:
        +    dist.broadcast(torch.ones(1), 0)
        ---- ignored if
        -    torch.save({}, 'a.pt')
        -    dist.barrier()
        +    dist.barrier(group=None)
        ---- ignored if
        -$ torchrun --nproc_per_node=4 train.py
        +$ torchrun --nproc_per_node=1 train.py
        @@
        -    torch.save({}, 'a.pt')
        ---- ignored if
        -if rank == 0:
        -    torch.save({}, 'a.pt')
        +if dist.get_world_size() > 1:
        ---- caught if
        -if rank == 0:
        -    torch.save({}, 'a.pt')
        -    dist.barrier()  # <-
        +for epoch in range(3):
        +    if rank == 0 and epoch > 1:
        +        if epoch:
        +            dist.broadcast(torch.ones(1), 0)  # <-
        ----
        $ torchrun --nproc_per_node=4 train.py
        import torch
        import torch.distributed as dist

        dist.init_process_group('gloo')
        rank = dist.get_rank()
        def log(value):
            if dist.get_rank() == 0:
                dist.all_reduce(value)  # <-
                print(value)


        log(torch.ones(1))
    """,
)
