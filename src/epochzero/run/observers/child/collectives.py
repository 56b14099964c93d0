"""In the job's process: a thread that writes what PyTorch's flight recorder holds, when it is asked.

The recorder knows which collectives a rank has called and which of them are pending. A stack does not show that of a
rank that polls, or that waits for a GPU on which the collective runs. Only the process itself can read its recorder.
"""

from __future__ import annotations

import _thread
import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from epochzero.run.observers.child.stacks import FILE_VARIABLE

COLLECTIVES_FOLDER = "collectives"
"""In an attempt's folder: a file for each process, with the descriptor to write to and the inode of its pipe."""
_RECORDERS = ("_dump_nccl_trace_json", "_dump_fr_trace_json")
"""Of NCCL, and of all other backends."""


def begin_torch(torch: Any, environment: Mapping[str, str]) -> None:
    """Starts the thread with the first process group; a version of torch without a recorder starts none.

    The group's own threads exist by then: a process that forks later is as safe as without this one. All groups, those of
    a device mesh too, are made by one private function; in a version without it, the public one is replaced.
    """
    path = environment.get(FILE_VARIABLE)
    distributed = torch.distributed
    if not path or not distributed.is_available():
        return
    from torch.distributed import distributed_c10d

    recorders = [getattr(torch._C._distributed_c10d, name, None) for name in _RECORDERS]
    if not any(recorders):
        return
    private = hasattr(distributed_c10d, "_new_process_group_helper")
    name = "_new_process_group_helper" if private else "init_process_group"
    create = getattr(distributed_c10d, name)
    folder = os.path.join(os.path.dirname(path), COLLECTIVES_FOLDER)

    @functools.wraps(create)
    def created(*args: Any, **options: Any) -> Any:
        group = create(*args, **options)
        listen(folder, distributed.get_rank, [recorder for recorder in recorders if recorder])
        return group

    for module in (distributed_c10d,) if private else (distributed_c10d, distributed):
        setattr(module, name, created)


def listen(folder: str, rank: Callable[[], int], recorders: list[Callable[..., bytes]]) -> None:
    """Starts the thread of this process, once. A full disk or a limit of threads costs the dumps, not the job."""
    own = os.path.join(folder, str(os.getpid()))
    if os.path.exists(own):
        return
    try:
        os.makedirs(folder, exist_ok=True)
        reader, writer = os.pipe()
        with open(own, "w", encoding="ascii") as file:
            file.write(f"{writer} {os.fstat(writer).st_ino}")
        # Not threading.Thread, which programs count and wait for.
        _thread.start_new_thread(_answer, (reader, own, rank, recorders))
    except (OSError, RuntimeError):
        return


def _answer(
    reader: int, own: str, rank: Callable[[], int], recorders: list[Callable[..., bytes]]
) -> None:
    """Writes a dump for each request, complete or not at all."""
    try:
        while os.read(reader, 1):
            dumps = [recorder(True, False) for recorder in recorders]
            # The first one that has recorded calls.
            dump = next((dump for dump in dumps if b'"profiling_name"' in dump), dumps[-1])
            name = f"{own}.trace_{rank()}.json"
            with open(f"{name}.part", "wb") as file:
                file.write(dump)
            os.replace(f"{name}.part", name)
    except Exception:  # A thread of ours prints nothing into the job's output.
        return
