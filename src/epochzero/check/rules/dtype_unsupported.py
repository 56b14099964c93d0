"""The target's GPUs are too old for a number format or kernel."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.check.builds import lowest_capability
from epochzero.check.program.events import Called
from epochzero.check.program.values import Constant, External, Value
from epochzero.check.rules.base import (
    Claims,
    Program,
    Reach,
    Rule,
    Severity,
    Target,
    claim_at,
    examples,
    guarded,
)

_Need = tuple[tuple[int, int], Severity, str, str]
_FLASH: _Need = (
    (8, 0),
    "error",
    "FlashAttention 2",
    "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
)
_FP8: _Need = (
    (8, 9),
    "error",
    "FP8",
    "RuntimeError: compute capability 8.9 or higher is required for FP8 execution",
)
# Newer versions of PyTorch emulate it slowly; older ones reject it.
_BF16: _Need = (
    (8, 0),
    "warning",
    "bfloat16",
    "RuntimeError: Current CUDA Device does not support bfloat16, or a slow emulation",
)


def _check(program: Program, target: Target) -> Claims:
    capability = lowest_capability(target)
    if capability is None:
        return
    reach = Reach.of(program)
    for call in program.calls:
        for least, severity, what, consequence in _needs(call):
            if capability < least and not guarded(call.at, RuntimeError):
                certain = reach.severity(call.at) == "error"
                yield claim_at(
                    call.at,
                    severity=severity if certain else "warning",
                    message=f"{what} needs compute capability {least[0]}.{least[1]}; the target's GPUs "
                    f"have {capability[0]}.{capability[1]}.",
                    consequence=consequence,
                    fix="Use float16 with gradient scaling and another attention, or request "
                    "newer GPUs.",
                )
                break


def _needs(call: Called) -> Iterator[_Need]:
    if call.name.startswith("flash_attn.flash_attn_"):
        yield _FLASH
    if _text(call.keywords.get("attn_implementation")) == "flash_attention_2":
        yield _FLASH
    if call.name == "torch._scaled_mm" or (
        call.name == "transformer_engine.pytorch.fp8_autocast" and _is_true(call, "enabled")
    ):
        yield _FP8
    if _is_bf16(call):
        yield _BF16


def _is_bf16(call: Called) -> bool:
    last = call.name.rpartition(".")[2]
    if last == "autocast" and call.name.startswith("torch."):
        device = call.arguments[0] if call.arguments else call.keywords.get("device_type")
        on_cpu = _text(device) == "cpu" or ".cpu." in call.name
        values = [*call.arguments[1:2], call.keywords.get("dtype")]
        return not on_cpu and any(value == External("torch.bfloat16") for value in values)
    if last.endswith("TrainingArguments"):
        return _text(call.keywords.get("bf16")) == "True"
    if last == "Trainer" and "lightning" in call.name:
        return _text(call.keywords.get("precision")) in ("bf16", "bf16-mixed", "bf16-true")
    return last == "Accelerator" and _text(call.keywords.get("mixed_precision")) == "bf16"


def _is_true(call: Called, keyword: str) -> bool:
    return call.complete and _text(call.keywords.get(keyword, Constant(True))) == "True"


def _text(value: Value | None) -> str:
    return str(value.value) if isinstance(value, Constant) else ""


RULE = Rule(
    title="The target's GPUs are too old for a number format or kernel",
    category="framework_api_misuse",
    why="bfloat16 and FlashAttention 2 require Ampere, FP8 requires Ada or Hopper. Older GPUs "
    "reject the call, or emulate it many times slower.",
    fix="Use what the GPU supports, or request another GPU.",
    source="NVIDIA, CUDA C++ Programming Guide, features by compute capability; Dao-AILab/flash-attention "
    "README, supported GPUs",
    check=_check,
    catches=examples("""
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained('x', attn_implementation='flash_attention_2')  # <-
        ==> target.toml <==
        gpus = "1 x T4"
        ----
        import torch

        with torch.autocast('cuda', dtype=torch.bfloat16):  # <-
            print(1)
        ==> target.toml <==
        gpus = "4 x V100"
        ----
        from transformers import TrainingArguments

        args = TrainingArguments('out', bf16=True)  # <-
        ==> target.toml <==
        gpus = "1 x T4"
        ----
        import torch

        a = torch.ones(16, 16)
        b = torch._scaled_mm(a, a, a, a)  # <-
        ==> target.toml <==
        gpus = "8 x A100"
    """),
    leaves=examples("""
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained('x', attn_implementation='flash_attention_2')
        ==> target.toml <==
        gpus = "1 x A100"
        ----
        import torch

        with torch.autocast('cuda', dtype=torch.bfloat16):
            print(1)
        ==> target.toml <==
        gpus = "1 x H100"
        ----
        import torch

        with torch.autocast('cuda', dtype=torch.bfloat16):
            print(1)
        ----
        import torch

        a = torch.ones(16, 16)
        b = torch._scaled_mm(a, a, a, a)
        ==> target.toml <==
        gpus = "1 x H100"
        ----
        import torch

        with torch.autocast('cpu', dtype=torch.bfloat16):
            print(1)
        ==> target.toml <==
        gpus = "1 x T4"
    """),
)
