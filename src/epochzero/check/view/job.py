"""The one interface that rules see: a job, what its program does, and the platform it runs on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from epochzero.check.launch.model import Job
from epochzero.check.paths.analysis import PathAnalysis, analyze_paths
from epochzero.check.program.events import LibraryCall, LibraryImport
from epochzero.check.program.model import Module, Program
from epochzero.check.program.reachability import Reach
from epochzero.check.program.syntax import Code, code_of
from epochzero.check.target.model import Target
from epochzero.check.view.models import ProgramModels
from epochzero.check.view.torch_usage import optimizer_steps

_FRAMEWORKS = frozenset(
    """
    accelerate apex catalyst composer deepspeed fabric fairscale fastai horovod ignite keras
    lightning lightning_fabric monai pytorch_lightning skorch tensorflow torch.distributed.pipelining
    torch_xla torchbearer transformers trl
    """.split()
)


@dataclass(frozen=True, eq=False)
class JobView:
    """A job on a platform, and the queries that rules share.

    Attributes:
        program: what the interpreter saw the program do; the functions of this package query it.
        target: the platform; properties that are unknown are None.
    """

    program: Program
    target: Target

    @property
    def job(self) -> Job:
        """The command: arguments, launchers, environment, limits."""
        return self.program.job

    @property
    def calls(self) -> tuple[LibraryCall, ...]:
        """Calls of libraries, in the order of the program."""
        return self.program.calls

    @property
    def imports(self) -> tuple[LibraryImport, ...]:
        """Imports of libraries, in the order of the program."""
        return self.program.imports

    @property
    def modules(self) -> Collection[Module]:
        """The source files of the job."""
        return self.program.modules.values()

    @cached_property
    def reach(self) -> Reach:
        """Whether the job reaches a node of the syntax tree, and how certainly."""
        return Reach.of(self.program)

    @cached_property
    def models(self) -> ProgramModels:
        """The models that the job trains and evaluates."""
        return ProgramModels.of(self.program)

    @cached_property
    def training_steps(self) -> list[LibraryCall]:
        """The steps of PyTorch's optimizers in loops."""
        return [step for step in optimizer_steps(self.program) if step.at.loop]

    @cached_property
    def has_framework_loop(self) -> bool:
        """Whether the job imports a library with its own training loops, which may do what seems to be missing."""
        modules = [imported.module for imported in self.imports]
        tops = (name.partition(".")[0] for name in modules)
        return not _FRAMEWORKS.isdisjoint([*modules, *tops])

    def does_anywhere(self, *names: str) -> bool:
        """Whether any of the job's modules contains one of these attribute names, reached or not."""
        return any(not code_of(module).attributes.isdisjoint(names) for module in self.modules)

    @cached_property
    def paths(self) -> PathAnalysis:
        """The accesses of the job to paths of the target, and what is wrong with them."""
        return analyze_paths(self.program, self.target)

    def code(self, module: Module) -> Code:
        """Queries on the syntax of a source file."""
        return code_of(module)
