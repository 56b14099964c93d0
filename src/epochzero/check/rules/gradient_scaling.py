"""Half-precision gradients are not scaled, or are clipped while scaled."""

from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.values import Constant, External, Instance, Value
from epochzero.check.rule import Claim, Claims, JobView, Rule, claim_at
from epochzero.check.view.builds import device_named
from epochzero.check.view.torch_usage import backward_calls

_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")


def _check(view: JobView) -> Claims:
    if view.has_framework_loop or not any(call.at.loop for call in backward_calls(view.program)):
        return
    scales = view.does_anywhere("scale") or any(
        "GradScaler" in module.text for module in view.modules
    )
    for call in view.calls:
        if scales and call.name in _CLIPS and _is_scaled(view):
            yield _claim(
                call,
                "The gradients are clipped while they are scaled: unscale_ is never called.",
                "Clipping to 1 with a scale of 65536 leaves almost no step: the loss does "
                "not decrease",
                "Call scaler.unscale_(optimizer) before clipping.",
            )
            return
        if not scales and _is_half(call):
            yield _claim(
                call,
                "The model trains in float16, but its gradients are not scaled.",
                "Small gradients become zero, or the loss becomes NaN",
                "Scale the loss with torch.amp.GradScaler, or use dtype=torch.bfloat16.",
            )
            return


def _is_scaled(view: JobView) -> bool:
    """Whether a scaler steps the optimizer but never unscales the gradients first."""
    steps = any(
        call.name.endswith("GradScaler().step") and not _is_off(call.receiver)
        for call in view.calls
    )
    return steps and not view.does_anywhere("unscale_")


def _is_off(scaler: Value | None) -> bool:
    """Whether a scaler may be disabled; its methods then leave loss and gradients as they are."""
    if not isinstance(scaler, Instance) or "enabled" not in scaler.keywords:
        return False
    enabled = scaler.keywords["enabled"]
    return not (isinstance(enabled, Constant) and enabled.value is True)


def _is_half(call: LibraryCall) -> bool:
    """Whether a call enables float16 on GPUs within a training loop."""
    if call.name == "torch.cuda.amp.autocast":
        kind = argument(call, 1, "dtype")
        on = argument(call, 0, "enabled")
    elif call.name in ("torch.autocast", "torch.amp.autocast"):
        kind, on = argument(call, 1, "dtype"), call.keywords.get("enabled")
        if device_named(argument(call, 0, "device_type")) != "cuda":
            return False
    else:
        return False
    enabled = on is None or (isinstance(on, Constant) and on.value is True)
    return (
        call.at.loop
        and enabled
        and kind in (None, External("torch.float16"), External("torch.half"))
    )


def _claim(call: LibraryCall, message: str, consequence: str, fix: str) -> Claim:
    return claim_at(call.at, severity="warning", message=message, consequence=consequence, fix=fix)


RULE = Rule(
    category="framework_api_misuse",
    why="The type float16 cannot represent positive numbers below 6e-8. Gradients are often "
    "smaller. GradScaler multiplies the gradients for the backward pass. Clipping the gradient "
    "norm is correct only after unscaling.",
    fix="Use GradScaler with float16 and call unscale_ before clipping.",
    source="PyTorch documentation, Automatic mixed precision examples: typical training, gradient clipping",
    check=_check,
    examples="""
        import torch

        model = torch.nn.Linear(2, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        scaler = torch.amp.GradScaler('cuda')
        for step in range(9):
            optimizer.zero_grad()
            with torch.autocast('cuda'):
                loss = model(torch.rand(4, 2)).sum()
            scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)  # <-
            scaler.step(optimizer)
            scaler.update()
        ---- ignored if
        -scaler = torch.amp.GradScaler('cuda')
        +scaler = torch.amp.GradScaler('cuda', enabled=False)
        @@
        -    with torch.autocast('cuda'):
        -        loss = model(torch.rand(4, 2)).sum()
        +    loss = model(torch.rand(4, 2)).sum()
        ----
        import torch

        model = torch.nn.Linear(2, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        scaler = None
        for step in range(9):
            optimizer.zero_grad()
            with torch.autocast('cuda', enabled=step > 99):
                loss = model(torch.rand(4, 2)).sum()
            loss.backward()
            optimizer.step()
        ---- ignored if
        -    with torch.autocast('cuda', enabled=step > 99):
        +    with torch.autocast('cpu'):
        ---- caught if
        -    with torch.autocast('cuda', enabled=step > 99):
        +    with torch.autocast('cuda', dtype=torch.float16):  # <-
        ---- ignored if
        -    with torch.autocast('cuda', enabled=step > 99):
        +    with torch.autocast('cuda', dtype=torch.bfloat16):
    """,
)
