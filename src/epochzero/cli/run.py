"""``epochzero run``: run a job, supervise it and store its records."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero import platform
from epochzero.cli.destination import send_option
from epochzero.cli.output import file_option
from epochzero.cli.run_screen import RunScreen, say
from epochzero.cli.store_options import store_option
from epochzero.errors import InputError, suggestion
from epochzero.run.notes import TOOLS
from epochzero.run.process.container_init import stand_behind_init
from epochzero.run.process.supervisor import SupervisorOptions
from epochzero.run.process.terminal import closed_streams
from epochzero.run.records.home import homes
from epochzero.run.reports.notifications import Webhook
from epochzero.run.request import Retries, RunRequest
from epochzero.run.session import RunResult, run_session
from epochzero.run.watch.live import WatchOptions, check_words

if TYPE_CHECKING:
    from epochzero.run.inject.grammar import InjectedFault
    from epochzero.run.observers.hangs import OnHang
    from epochzero.run.reports.upload import Destination


_POLICY = "auto"


def _size(_: click.Context, __: click.Parameter, text: str) -> int:
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number = text.strip().upper().removesuffix("B").rstrip()
    unit = number[-1:] if number[-1:] in units else ""
    with suppress(ValueError, OverflowError):
        if (size := int(float(number.removesuffix(unit)) * units[unit])) > 0:
            return size
    raise click.BadParameter("must be a size such as 64MB")


def _webhook(_: click.Context, __: click.Parameter, url: str | None) -> Webhook | None:
    try:
        return Webhook(url) if url else None
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def _retries(_: click.Context, __: click.Parameter, text: str) -> Retries:
    words: dict[str, Retries] = {"advise": "advise", "auto": "auto", "never": "never"}
    if text in words:
        return words[text]
    if text.isascii() and text.isdigit():
        return int(text)
    hint = suggestion(text, words, "")
    raise click.BadParameter(f"must be advise, auto, never or a number{hint and f'; {hint}'}")


def _faults(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> frozenset[str]:
    try:
        check_words(words)
    except InputError as error:
        raise click.BadParameter(str(error)) from error
    return frozenset(words)


def _injected(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> tuple[InjectedFault, ...]:
    if not texts:
        return ()
    from epochzero.run.inject.grammar import parsed_all

    try:
        return parsed_all(texts)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


@click.command(name="run", context_settings={"allow_interspersed_args": False})
@click.argument("job", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...", required=True)
@click.option("--name", metavar="NAME", help="Name of the job.  [default: name of its script]")
@click.option(
    "--gpus",
    metavar="N",
    type=click.IntRange(min=0),
    help="Total number of GPUs of the job.  [default: from the scheduler]",
)
@click.option(
    "--target",
    metavar="TARGET",
    help="Target platform for --check and --simulate: a file or a preset.",
)
@click.option(
    "--simulate",
    "simulates",
    is_flag=True,
    help="Run the job as if this machine were the target platform.",
)
@click.option(
    "--ranks",
    metavar="N",
    type=click.IntRange(1, 256),
    help="With --simulate: start N ranks on this machine instead of the launcher in COMMAND.",
)
@click.option(
    "--build-packages",
    is_flag=True,
    help="With --simulate: install the packages of the target in a virtual environment first.",
)
@click.option(
    "--check",
    "first",
    is_flag=True,
    help="Check the job first; do not start it if errors are found.",
)
@click.option(
    "--retries",
    metavar="advise|auto|never|N",
    default="advise",
    show_default=True,
    callback=_retries,
    help="Restart a failed job if the policy recommends it (auto), never, or up to N times after any "
    "failure; advise only prints what auto would do.",
)
@click.option(
    "--policy",
    metavar="NAME|FILE",
    default=_POLICY,
    show_default=True,
    help="Retry policy.",
)
@file_option("--advice-file", help="Write advice for the scheduler as JSON after a failure.")
@click.option(
    "--advice-exit-codes",
    is_flag=True,
    help="After a failure, exit with 75 (retry), 76 (retry on another node) or 78 (do not retry).",
)
@store_option
@send_option
@click.option(
    "--grace",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="Time from SIGINT or SIGTERM until the job is killed; also the time that ranks may stay"
    " silent after another rank failed.",
)
@click.option(
    "--stall",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="Report a hang after this time without progress, with the line where each rank waits.",
)
@click.option(
    "--on-hang",
    type=click.Choice(("report", "dump", "kill", "restart")),
    default="report",
    show_default=True,
    help="Action if the job hangs: report it, also dump native stacks, kill the job with exit code 80, or"
    " restart it (only once if it hangs at the same line again).",
)
@click.option(
    "--keep-output",
    "keep",
    metavar="SIZE",
    default="64MB",
    show_default=True,
    callback=_size,
    help="Maximum size of the stored head of each log, and of its tail.",
)
@click.option(
    "--notify",
    metavar="URL",
    envvar="EPOCHZERO_NOTIFY",
    show_envvar=True,
    callback=_webhook,
    help="Notify this webhook of a failure: Slack, Mattermost, Discord, Teams, or any that accepts JSON.",
)
@click.option(
    "--note",
    "notes",
    type=click.Choice(TOOLS),
    multiple=True,
    help="After a failure, add the diagnosis to the job's runs in this tool; repeatable.",
)
@click.option(
    "--opentelemetry",
    "spans",
    is_flag=True,
    help="Export spans of the job and its attempts over OTLP, as the OTEL_EXPORTER_OTLP_* variables specify.",
)
@click.option("--watch", "watches", is_flag=True, help="Detect training faults (PyTorch).")
@click.option(
    "--fail-on",
    metavar="WORD|any",
    multiple=True,
    callback=_faults,
    help="With --watch: terminate the job with exit code 79 when this fault or symptom is confirmed; repeatable.",
)
@click.option(
    "--values",
    metavar="LAYER[,LAYER]",
    default="",
    help="With --watch: store the values of these layers and parameters over time.",
)
@click.option(
    "--inject",
    "faults",
    metavar="FAULT@WHEN",
    multiple=True,
    callback=_injected,
    help="Inject a fault once, at step:N or after a time (30s, 5m): kill-rank[=R], host-oom,"
    " preempt (:notice=30s), disk-full, network-drop[=fail|hang], slow-storage=200ms (all"
    " three :for=10s), oom (step:N only); repeatable.",
)
@click.option(
    "--capture",
    is_flag=True,
    help="Capture what `epochzero replay` needs to rerun a failing step (PyTorch).",
)
@click.option("--quiet", is_flag=True, help="Print nothing, regardless of how the job exits.")
@click.pass_context
def command(
    context: click.Context,
    job: tuple[str, ...],
    name: str | None,
    gpus: int | None,
    target: str | None,
    simulates: bool,
    ranks: int | None,
    build_packages: bool,
    first: bool,
    retries: Retries,
    policy: str,
    advice_file: Path | None,
    advice_exit_codes: bool,
    store: str | None,
    send: Destination | None,
    grace: float,
    stall: float,
    on_hang: OnHang,
    keep: int,
    notify: Webhook | None,
    notes: tuple[str, ...],
    spans: bool,
    watches: bool,
    fail_on: frozenset[str],
    values: str,
    faults: tuple[InjectedFault, ...],
    capture: bool,
    quiet: bool,
) -> None:
    """Run a job, record it, and diagnose it if it fails.

    Input, output, signals and the exit code pass through unchanged. Processes that the job leaves
    behind are killed within two seconds. If the job fails, the root cause, its place in the code, the
    cost and the retry advice are printed on standard error. Everything is stored in EPOCHZERO_HOME
    (~/.local/state/epochzero); `epochzero jobs` and `epochzero show` print it later.

    \b
    epochzero run -- python train.py --epochs 3
    epochzero run --name resnet --gpus 8 -- torchrun --nproc_per_node 8 train.py
    epochzero run --retries auto --check --target cluster.toml -- python train.py
    epochzero run --watch --fail-on loss_not_a_number -- python train.py
    epochzero run --simulate --target cluster.toml -- python train.py
    epochzero run --inject kill-rank=1@step:200 -- torchrun --nproc_per_node 4 train.py
    epochzero run --capture -- python train.py
    srun epochzero run -- python train.py

    SIGINT and SIGTERM are forwarded. After --grace seconds, or at a second SIGINT, the whole process
    tree is killed.

    The exit code is that of the job: 128 + n if signal n killed it, 127 if the command was not found,
    126 if it could not be executed. It is 1 if --check found errors, 79 if --fail-on terminated the
    job, 80 if --on-hang killed it.
    """
    if not watches and (fail_on or values):
        raise click.UsageError("--fail-on and --values require --watch")
    if watches and find_spec("numpy") is None:  # Before the job starts, not when it has ended.
        raise InputError("--watch requires NumPy: pip install 'epochzero[watch]'")
    if not simulates and (ranks is not None or build_packages):
        raise click.UsageError("--ranks and --build-packages require --simulate")
    if (simulates or faults) and platform.NAME != "Linux":
        raise InputError(f"--simulate and --inject require Linux; this is {platform.NAME}")
    if simulates and target is None:
        raise click.UsageError("--simulate requires --target, such as --target cluster.toml")
    if os.getpid() == 1 and (code := stand_behind_init()) is not None:
        context.exit(code)
    closed = closed_streams()
    environment = _environment()
    if first and not _checked(job, target, environment):
        context.exit(1)
    request = RunRequest(
        command=job,
        environment=environment,
        folder=_folder(environment),
        homes=homes(environment),
        name=name or "",
        gpus=gpus,
        policy=Path(policy) if os.sep in policy or policy.endswith(".toml") else policy,
        retries=retries,
        target=target,
        options=SupervisorOptions(grace, keep, closed),
        stall=stall,
        on_hang=on_hang,
        notes=notes,
        spans=spans,
        watch=WatchOptions(fail_on, tuple(filter(None, values.split(",")))) if watches else None,
        simulate=target if simulates else None,
        ranks=ranks,
        build_packages=build_packages,
        faults=faults,
        capture=capture,
    )
    result = run_session(request, lambda made: RunScreen(made, store, send, notify, quiet=quiet))
    code = result.ended.exit_code
    if code and result.decision is not None:
        code = _advised(result, advice_file, advice_exit_codes)
    context.exit(code)


def _checked(job: Sequence[str], target: str | None, environment: Mapping[str, str]) -> bool:
    """Print the failures that a check predicts; return whether there are none."""
    from epochzero.check import check
    from epochzero.cli.formats import formats

    began = time.perf_counter()
    found = check(job, target, environment=environment)
    errors = any(finding.severity == "error" for finding in found.findings)
    if errors:
        seconds = time.perf_counter() - began
        formats()["text"].findings(found, folder=Path(), verbose=False, seconds=seconds)
        say("the job was not started")
    return not errors


def _advised(result: RunResult, file: Path | None, by_exit_code: bool) -> int:
    """Write the advice for a scheduler, and return the exit code."""
    from epochzero.run.retry.advice import EXIT_CODES, advice, write_advice

    assert result.decision is not None
    if file is not None:
        code = result.ended.exit_code
        try:
            write_advice(
                file,
                advice(result.decision, job=result.job, attempt=result.attempt, exit_code=code),
            )
        except InputError as error:
            say(str(error))
    return EXIT_CODES[result.decision.action] if by_exit_code else result.ended.exit_code


def _environment() -> dict[str, str]:
    """Return the environment of this process without the locale that Python adds."""
    environment = dict(os.environ)
    with suppress(OSError):
        given = Path("/proc/self/environ").read_bytes()
        if "LC_CTYPE" in environment and not (b"\0" + given).count(b"\0LC_CTYPE="):
            del environment["LC_CTYPE"]
    return environment


def _folder(environment: Mapping[str, str]) -> str:
    """Return the working directory, which may have been deleted."""
    with suppress(OSError):
        return os.getcwd()
    return environment.get("PWD", "")
