"""A configuration of the job does not exist or cannot be read."""

import posixpath
import re
from collections.abc import Iterator

from epochzero.check.launch.model import Job
from epochzero.check.program.argument_origins import written_at
from epochzero.check.program.parsers.model import ArgumentProblem
from epochzero.check.rule import (
    Case,
    Claim,
    Claims,
    JobView,
    Program,
    Rule,
    SourceLocation,
    claim_at_start,
)
from epochzero.check.rules.world import written

_REGISTERS = re.compile(
    r"(hydra\.core\.(config_store|plugins|global_hydra)|hydra_zen|hydra\.plugins)\b"
)
"""Modules that provide Hydra configurations without a file in the configuration directory."""

_READERS = (
    (
        "lightning.pytorch.cli.LightningCLI",
        ("--config", "-c"),
        "error: Unable to load config {path!r}",
    ),
    (
        "deepspeed.initialize",
        ("--deepspeed_config",),
        "ValueError: Expected a string path to an "
        "existing deepspeed config, or a dictionary, but received: {path}",
    ),
    (
        "transformers.HfArgumentParser",
        ("--deepspeed",),
        "ValueError: Expected a string path to an "
        "existing deepspeed config, or a dictionary, but received: {path}",
    ),
)
"""Calls of libraries that read a file, the arguments that name it, and the error if it is missing."""
_ACCELERATE = "FileNotFoundError: The passed configuration file `{path}` does not exist."


def _check(view: JobView) -> Claims:
    yield from _of_hydra(view.program)
    for path, place, error in _named(view.program):
        paths = view.paths
        if _is_file(path) and paths.there(paths.platform.absolute(path)) is False:
            yield claim_at_start(
                place,
                message=f"The configuration {path} does not exist.",
                consequence=error.format(path=path),
                fix=f"Correct the name, or copy {path} to the job directory.",
            )


def _of_hydra(program: Program) -> Iterator[Claim]:
    registers = any(_REGISTERS.match(imported.module) for imported in program.imports)
    for parsed in program.parsed:
        for problem in parsed.problems:
            if problem.kind == "unreadable" or (problem.kind == "absent" and not registers):
                yield _claim(program.job, problem)


def _claim(job: Job, problem: ArgumentProblem) -> Claim:
    absent = problem.kind == "absent"
    near = f"Write {problem.near}, if that is what you mean, or add" if problem.near else "Bring"
    return claim_at_start(
        written_at(job, problem) if _is_given(job, problem) else problem.place,
        category="path_not_found" if absent else "corrupt_data",
        message=problem.message,
        consequence=f"hydra.errors.MissingConfigException: {problem.message}"
        if absent
        else "yaml.scanner.ScannerError, when Hydra composes the configuration",
        fix=f"{near} the file." if absent else "Correct the line.",
    )


def _is_given(job: Job, problem: ArgumentProblem) -> bool:
    """Whether the command line names the configuration."""
    return any(problem.value == word.rpartition("=")[2] for word in job.argv)


def _named(program: Program) -> Iterator[tuple[str, SourceLocation, str]]:
    """The files that the command line names, their location, and the error if they do not exist."""
    job = program.job
    config_file = job.argument_sources.get("accelerate --config_file")
    if config_file is not None:
        yield config_file.text, config_file.place, _ACCELERATE
    called = {
        call.name.replace("pytorch_lightning.", "lightning.pytorch.")
        for call in program.calls
        if call.at.certain
    }
    for name, options, error in _READERS:
        if name in called:
            for at, path in written(job, *options):
                yield path, job.argv_at[at] if at < len(job.argv_at) else job.at, error


def _is_file(path: str) -> bool:
    return posixpath.splitext(path)[1] in (".yaml", ".yml", ".json")


RULE = Rule(
    category="path_not_found",
    why="A configuration file is often renamed or missing from version control. The path of the "
    "file is often relative to a directory other than the start directory of the job. A tab or a "
    "missing bracket in the file also terminates the job.",
    fix="Add the file to the job, or correct the file name.",
    source="Hydra documentation, 'The Defaults List'; Accelerate documentation, 'Launching your "
    "scripts'; jsonargparse documentation, 'Configuration files'",
    check=_check,
    examples="""
            import hydra


            @hydra.main(config_path='conf', config_name='main')
            def main(cfg):  # <-
                print(cfg)


            main()
            ==> conf/other.yaml <==
            lr: 1
            ---- caught if
            -==> conf/other.yaml <==
            -lr: 1
            ---- ignored if
             import hydra
            +from hydra.core.config_store import ConfigStore
            +
            +ConfigStore.instance().store('main', {'lr': 1})
            ---- ignored if
            -==> conf/other.yaml <==
            +==> conf/main.yaml <==
            ---- caught if
            -def main(cfg):  # <-
            +def main(cfg):
            @@
            -==> conf/other.yaml <==
            -lr: 1
            +==> conf/main.yaml <==
            +defaults:
            +  - model: vit  # <-
            +  - _self_
            +lr: 0.1
            +==> conf/model/vgg.yaml <==
            +a: 1
            ----
            $ python train.py fit --config small.yaml  # <-
            from lightning.pytorch.cli import LightningCLI
            LightningCLI()
            ----
            $ accelerate launch --config_file four.yaml train.py  # <-
            print(1)
            ---- ignored if
             print(1)
            +==> four.yaml <==
            +num_processes: 4
            ----
            $ python train.py fit --config=small.yaml
            from lightning.pytorch.cli import LightningCLI
            LightningCLI()
            ==> small.yaml <==
            seed_everything: 1
        """,
    further_cases=(
        Case(
            {
                "train.py": "import hydra\n\n\n@hydra.main(config_path='conf', config_name='main')\ndef main(cfg):\n    print(cfg)\n\n\nmain()\n",
                "conf/main.yaml": "lr: 0.1\nmodel:\n\tdepth: 3\n",
            },
            line=3,
            path="conf/main.yaml",
        ),
    ),
)
