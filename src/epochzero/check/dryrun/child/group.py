"""The process group of a dry run: gloo between the ranks that run, for a world of any size.

Before each collective the ranks compare what they call. A rank that calls something else is thus found
at its line, where gloo would hang or mix up the data. Of a large world only some ranks run; each rank
that does not run is represented by one that does, as if it had the same values.
"""

from __future__ import annotations

import functools
import inspect
import zlib
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist

# Their stubs lack much of what torch has.
c10d: Any = import_module("torch.distributed.distributed_c10d")
_ProcessGroup: Any = dist.ProcessGroup
_ReduceOp: Any = dist.ReduceOp

BACKEND = "epochzero"
MISMATCH = "Mismatch between collectives of the ranks"
_GLOO_TIMEOUT = timedelta(hours=1)
"""The dry run notices itself that ranks wait for each other."""


class RankGroup(_ProcessGroup):  # type: ignore[misc]
    """A process group some of whose ranks run.

    Args:
        store: Where the ranks meet.
        rank, size: Of this process in the group, as the job sees them.
        running: The ranks of the group that run, in ascending order.
        may_be_uneven: Whether ranks may gather tensors of different sizes, as with NCCL.
    """

    def __init__(
        self, store: Any, rank: int, size: int, running: Sequence[int], *, may_be_uneven: bool
    ) -> None:
        super().__init__(rank, size)
        self._size, self._running = size, list(running)
        self._uneven = may_be_uneven
        self._index = self._running.index(rank)
        self._stands_for = [_representative(number, self._running) for number in range(size)]
        self._weight = self._stands_for.count(self._index)
        self._number = rank
        self._gloo: Any = None
        if len(self._running) > 1:
            inner = c10d.PrefixStore("running", store)
            kind: Any = dist.ProcessGroupGloo
            self._gloo = kind(inner, self._index, len(self._running), _GLOO_TIMEOUT)

    # -- What torch asks of a group ------------------------------------------------------------

    def getBackendName(self) -> str:  # noqa: N802
        """Its name in messages."""
        return BACKEND

    def size(self) -> int:
        """Number of ranks, as the job sees it."""
        return self._size

    @property
    def group_name(self) -> Any:
        """Its registered name; torch's own property reads it from a compiled backend, and there is none."""
        return c10d._world.pg_names[self]

    def __repr__(self) -> str:
        return f"RankGroup({self._number} of {self._size})"

    # -- Collectives ---------------------------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        """Reduce tensors over all ranks, in place."""
        for tensor in tensors:
            self._same("all_reduce", tensor)
            self._reduce(tensor, _operation(opts))
        return _done(tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        """The same of several tensors."""
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Any, opts: Any) -> Any:
        """As `allreduce`; ranks other than the root may get any values."""
        for tensor in tensors:
            self._same("reduce", tensor)
            target = tensor if opts.rootRank == self._number else tensor.clone()
            self._reduce(target, _operation(opts))
        return _done(tensors)

    def broadcast(self, tensors: Any, opts: Any) -> Any:
        """Give all ranks the tensors of one."""
        for tensor in tensors:
            self._same("broadcast", tensor)
            self._send_to_all(tensor, self._stands_for[opts.rootRank])
        return _done(tensors)

    def barrier(self, opts: Any = None) -> Any:
        """Wait for all ranks."""
        self._same("barrier", None)
        return _done([torch.zeros(1)])

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Gather a tensor of each rank in a list."""
        for number, (places, tensor) in enumerate(zip(outputs, inputs)):  # noqa: B905
            if len(places) != self._size:
                raise RuntimeError(
                    f"all_gather: invalid output tensor list at index {number} (expected length "
                    f"{self._size}, got {len(places)})"
                )
            self._same("all_gather", None if self._uneven else tensor)
            self._gather(places, tensor)
        return _done([place for places in outputs for place in places])

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """The same of several tensors."""
        return self.allgather(outputs, inputs, opts)

    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> Any:
        """Gather a tensor of each rank in one tensor."""
        self._same("all_gather_into_tensor", tensor)
        if output.numel() != tensor.numel() * self._size:
            raise ValueError(
                "output tensor size must be equal to world_size times input tensor size"
            )
        # Views, so that they are filled in place.
        self._gather(list(output.view(self._size, -1)), tensor.reshape(-1))
        return _done([output])

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """The same of several tensors."""
        for output, tensor in zip(outputs, inputs):  # noqa: B905
            self.all_gather_single(output, tensor)
        return _done(outputs)

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> Any:
        """Gather a tensor of each rank on one."""
        tensor = inputs[0]
        self._same("gather", tensor)
        is_root = opts.rootRank == self._number
        places = outputs[0] if is_root else [torch.empty_like(tensor) for _ in range(self._size)]
        self._gather(places, tensor)
        return _done(places)

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> Any:
        """Give each rank its tensor of a list that one has."""
        output = outputs[0]
        self._same("scatter", output)
        root = self._stands_for[opts.rootRank]
        own = inputs[0] if opts.rootRank == self._number else None
        for rank in range(self._size):
            part = torch.empty_like(output) if own is None else own[rank].clone()
            self._send_to_all(part, root)
            if rank == self._number:
                output.copy_(part)
        return _done([output])

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Reduce a list of tensors over all ranks; each gets its part."""
        for output, parts in zip(outputs, inputs):  # noqa: B905
            self._same("reduce_scatter", output)
            for rank, part in enumerate(parts):
                reduced = part.clone()
                self._reduce(reduced, _operation(opts))
                if rank == self._number:
                    output.copy_(reduced)
        return _done(outputs)

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> Any:
        """Reduce one tensor over all ranks; each gets its part."""
        self._same("reduce_scatter_tensor", output)
        if tensor.numel() != output.numel() * self._size:
            raise ValueError("input tensor must be the same size as output size times world size")
        reduced = tensor.clone()
        self._reduce(reduced, _operation(opts))
        output.copy_(reduced.reshape(self._size, -1)[self._number].reshape(output.shape))
        return _done([output])

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """The same of several tensors."""
        for output, tensor in zip(outputs, inputs):  # noqa: B905
            self.reduce_scatter_single(output, tensor, opts)
        return _done(outputs)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Each rank gives each other one a tensor."""
        self._same("all_to_all", None)
        given = self._of_each(torch.tensor([tensor.numel() for tensor in inputs]))
        for source, place in enumerate(outputs):
            count = int(given[self._stands_for[source]][self._number])
            if count != place.numel():
                raise RuntimeError(
                    f"all_to_all: the tensors of the ranks differ in size or type: rank {self._number} expects "
                    f"{place.numel()} elements of rank {source}, which sends {count}"
                )
        for taker, rank in enumerate(self._running):
            for source, giver in enumerate(self._stands_for):
                place = outputs[source] if taker == self._index else None
                self._pass_on(inputs[rank], place, giver, taker)
        return _done(outputs)

    def all_to_all_single(
        self, output: Any, tensor: Any, output_sizes: Any, input_sizes: Any, opts: Any = None
    ) -> Any:
        """The same with one tensor that is split."""
        count = self._size
        takes = output_sizes or [output.shape[0] // count] * count
        gives = input_sizes or [tensor.shape[0] // count] * count
        return self.alltoall(list(output.split(takes)), list(tensor.split(gives)))

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # -- One rank to another -------------------------------------------------------------------

    def send(self, tensors: Any, rank: int, tag: int = 0) -> Any:
        """Send to a rank, if it runs."""
        if rank in self._running and self._gloo is not None:
            return self._gloo.send(tensors, self._running.index(rank), tag)
        return _done(tensors)

    def recv(self, tensors: Any, rank: int, tag: int = 0) -> Any:
        """Receive from a rank; from one that does not run, the tensors as they are."""
        if rank in self._running and self._gloo is not None:
            return self._gloo.recv(tensors, self._running.index(rank), tag)
        return _done(tensors)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        """Receive from any rank that runs."""
        if self._gloo is None:
            return _done(tensors)
        return self._gloo.recv_anysource(tensors, tag)

    # -- Between the ranks that run ------------------------------------------------------------

    def _same(self, name: str, tensor: torch.Tensor | None) -> None:
        """Check that all ranks call the same collective with tensors of the same shape."""
        if self._gloo is None:
            return
        own = torch.tensor([zlib.crc32(name.encode()), _fingerprint(tensor)])
        every = self._of_each(own)
        if any(int(other[0]) != int(own[0]) for other in every):
            raise RuntimeError(f"{MISMATCH}: this rank calls {name}, another one does not")
        others = [
            rank
            for rank, other in zip(self._running, every)  # noqa: B905
            if tensor is not None and int(other[1]) != int(own[1])
        ]
        if tensor is not None and others:
            raise RuntimeError(
                f"{name}: the tensors of the ranks differ in size or type: rank {self._number} has "
                f"one of shape {tuple(tensor.shape)} and type {tensor.dtype}, rank {others[0]} another"
            )

    def _reduce(self, tensor: torch.Tensor, operation: Any) -> None:
        average = operation == _ReduceOp.AVG
        summed = average or operation == _ReduceOp.SUM
        if summed and self._weight != 1:
            tensor.mul_(self._weight)
        if self._gloo is not None:
            options = dist.AllreduceOptions()
            options.reduceOp = _ReduceOp.SUM if average else operation
            whole = tensor if tensor.is_contiguous() else tensor.contiguous()
            self._gloo.allreduce([whole], options).wait()
            if whole is not tensor:
                tensor.copy_(whole)
        if average:
            tensor.div_(self._size)

    def _send_to_all(self, tensor: torch.Tensor, root: int) -> None:
        if self._gloo is None:
            return
        options = dist.BroadcastOptions()
        options.rootRank, options.rootTensor = root, 0
        whole = tensor if tensor.is_contiguous() else tensor.contiguous()
        self._gloo.broadcast([whole], options).wait()
        if whole is not tensor:
            tensor.copy_(whole)

    def _gather(self, places: Sequence[torch.Tensor], tensor: torch.Tensor) -> None:
        """Fill the place of each rank with the tensor of the one that represents it."""
        found: dict[int, torch.Tensor] = {}
        for index, rank in enumerate(self._running):
            like = tensor if index == self._index else places[rank]
            found[index] = like.detach().clone().contiguous()
            self._send_to_all(found[index], index)
        for rank, place in enumerate(places):
            given = found[self._stands_for[rank]]
            with torch.no_grad():
                place.copy_(given if given.shape == place.shape else given.reshape(place.shape))

    def _of_each(self, own: torch.Tensor) -> list[torch.Tensor]:
        """A tensor of the same shape of each rank that runs."""
        every = [own.clone() for _ in self._running]
        if self._gloo is not None:
            self._gloo.allgather([every], [own]).wait()
        return every

    def _pass_on(self, given: torch.Tensor, place: Any, giver: int, taker: int) -> None:
        """One part of an exchange of all with all, between two of the ranks that run."""
        if giver == taker == self._index:
            place.copy_(given.reshape(place.shape))
        elif giver == self._index and given.numel():
            self._gloo.send([given.contiguous()], taker, 7).wait()
        elif place is not None and place.numel():
            whole = place.contiguous()
            self._gloo.recv([whole], giver, 7).wait()
            place.copy_(whole)


def _representative(rank: int, running: Sequence[int]) -> int:
    """The index of the rank that represents another: itself, else the next lower one but the first."""
    if rank in running:
        return running.index(rank)
    lower = [index for index, other in enumerate(running) if other < rank]
    return lower[-1] if lower else 0


def _fingerprint(tensor: torch.Tensor | None) -> int:
    if tensor is None:
        return 0
    return zlib.crc32(f"{tuple(tensor.shape)} {tensor.dtype}".encode())


def _operation(opts: Any) -> Any:
    return getattr(opts, "reduceOp", None) or _ReduceOp.SUM


def _done(result: Any) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(list(result))
    c10d_types: Any = torch._C._distributed_c10d
    return c10d_types._create_work_from_future(future)


def install(running: Sequence[int]) -> None:
    """Let all process groups of this process be of the ranks that run.

    Args:
        running: The ranks of the job that run.
    """
    create = c10d._new_process_group_helper
    requested = ["gloo"]

    def group(options: Any, _: Any = None) -> RankGroup:
        members = list(options.global_ranks_in_group) or range(options.group_size)
        if options.group_rank >= options.group_size:
            raise ValueError(
                f"rank {options.group_rank} is outside the world of {options.group_size} processes"
            )
        return RankGroup(
            options.store,
            options.group_rank,
            options.group_size,
            [index for index, rank in enumerate(members) if rank in running],
            may_be_uneven=requested[0] == "nccl",
        )

    def creating(
        group_size: int, group_rank: int, ranks: Any, backend: Any, *rest: Any, **options: Any
    ) -> Any:
        requested[0] = "nccl" if backend is None or "nccl" in str(backend) else "gloo"
        chosen = {"backend_options": None, "pg_options": None}
        options |= {name: value for name, value in chosen.items() if name in options}
        return create(group_size, group_rank, ranks, BACKEND, *rest, **options)

    dist.Backend.register_backend(BACKEND, group, extended_api=True, devices=["cpu", "cuda"])
    c10d._new_process_group_helper = creating
    # Both would wait for all ranks of the world.
    c10d._store_based_barrier = lambda *_, **__: None
    rendezvous: Any = import_module("torch.distributed.rendezvous")
    rendezvous.TCPStore = _store_of_few(rendezvous.TCPStore, len(running))


def _store_of_few(make: Any, most: int) -> Any:
    """A store that does not wait for ranks that do not run."""

    @functools.wraps(make)
    def store(*arguments: Any, **options: Any) -> Any:
        given = inspect.signature(_arguments_of_store).bind(*arguments, **options).arguments
        given |= given.pop("rest", {})
        if given.get("world_size"):
            given["world_size"] = min(given["world_size"], most)
        return make(**given)

    return store


def _arguments_of_store(
    host_name: Any, port: Any, world_size: Any = None, is_master: Any = False, **rest: Any
) -> None:
    """The arguments of torch's store, whose compiled constructor has no signature."""
