"""The GPUs of this node while a job runs: by NVIDIA's management library, where it is installed.

Source: NVML API reference; the package ``nvidia-ml-py`` (the extra ``gpu``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from epochzero.run.records.model import GpuSample

_MILLI = 1000
# nvmlClocksEventReasons -> why the clock is reduced. That a GPU idles, or that an administrator has set its
# clock, is no fault.
_THROTTLED = {
    0x04: "power limit", 0x08: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake",
}  # fmt: skip


class GpuReader:
    """The GPUs that a job may use; none where the library, its driver or a GPU is missing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Opens the library.

        Args:
            environment: of the job; ``CUDA_VISIBLE_DEVICES`` says which GPUs are its own.
        """
        self._handles: dict[int, Any] = {}
        try:
            import pynvml
        except ImportError:
            return
        self._nvml = pynvml
        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            count = pynvml.nvmlDeviceGetCount()
            self._handles = {
                index: pynvml.nvmlDeviceGetHandleByIndex(index)
                for index in _visible(environment, count)
            }

    def read(self) -> tuple[GpuSample, ...]:
        """Each of them now; one that does not answer, as after it fell off the bus, is left out."""
        found = []
        for index, handle in self._handles.items():
            with suppress(self._nvml.NVMLError):
                found.append(self._read(index, handle))
        return tuple(found)

    def _read(self, index: int, handle: Any) -> GpuSample:
        nvml = self._nvml
        try:  # As nvidia-smi counts: without what the driver reserves for itself.
            memory = nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
        except nvml.NVMLError:  # a driver before 510
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        temperature = power = clock = None
        reasons = 0
        # Not every GPU has sensors, and parts of one (MIG) have none.
        with suppress(nvml.NVMLError):
            temperature = float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        with suppress(nvml.NVMLError):
            power = nvml.nvmlDeviceGetPowerUsage(handle) / _MILLI
        with suppress(nvml.NVMLError):
            clock = float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        with suppress(nvml.NVMLError):
            reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return GpuSample(
            index,
            float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            int(memory.used),
            int(memory.total),
            temperature,
            power,
            clock,
            ", ".join(dict.fromkeys(text for bit, text in _THROTTLED.items() if reasons & bit)),
        )


def _visible(environment: Mapping[str, str], count: int) -> list[int]:
    """Indices of the GPUs that a job may use: all, where it names them by anything but an index."""
    named = [part.strip() for part in environment.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    if "CUDA_VISIBLE_DEVICES" not in environment or not all(n.lstrip("-").isdigit() for n in named):
        return list(range(count)) if environment.get("CUDA_VISIBLE_DEVICES") != "" else []
    # What stands behind an index that is no GPU is not visible.
    indices = [int(name) for name in named]
    end = next((at for at, index in enumerate(indices) if not 0 <= index < count), len(indices))
    return sorted(set(indices[:end]))
