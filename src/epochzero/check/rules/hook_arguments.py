"""A method that the training loop calls does not accept its arguments."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Instance, Items, Value
from epochzero.check.rule import Claims, JobView, Module, Program, Rule, Target, claim_at, guarded
from epochzero.check.tables import read_table
from epochzero.check.target.signature import misfit, of_definition
from epochzero.check.view.api import installed, reached

_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class _Call:
    """How a library calls a method.

    Attributes:
        distributions: distributions of the library; empty if every version calls the method so.
        since: first version that does.
        started_by: names of methods, one of which leads to the call.
        positional: numbers of positional arguments, the fewest first.
        keywords: names of the other arguments.
        said: the arguments, as text for users.
    """

    distributions: tuple[str, ...]
    since: str
    started_by: frozenset[str]
    positional: range
    keywords: tuple[str, ...]
    arguments_text: str


@cache
def _table() -> Mapping[tuple[str, str], tuple[_Call, ...]]:
    """The calls of a method, by the base class and its name."""
    found: dict[tuple[str, str], list[_Call]] = {}
    for group in read_table(__package__, "hook_arguments.toml")["called"]:
        distributions = tuple(group["distribution"].replace(" or ", " ").split())
        for given, names in group["hooks"].items():
            words = given.split()
            keywords = tuple(word[:-1] for word in words if word.endswith("="))
            most = len(words) - len(keywords)
            least = most - sum(word.endswith("?") for word in words)
            arguments_text = ", ".join(word.rstrip("=?") for word in words) or "no arguments"
            call = _Call(
                distributions,
                group.get("since", ""),
                frozenset(group["started_by"]),
                range(least, most + 1),
                keywords,
                arguments_text,
            )
            for base in group["bases"]:
                for name in names:
                    found.setdefault((base, name), []).append(call)
    return {key: tuple(calls) for key, calls in found.items()}


def _check(view: JobView) -> Claims:
    used = _used(view.program)
    started = {call.name.rpartition(".")[2] for call in view.calls}
    reach = view.reach
    for module in view.modules:
        code = code_of(module)
        for cls in code.classes.values():
            at = reach.at(module, cls) if f"{module.name}.{cls.name}" in used else None
            if at is None or guarded(at, TypeError):
                continue
            for method, call, wrong in _wrong(module, cls, view.target):
                if not call.started_by & started:
                    continue
                yield claim_at(
                    reach.at(module, method) or at,
                    severity="error",
                    message=f"The library calls {method.name} with {call.arguments_text}, which it does not "
                    "accept.",
                    consequence=f"TypeError: {cls.name}.{method.name}() {wrong}",
                    fix=f"Let {method.name} accept {call.arguments_text}, or add *args and **kwargs.",
                )


def _wrong(
    module: Module, cls: ast.ClassDef, target: Target
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, _Call, str]]:
    """The methods of a class that do not accept their arguments, with Python's message."""
    code = code_of(module)
    for base in code.library_bases(cls):
        for method in code.methods(cls):
            for call in _table().get((base, method.name), ()):
                if method.decorator_list or not _is_called_so(call, target):
                    continue
                parameters = of_definition(method.args, bound=True)
                wrong = [
                    misfit(parameters, count, call.keywords, True) for count in call.positional
                ]
                if all(wrong):
                    # Python also counts self.
                    parameters = of_definition(method.args)
                    yield (
                        method,
                        call,
                        misfit(parameters, call.positional[-1] + 1, call.keywords, True),
                    )


def _is_called_so(call: _Call, target: Target) -> bool:
    versions = [
        version
        for distribution in call.distributions
        if (version := installed(target, distribution))
    ]
    return not call.distributions or any(reached(version, call.since) for version in versions)


def _used(program: Program) -> frozenset[str]:
    """Classes of the job whose objects are passed to a library, or whose library methods are called."""
    found: set[str] = set()
    for call in program.calls:
        for value in (call.receiver, *call.arguments, *call.keywords.values()):
            found.update(_classes(value, 0))
    return frozenset(found)


def _classes(value: Value | None, depth: int) -> Iterator[str]:
    if isinstance(value, Items) and depth < _DEEPEST:
        for item in value.values:
            yield from _classes(item, depth + 1)
    elif isinstance(value, Instance) and value.own:
        yield value.made_by


RULE = Rule(
    category="illegal_argument",
    why="A library chooses the arguments that it passes to an overridden method. A new version of "
    "the library may pass different arguments. If the library calls the method at the end of an "
    "epoch, the job fails only after a whole epoch.",
    fix="Accept the arguments that the installed version passes, or add *args and **kwargs after "
    "the arguments that you need.",
    source="Hugging Face Transformers, Trainer.compute_loss (4.46: num_items_in_batch); Lightning, upgrade "
    "from 1.9 to 2.0",
    check=_check,
    examples="""
        from transformers import Trainer


        class Weighted(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):  # <-
                return model(**inputs).loss


        trainer = Weighted(model='m')
        trainer.train()
        ==> target.toml <==
        [distributions.transformers]
        version = "4.46.2"
        ---- caught if
        -    def compute_loss(self, model, inputs, return_outputs=False):  # <-
        +    def training_step(self, model, inputs):  # <-
        @@
        -version = "4.46.2"
        +version = "5.1.0"
        ---- ignored if
        -version = "4.46.2"
        +version = "4.45.2"
        ---- ignored if
        -==> target.toml <==
        -[distributions.transformers]
        -version = "4.46.2"
        ---- ignored if
        -    def compute_loss(self, model, inputs, return_outputs=False):
        +    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        ---- ignored if
        -trainer = Weighted(model='m')
        +trainer = Trainer(model='m')
        ---- ignored if
        -trainer.train()
        +trainer.evaluate()
        ----
        import lightning as L


        class Net(L.LightningModule):
            def on_validation_epoch_end(self, outputs):  # <-
                return None


        L.Trainer().fit(Net())
        ==> target.toml <==
        [distributions.lightning]
        version = "2.5.0"
        ---- caught if
        -    def on_validation_epoch_end(self, outputs):  # <-
        +    def validation_step(self):  # <-
        ---- ignored if
        -version = "2.5.0"
        +version = "1.9.5"
        ---- ignored if
        -    def on_validation_epoch_end(self, outputs):
        +    def on_validation_epoch_end(self):
        ---- ignored if
        -    def on_validation_epoch_end(self, outputs):
        +    def training_step(self, batch):
        ---- ignored if
        -    def on_validation_epoch_end(self, outputs):
        +    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        ---- ignored if
        -    def on_validation_epoch_end(self, outputs):
        +    def on_train_batch_end(self, *args):
        ----
        import pytorch_lightning as L


        class Net(L.LightningModule):
            def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, closure):  # <-
                return None


        L.Trainer().fit(Net())
        ==> target.toml <==
        [distributions.pytorch-lightning]
        version = "2.1.0"
        ----
        from transformers import Trainer, TrainerCallback


        class Log(TrainerCallback):
            def on_epoch_end(self, args, state, control):  # <-
                print(state)


        Trainer(model='m', callbacks=[Log()]).train()
        ==> target.toml <==
        [distributions.transformers]
        version = "4.40.0"
        ----
        import keras


        class Log(keras.callbacks.Callback):
            def on_epoch_end(self, epoch):  # <-
                print(epoch)


        keras.Sequential([]).fit([1], [1], callbacks=[Log()])
    """,
)
