"""Operations whose result's shape depends on values: exact where they are known, else the largest.

The largest is what memory has to be laid out for: ``x[mask]`` of an unknown mask is all of ``x``. Where
an index is known it is checked, as the kernel on the GPU would do.
"""

from __future__ import annotations

from typing import Any

import torch

from epochzero.check.dryrun.child.fake.values import known, remember

aten = torch.ops.aten
_ASSUMED = "a selection by unknown values is assumed to select everything"


def _empty(mode: Any, like: torch.Tensor, shape: Any, dtype: Any = None) -> torch.Tensor:
    with mode.fakes:
        return torch.empty(tuple(shape), dtype=dtype or like.dtype, device=like.device)


def _nonzero(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    value = known(tensor)
    if value is not None:
        return mode.lift(value.nonzero(), tensor.device)
    mode.assume(_ASSUMED)
    return _empty(mode, tensor, (tensor.numel(), tensor.dim()), torch.int64)


def _masked_select(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, mask = args
    shape: Any = torch.broadcast_shapes(tensor.shape, mask.shape)  # type: ignore[no-untyped-call]
    value = known(mask)
    if value is not None:
        return _empty(mode, tensor, (int(value.expand(shape).sum()),))
    mode.assume(_ASSUMED)
    return _empty(mode, tensor, (shape.numel(),))


def _index(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Masks become the columns of their `nonzero`, as the kernel does it."""
    tensor, indices = args[:2]
    columns: list[Any] = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            position = len(columns)
            wanted = tensor.shape[position : position + index.dim()]
            if tuple(index.shape) != tuple(wanted):
                raise IndexError(
                    f"The shape of the mask {list(index.shape)} at index 0 does not match the "
                    f"shape of the indexed tensor {list(tensor.shape)} at index {position}"
                )
            found = _nonzero(mode, None, (index,), {})
            values = known(found)
            for number in range(index.dim()):
                with mode.fakes:
                    column = torch.empty(len(found), dtype=torch.int64, device=index.device)
                if values is not None:
                    remember(column, values[:, number])
                columns.append(column)
        else:
            columns.append(index)
    return mode._run(
        func, (tensor, columns), kwargs, [tensor, *(c for c in columns if c is not None)]
    )


def _unique(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    value = known(tensor)
    if value is not None:
        return tuple(mode.lift(part, tensor.device) for part in func(value, *args[1:], **kwargs))
    mode.assume(_ASSUMED)
    index = _empty(mode, tensor, tensor.shape, torch.int64)
    return (
        _empty(mode, tensor, (tensor.numel(),)),
        index,
        _empty(mode, tensor, (tensor.numel(),), torch.int64),
    )


def _repeat(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    repeats = args[0]
    value, size = known(repeats), kwargs.get("output_size")
    if value is not None:
        return mode.lift(func(value, **kwargs), repeats.device)
    if size is None:
        mode.assume("each item is assumed to be repeated once")
        size = repeats.numel()
    return _empty(mode, repeats, (size,), torch.int64)


def _bincount(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, weights = args[0], args[1] if len(args) > 1 else None
    least = args[2] if len(args) > 2 else kwargs.get("minlength", 0)
    value = known(tensor)
    size = max(least, int(value.max()) + 1 if value is not None and value.numel() else 1)
    return _empty(mode, tensor, (size,), torch.int64 if weights is None else torch.float64)


def _pack(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Sequences packed by their lengths, which must lie on the CPU and so are known."""
    padded, lengths, batch_first = args[:3]
    value = known(lengths)
    if lengths.device.type != "cpu" or value is None:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device} {lengths.dtype} tensor"
        )
    steps = torch.empty(tuple(padded.shape[:2]), device="cpu")
    _, sizes = func(steps.unsqueeze(-1), value, batch_first)
    return _empty(mode, padded, (int(value.sum()), *padded.shape[2:])), sizes


BOUNDS: dict[Any, Any] = {
    aten.nonzero.default: _nonzero,
    aten.masked_select.default: _masked_select,
    aten.index.Tensor: _index,
    aten._unique2.default: _unique,
    aten.unique_consecutive.default: _unique,
    aten.repeat_interleave.Tensor: _repeat,
    aten.bincount.default: _bincount,
    aten._pack_padded_sequence.default: _pack,
}

# Operation -> where its indices are, the tensor and the dimension that they index.
_INDEXED: dict[Any, Any] = {
    aten.embedding.default: lambda args: (args[1], args[0].shape[0], None),
    aten.nll_loss_forward.default: lambda args: (args[1], args[0].shape[-1], args[4]),
    aten.nll_loss2d_forward.default: lambda args: (args[1], args[0].shape[1], args[4]),
    aten.gather.default: lambda args: (args[2], args[0].shape[args[1]], None),
    aten.index_select.default: lambda args: (args[2], args[0].shape[args[1]], None),
}


def check_index(func: Any, args: Any) -> None:
    """An index that is known lies in its range.

    Raises:
        IndexError: As the CPU says it; on a GPU it is a device-side assertion, raised later and elsewhere.
    """
    where = _INDEXED.get(func)
    if where is None:
        return
    index, bound, ignored = where(args)
    value = known(index)
    if value is None or not value.numel():
        return
    if ignored is not None:
        value = value[value != ignored]
    wrong = value[(value < 0) | (value >= bound)]
    if wrong.numel():
        what = "Target" if "nll_loss" in str(func) else "index"
        raise IndexError(
            f"{what} {wrong.flatten()[0].item()} is out of bounds: the size is {bound}."
        )
