"""``epochzero check``: what will go wrong when a job runs on its platform."""

from __future__ import annotations

import atexit
import gc
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.check import CheckRequest, CheckResult, DataSet, Limits, SourceLocation, run_check
from epochzero.check.rules import builtin
from epochzero.cli.formats import formats, names_of
from epochzero.cli.output import OutputFile, folder_option, format_option
from epochzero.cli.render_findings import write_rules
from epochzero.cli.store_options import past_peaks

if TYPE_CHECKING:
    from epochzero.cli.progress import DryRunProgress


def _names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for text in given for name in text.split(",") if name.strip())
    if given and not names:
        raise click.BadParameter("contains no rules; `epochzero check --rules` lists them")
    return names


def _data(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[DataSet, ...]:
    pairs = [text.rpartition("=") for text in given]
    if not all(path and profile for path, _, profile in pairs):
        raise click.BadParameter("must be a path and its profile: train.csv=train.profile.json")
    return tuple(DataSet(path, profile, SourceLocation("<command>")) for path, _, profile in pairs)


@click.command(
    name="check", context_settings={"allow_interspersed_args": False}, no_args_is_help=True
)
@click.argument("job", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...")
@click.option(
    "--target",
    metavar="TARGET",
    help="Target platform: a file or a preset.  [default: from pyproject.toml, else this machine]",
)
@format_option("Output format.", names_of("findings"))
@click.option(
    "--select",
    multiple=True,
    metavar="RULE,..",
    callback=_names,
    help="Run only these rules.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="RULE,..",
    callback=_names,
    help="Skip these rules.",
)
@folder_option(
    "--chdir",
    "folder",
    default=Path("."),
    help="Working directory of the command.  [default: .]",
    exists=True,
)
@click.option(
    "--data",
    multiple=True,
    metavar="PATH=PROFILE",
    callback=_data,
    help="Validate a data set against its profile.  [default: from pyproject.toml]",
)
@click.option(
    "--dry",
    is_flag=True,
    help="Also perform a dry run: shortened loops, simulated GPUs, no side effects.",
)
@click.option(
    "--dry-time",
    "dry_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    help="Time limit of the dry run.",
)
@click.option(
    "--synthesize",
    is_flag=True,
    help="Generate missing data from their profiles for the dry run; requires --dry.",
)
@click.option(
    "--memory-picture",
    "drawn",
    metavar="FILE",
    type=OutputFile(".svg"),
    help="Plot GPU memory over the steps of the job (SVG); implies --dry.",
)
@click.option(
    "--fit",
    metavar="OPTION",
    default="",
    help="Find the largest value of this job option that fits in GPU memory; implies --dry.",
)
@click.option(
    "--layout",
    metavar="LAYOUT",
    default="",
    help="Estimate the memory per rank in this parallel layout, such as fsdp=8,tensor=2; implies --dry.",
)
@click.option("--verbose", is_flag=True, help="List everything that could not be checked.")
@click.option(
    "--serve",
    "serves",
    is_flag=True,
    help="Stay in memory and run later checks of this user faster.",
)
@click.option("--rules", "list_rules", is_flag=True, help="List the rules and exit.")
@click.pass_context
def command(
    context: click.Context,
    job: tuple[str, ...],
    target: str | None,
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folder: Path,
    data: tuple[DataSet, ...],
    dry: bool,
    dry_seconds: float,
    synthesize: bool,
    drawn: Path | None,
    fit: str,
    layout: str,
    verbose: bool,
    serves: bool,
    list_rules: bool,
) -> None:
    """Predict failures of the job that COMMAND starts, before it is submitted.

    COMMAND is what you would submit: python, torchrun, accelerate, deepspeed, srun, docker run, a shell
    script, a Slurm batch file, a Kubernetes job. EpochZero analyzes it without running it. With --dry,
    its Python code runs in a sandbox on this machine, with shortened loops and simulated GPUs.

    \b
    epochzero check -- python train.py --epochs 3
    epochzero check --target cluster.toml -- torchrun --nproc_per_node 8 train.py
    epochzero check --format sarif -- sbatch job.sh
    epochzero check --dry -- python train.py
    epochzero check --target T4 --fit batch-size -- python train.py
    epochzero check --target A100 --layout fsdp=8,tensor=2 -- python train.py
    epochzero check --rules
    epochzero check --serve &

    Exit code 1 if the job would fail, 0 if there are no errors, 2 if the input is invalid or contains
    nothing to check.
    """
    if list_rules:
        write_rules(builtin())
        return
    if serves:
        if job:
            raise click.UsageError(
                "--serve takes no command: it runs the checks that later commands request"
            )
        _serve()
        return
    if not job:
        raise click.UsageError("missing command: epochzero check -- python train.py")
    if synthesize and not dry:
        raise click.UsageError("--synthesize requires --dry")
    # Python looks for garbage when it ends; in millions of nodes of trees that takes half a second.
    atexit.register(gc.freeze)
    began = time.perf_counter()
    is_dry = dry or drawn is not None or bool(fit or layout)
    with _progress() if is_dry else nullcontext() as progress:
        request = CheckRequest(
            command=job,
            target=target,
            folder=folder,
            select=select,
            ignore=ignore,
            environment=dict(os.environ),
            data=data,
            dry=Limits(seconds=dry_seconds) if is_dry else None,
            synthesize=synthesize,
            fit=fit,
            layout=layout,
            history=tuple(past_peaks()) if is_dry else (),
            ask_scheduler=True,
            on_record=progress.on_record if progress else lambda _: None,
        )
        found = run_check(request)
    seconds = time.perf_counter() - began
    formats()[form].findings(found, folder=folder, verbose=verbose, seconds=seconds)
    if drawn is not None:
        _draw(found, drawn)
    if any(finding.severity == "error" for finding in found.findings):
        context.exit(1)
    if not (found.jobs or found.findings):
        context.exit(2)


def _serve() -> None:
    from epochzero.cli import run_command
    from epochzero.cli.check_server import serve

    serve(run_command, _warm_up)


# Uses what most jobs use, so that the tables of the rules about it are read before the first check.
_WARM_UP_JOB = """
import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
arguments = parser.parse_args()
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def forward(self, batch):
        return self.layer(batch)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
for batch in torch.utils.data.DataLoader(torch.zeros(8, 4), batch_size=4, shuffle=True):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(batch), torch.zeros(4))
    loss.backward()
    optimizer.step()
os.makedirs("out", exist_ok=True)
torch.save(model.state_dict(), "out/model.pt")
"""


def _warm_up() -> None:
    """Load the rules, the formats and their tables, by a check that reads nothing of this machine."""
    formats()
    folder = Path(__file__).parent
    run_check(CheckRequest(command=("python", "-c", _WARM_UP_JOB), target="A100", folder=folder))


def _progress() -> DryRunProgress:
    # It knows the records of a dry run, which a check that only reads does not wait for.
    from epochzero.cli.progress import DryRunProgress

    return DryRunProgress()


def _draw(found: CheckResult, path: Path) -> None:
    """The memory of the first job that takes any."""
    from epochzero.check.dryrun.memory.picture import picture

    run = next((run for run in found.dry if run.memory), None)
    if run is None or run.memory is None:
        click.echo(f"{path} is not written: the memory of the job is unknown", err=True)
        return
    path.write_text(picture(run.memory, run.job), encoding="utf-8")
