"""The job uses a service without the key that it needs."""

from collections.abc import Iterator
from dataclasses import dataclass

from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.values import Constant, External, constant_of
from epochzero.check.rule import Claim, Claims, JobView, Program, Rule, Target, claim_at


@dataclass(frozen=True)
class _Service:
    """A service that needs a key.

    Attributes:
        calls: functions that need it; for a method its suffix.
        variables: one of these must be set.
        keywords: arguments that pass the key instead.
        error: the error without a key.
        sure: whether the key has no other source, such as a file in the home directory.
        off: variables, with their values, that disable the need for a key.
        off_mode: values of ``mode=`` that disable it.
    """

    calls: tuple[str, ...]
    variables: tuple[str, ...]
    keywords: tuple[str, ...]
    error: str
    sure: bool = False
    off: tuple[tuple[str, tuple[str, ...]], ...] = ()
    off_mode: tuple[str, ...] = ()


_SERVICES = (
    _Service(
        ("wandb.init",),
        ("WANDB_API_KEY",),
        ("settings",),
        "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=...)",
        off=(("WANDB_MODE", ("offline", "disabled", "dryrun")), ("WANDB_DISABLED", ("true", "1"))),
        off_mode=("offline", "disabled"),
    ),
    _Service(
        ("openai.OpenAI", "openai.AsyncOpenAI"),
        ("OPENAI_API_KEY",),
        ("api_key",),
        "openai.OpenAIError: The api_key client option must be set",
        sure=True,
    ),
    _Service(
        ("comet_ml.Experiment", "comet_ml.start"),
        ("COMET_API_KEY",),
        ("api_key",),
        "ValueError: Comet.ml requires an API key",
        off=(("COMET_MODE", ("offline", "disabled")),),
    ),
    _Service(
        ("neptune.init_run", "neptune.init"),
        ("NEPTUNE_API_TOKEN",),
        ("api_token",),
        "NeptuneMissingApiTokenException",
        off=(("NEPTUNE_MODE", ("offline", "debug")),),
        off_mode=("offline", "debug"),
    ),
)
_GATED = ("meta-llama/", "google/gemma-", "bigcode/starcoder", "black-forest-labs/FLUX.1-dev")
_HUB_KEYS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")


def _check(view: JobView) -> Claims:
    if view.target.environment is None or view.job.launch_script.activated:
        return
    present = {*view.target.environment, *view.job.environment, *_stored(view.program)}
    for call in view.calls:
        for service in _SERVICES:
            if call.name in service.calls and _needs(
                service, call, view.program, view.target, present
            ):
                yield _claim(call, service.variables[0], service.error, service.sure)
                present.update(service.variables)
        if _is_gated(call) and not present.intersection(_HUB_KEYS):
            present.add(_HUB_KEYS[0])
            yield _claim(
                call, _HUB_KEYS[0], "OSError: You are trying to access a gated repo.", False
            )


def _stored(program: Program) -> Iterator[str]:
    """Variables that the program itself sets, and those that a call of a library may set."""
    for event in program.lookups:
        if event.on == External("os.environ") and event.stored:
            yield event.name
    for call in program.calls:
        if call.name in ("wandb.login", "dotenv.load_dotenv", "huggingface_hub.login"):
            yield from (name for service in _SERVICES for name in service.variables)
            yield from _HUB_KEYS


def _needs(
    service: _Service, call: LibraryCall, program: Program, target: Target, present: set[str]
) -> bool:
    """Whether this call needs a key that nothing provides."""
    given = [name for name in service.keywords if name in call.keywords]
    if present.intersection(service.variables) or given or not call.complete:
        return False
    mode = call.keywords.get("mode")
    if mode is not None and (not isinstance(mode, Constant) or mode.value in service.off_mode):
        return False
    known = {**(target.environment or {}), **program.job.environment}
    stored = set(_stored(program))
    return not any(
        name in stored or (known.get(name) or "").lower() in values for name, values in service.off
    )


def _is_gated(call: LibraryCall) -> bool:
    name = constant_of(argument(call, 0, ""))
    return (
        call.name.endswith(".from_pretrained")
        and isinstance(name, str)
        and name.startswith(_GATED)
        and not {"token", "use_auth_token", "local_files_only"} & set(call.keywords)
    )


def _claim(call: LibraryCall, variable: str, error: str, sure: bool) -> Claim:
    return claim_at(
        call.at,
        message=f"{call.name} needs a key, but neither the job nor the target sets {variable}.",
        consequence=error,
        fix=f"Pass {variable} to the job from the platform's secrets, or disable the service.",
        severity=None if sure else "warning",
    )


RULE = Rule(
    category="illegal_argument",
    why="A login command often stores the key in a file on the author's machine. A job without "
    "this file cannot ask a user for the key, so the first call to the service fails.",
    fix="Pass the key through the platform's secrets, or disable the service.",
    source="Weights & Biases documentation, 'Environment variables'; Hugging Face Hub documentation, "
    "'Gated models'",
    check=_check,
    examples="""
        import wandb

        wandb.init()  # <-
        ==> target.toml <==
        [environment]
        HOME = "/root"
        ---- ignored if
        -
        -wandb.init()
        +wandb.init(mode='offline')
        ---- ignored if
        -import wandb
        -
        +import os, wandb
        +os.environ['WANDB_API_KEY'] = 'x'
        ----
        from openai import OpenAI
        client = OpenAI()  # <-
        ==> target.toml <==
        [environment]
        HOME = "/root"
        ---- ignored if
        -from openai import OpenAI
        -client = OpenAI()
        +$ env WANDB_MODE=disabled python train.py
        +import wandb
        +wandb.init()
        ----
        import wandb
        wandb.init()
    """,
)
