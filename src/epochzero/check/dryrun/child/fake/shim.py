"""torch accepts fake tensors of the device ``cuda`` on a machine without a GPU.

A build for the CPU lacks two things (torch 2.13; pytorch#163016, of which #163187 merged only half), which
are provided through ``ctypes``:

1. a guard: without one a copy raises, and autograd aborts the process. It counts no devices, so that
   torch's own ``_ensureCUDADeviceGuardSet`` replaces it by its ``FakeGuardImpl``, as it does in a build
   for CUDA on a machine without a GPU;
2. the answer *yes* to ``CUDAHooks::isBuilt``, which autograd asks where gradients meet.

A build for CUDA has both, but its ``hasPrimaryContext`` raises if the device does not exist, and backward
calls it. In both builds it answers *no*.

Both are private to torch. What is not found as expected raises `Unfit`, and what was given is verified.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import torch

CUDA = 1  # c10/core/DeviceType.h
DEVICE_TYPES = 22
REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
REGISTER = "_ZN3c104impl19registerDeviceGuardENS_10DeviceTypeEPKNS0_24DeviceGuardImplInterfaceE"
HOOKS = "_ZN2at6detail12getCUDAHooksEv"
# The table of virtual functions: offset to top, type information, then ~D1, ~D0, isBuilt, isAvailable,
# hasPrimaryContext (aten/src/ATen/detail/AcceleratorHooksInterface.h).
HEAD, IS_BUILT, HAS_PRIMARY_CONTEXT, SLOTS = 2, 2, 4, 128

# What C++ points to must live as long as the process.
_kept: list[Any] = []


class Unfit(Exception):  # noqa: N818
    """This torch cannot pretend a GPU; the message says why."""


def install() -> None:
    """Make this process's torch accept fake tensors of ``cuda``; once, for good.

    Raises:
        Unfit: The build lacks what is needed.
    """
    if _kept:
        return
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    try:
        core = ctypes.CDLL(os.path.join(folder, "libc10.so"))
        library = ctypes.CDLL(os.path.join(folder, "libtorch_cpu.so"))
        if not (torch.version.cuda or torch.version.hip):
            _give_guard(core)
        _answer_hooks(library)
    except (OSError, ValueError, AttributeError) as error:
        raise Unfit(f"torch {torch.__version__} represents devices differently: {error}") from error


def _give_guard(core: ctypes.CDLL) -> None:
    registry = (ctypes.c_void_p * DEVICE_TYPES).in_dll(core, REGISTRY)
    if registry[CUDA]:
        return
    nothing = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)(lambda this: 0)
    address = ctypes.cast(nothing, ctypes.c_void_p).value
    functions = (ctypes.c_void_p * 64)(*[address] * 64)
    guard = (ctypes.c_void_p * 2)(ctypes.addressof(functions), 0)
    _kept.extend((nothing, functions, guard))
    register = getattr(core, REGISTER)
    register.argtypes, register.restype = [ctypes.c_int8, ctypes.c_void_p], None
    register(CUDA, ctypes.addressof(guard))
    torch._C._ensureCUDADeviceGuardSet()
    if registry[CUDA] == ctypes.addressof(guard):
        raise Unfit(f"torch {torch.__version__} has no fake guard for devices")


def _answer_hooks(library: ctypes.CDLL) -> None:
    hooks = getattr(library, HOOKS)
    hooks.restype = ctypes.c_void_p
    table = ctypes.c_void_p.from_address(hooks())
    if table.value is None:
        raise Unfit(f"torch {torch.__version__} has no CUDA hooks")
    old, size = table.value, HEAD + SLOTS
    functions = (ctypes.c_void_p * size)(
        *(ctypes.c_void_p * size).from_address(old - HEAD * ctypes.sizeof(ctypes.c_void_p))
    )
    # Functions of C, not of Python: they are called without the interpreter's lock, and after its end.
    yes, no = ctypes.pythonapi.Py_IsInitialized, ctypes.CDLL(None).sched_yield  # give 1, and 0
    functions[HEAD + IS_BUILT] = ctypes.cast(yes, ctypes.c_void_p).value
    functions[HEAD + HAS_PRIMARY_CONTEXT] = ctypes.cast(no, ctypes.c_void_p).value
    _kept.append(functions)
    # Kept when the interpreter takes its modules down, too.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(functions))
    table.value = ctypes.addressof(functions) + HEAD * ctypes.sizeof(ctypes.c_void_p)
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None or accelerator.type != "cuda":
        table.value = old
        raise Unfit(f"the CUDA hooks of torch {torch.__version__} are in a different order")
