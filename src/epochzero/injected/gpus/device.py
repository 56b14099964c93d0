"""What the program sees of the pretended GPUs: `torch.cuda` answers as on the target."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from epochzero.injected.patches import replaced

# Streaming multiprocessors by capability, of the largest card (NVIDIA's data sheets).
_PROCESSORS = {
    (6, 0): 56, (6, 1): 28, (7, 0): 80, (7, 5): 40, (8, 0): 108, (8, 6): 84, (8, 9): 142,
    (9, 0): 132, (10, 0): 148, (12, 0): 188,
}  # fmt: skip
# torch.cuda.FloatTensor and so on: the types of before torch 0.4.
_OLD_TYPES = {
    "FloatTensor": torch.float32, "DoubleTensor": torch.float64, "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16, "LongTensor": torch.int64, "IntTensor": torch.int32,
    "ShortTensor": torch.int16, "ByteTensor": torch.uint8, "CharTensor": torch.int8,
    "BoolTensor": torch.bool,
}  # fmt: skip


class Stream:
    """Work in order; nothing runs, so nothing is awaited."""

    cuda_stream = stream_id = device_index = priority = 0

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device = torch.device("cuda", 0)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> Any:
        """An event that has happened."""
        return event or Event()

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """All work is done."""
        return True


class Event:
    """A point in a stream, passed already."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        """It has happened."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """It has happened."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, event: Any) -> float:
        """Milliseconds between two events; time is not simulated."""
        return 1.0


class Graph:
    """A CUDA graph: its body runs once, as it would when captured."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def capture_begin(self, *arguments: Any, **options: Any) -> None:
        """Recording changes no shapes."""

    def capture_end(self) -> None:
        """Recording changes no shapes."""

    def replay(self) -> None:
        """What was captured would run again."""

    def reset(self) -> None:
        """Nothing is held."""

    def pool(self) -> tuple[int, int]:
        """The name of the graph's memory pool."""
        return (0, 0)


class Generator(torch._C.Generator):
    """Random numbers: those of a GPU are the CPU's, since no values are drawn."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        self = super().__new__(cls, "cpu")  # type: ignore[call-arg]
        self._place = torch.device(device)  # type: ignore[attr-defined]
        return self

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where the program put it."""
        place: torch.device = self._place  # type: ignore[attr-defined]
        return torch.device("cuda", place.index or 0) if place.type == "cuda" else place


def _old_type(dtype: torch.dtype) -> Any:
    def tensor(*sizes: Any) -> torch.Tensor:
        if len(sizes) == 1 and not isinstance(sizes[0], (int, torch.Size)):
            return torch.as_tensor(sizes[0], dtype=dtype).to("cuda")
        return torch.empty(*sizes, dtype=dtype, device="cuda")

    tensor.dtype = dtype  # type: ignore[attr-defined]
    return tensor


def _properties(gpu: Mapping[str, Any]) -> SimpleNamespace:
    major, minor = gpu["capability"]
    return SimpleNamespace(
        name=gpu["model"], major=major, minor=minor, total_memory=gpu["memory_bytes"],
        multi_processor_count=_PROCESSORS.get((major, minor), 108), warp_size=32,
        max_threads_per_multi_processor=2048 if (major, minor) in ((8, 0), (9, 0), (10, 0)) else 1536,
        is_integrated=False, is_multi_gpu_board=False, gcnArchName="", L2_cache_size=50 << 20,
        regs_per_multiprocessor=65536, shared_memory_per_block=49152,
        shared_memory_per_block_optin=101376, shared_memory_per_multiprocessor=102400,
    )  # fmt: skip


def _number(device: Any, current: int) -> int:
    if device is None:
        return current
    if isinstance(device, int):
        return device
    return current if torch.device(device).index is None else int(torch.device(device).index)


class _Answers:
    """The functions of `torch.cuda` for a list of GPUs."""

    def __init__(
        self,
        gpus: Sequence[Mapping[str, Any]],
        memory: Callable[[], tuple[int, int]],
        emptied: Callable[[], None],
    ) -> None:
        self.gpus = list(gpus)
        self.memory = memory
        self.emptied = emptied
        self.current = 0

    def properties(self, device: Any = None) -> SimpleNamespace:
        return _properties(self.gpus[self._valid(device)])

    def set_device(self, device: Any) -> None:
        self.current = self._valid(device)

    def free_and_total(self, device: Any = None) -> tuple[int, int]:
        total = self.gpus[self._valid(device)]["memory_bytes"]
        return max(total - self.memory()[0], 0), total

    def _valid(self, device: Any) -> int:
        number = _number(device, self.current)
        if not 0 <= number < len(self.gpus):
            raise RuntimeError("CUDA error: invalid device ordinal")
        return number

    def functions(self) -> dict[str, Any]:
        """What replaces the functions of the same names."""
        capabilities = [tuple(gpu["capability"]) for gpu in self.gpus]
        names = sorted({f"sm_{major}{minor}" for major, minor in capabilities})
        live: Callable[..., int] = lambda *a, **k: self.memory()[0]  # noqa: E731
        peak: Callable[..., int] = lambda *a, **k: self.memory()[1]  # noqa: E731
        nothing = lambda *a, **k: None  # noqa: E731
        stream = lambda *a, **k: Stream()  # noqa: E731
        return {
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "device_count": lambda: len(self.gpus),
            "current_device": lambda: self.current,
            "set_device": self.set_device,
            "get_device_name": lambda device=None: self.properties(device).name,
            "get_device_capability": lambda device=None: (
                self.properties(device).major,
                self.properties(device).minor,
            ),
            "get_device_properties": self.properties,
            "get_arch_list": lambda: names,
            "can_device_access_peer": lambda *a: True,
            "is_bf16_supported": lambda including_emulation=True: (
                capabilities[self.current] >= (8, 0) or including_emulation
            ),
            "is_tf32_supported": lambda: capabilities[self.current] >= (8, 0),
            "mem_get_info": self.free_and_total,
            **_each(live, "memory_allocated", "memory_reserved"),
            **_each(peak, "max_memory_allocated", "max_memory_reserved"),
            "memory_stats": lambda *a: {
                "allocated_bytes.all.current": live(),
                "allocated_bytes.all.peak": peak(),
            },
            "empty_cache": self.emptied,
            "memory_summary": lambda *a, **k: "",
            # Of a GPU: seed and offset, 8 bytes each (torch/distributed/tensor/_random.py, _PhiloxState).
            "get_rng_state": lambda *a: torch.zeros(16, dtype=torch.uint8),
            "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8) for _ in self.gpus],
            "utilization": lambda *a: 0,
            "Stream": Stream,
            "Event": Event,
            "ExternalStream": Stream,
            **_each(stream, "current_stream", "default_stream"),
            "stream": lambda stream: nullcontext(stream),
            "device": lambda device: nullcontext(device),
            "device_of": lambda tensor: nullcontext(tensor),
            "CUDAGraph": Graph,
            "graph": lambda graph, *a, **k: nullcontext(graph),
            "make_graphed_callables": lambda callables, *a, **k: callables,
            "is_current_stream_capturing": lambda: False,
            **_each(nothing, "init", "_lazy_init", "synchronize", "ipc_collect", "set_stream", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all", "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached", "reset_accumulated_memory_stats", "set_per_process_memory_fraction"),
            **{name: _old_type(dtype) for name, dtype in _OLD_TYPES.items()},
        }  # fmt: skip


def _each(answer: Callable[..., Any], *names: str) -> dict[str, Any]:
    """The same answer of several functions, as objects of their own: torch's compiler lists each once."""
    return {name: functools.partial(answer) for name in names}


@contextmanager
def pretended(
    gpus: Sequence[Mapping[str, Any]],
    memory: Callable[[], tuple[int, int]],
    emptied: Callable[[], None],
) -> Iterator[None]:
    """`torch.cuda` answers for these GPUs; everything is as before in the end.

    Args:
        gpus: Of each its ``model``, ``memory_bytes`` and ``capability``.
        memory: Gives the bytes that are allocated now, and the most that were.
        emptied: Called when the program gives back what the allocator keeps.
    """
    answers = _Answers(gpus, memory, emptied)
    functions = answers.functions()
    nothing = lambda *a, **k: None  # noqa: E731
    with ExitStack() as stack:
        stack.enter_context(replaced(torch.cuda, functions))
        for part in (torch.cuda.memory, torch.cuda.random, torch.cuda.streams, torch.cuda.graphs):
            same = {name: value for name, value in functions.items() if name in vars(part)}
            stack.enter_context(replaced(part, same))
        stack.enter_context(
            replaced(
                torch.cuda.nvtx,
                dict.fromkeys(
                    ("range_push", "range_pop", "mark", "range_start", "range_end"), nothing
                ),
            )
        )
        accelerator = {
            "is_available": lambda: True,
            "device_count": functions["device_count"],
            "current_accelerator": lambda check_available=False: torch.device("cuda"),
            "current_device_index": functions["current_device"],
            "synchronize": nothing,
        }
        if hasattr(torch, "accelerator"):
            stack.enter_context(replaced(torch.accelerator, accelerator))
        cudnn = {"is_available": lambda: True, "version": lambda: 91002}
        stack.enter_context(replaced(torch.backends.cudnn, cudnn))
        stack.enter_context(replaced(torch.backends.cuda, {"is_built": lambda: True}))
        stack.enter_context(replaced(torch, {"Generator": Generator}))
        stack.enter_context(replaced(torch.Tensor, {"record_stream": nothing}))
        # A build for CUDA asks the driver for its devices before cuDNN runs a recurrent network.
        enabled = torch._C._get_cudnn_enabled()
        torch._C._set_cudnn_enabled(False)
        stack.callback(torch._C._set_cudnn_enabled, enabled)
        yield
