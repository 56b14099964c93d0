"""Which models there are, what their layers are called, and which line made each."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import torch

from epochzero.injected.identity import ByIdentity
from epochzero.run.watch.child import structure
from epochzero.run.watch.child.places import locals_of, place, user_frame
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.statistics import Look, fingerprint

MOST_WATCHED = 400
"""Parameters of one look."""
MOST_OTHERS = 48
"""Parameters that nothing trains, of one look."""
MOST_NORMALIZATIONS, MOST_FEATURES = 8, 16
"""Layers and features whose statistics are compared between ranks."""


class Models:
    """Knows the models that were called, each by the number of its first call, and keeps none alive.

    Args:
        records: takes what each is.
        on_change: is given the iteration at which parameters are frozen, thawed, given to an optimizer or taken from it.
    """

    def __init__(self, records: Records, on_change: Callable[[int], None]) -> None:
        self._records = records
        self._on_change = on_change
        self._made: ByIdentity[Any] = ByIdentity()
        self._roots: ByIdentity[Any] = ByIdentity()
        self._paths: ByIdentity[ByIdentity[str]] = ByIdentity()
        self._known: list[weakref.ref[Any]] = []
        self._called: ByIdentity[bool] = ByIdentity()
        self._trained: ByIdentity[bool] = ByIdentity()
        self._emitted: dict[int, Any] = {}
        self._most_hidden = 16

    def made(self, module: Any) -> None:
        """Remembers the line that made a layer."""
        found = place(without=module)
        if found is not None:
            self._made.set(module, found)

    def made_at(self, module: Any, where: list[Any]) -> None:
        """Remembers where a layer was made before watching started."""
        self._made.set(module, where)

    def knows(self, module: Any) -> bool:
        """Whether a module was called outermost before."""
        return self._roots.get(module) is not None

    def was_called(self, module: Any) -> None:
        """Remembers that a layer is used."""
        if self._called.get(module) is None:
            self._called.set(module, True)

    def trains(self, module: Any) -> None:
        """Remembers that a model was called to be trained."""
        root = self.root(module)
        if self._trained.get(root) is None:
            self._trained.set(root, True)

    def has_trained(self, module: Any) -> bool:
        """Whether a model was called to be trained."""
        return self._trained.get(self.root(module)) is True

    def path(self, module: Any, outermost: Any) -> str:
        """The number of its model and its path within that: ``0/encoder.2``."""
        root = self.root(outermost)
        names = self._paths.get(root)
        if names is None or names.get(module) is None:
            names = self._paths.get(root) or ByIdentity()
            number = next((n for n, ref in enumerate(self._known) if ref() is root), 0)
            for name, part in structure.inner(root).named_modules():
                names.set(part, f"{number}/{name}")
            if names.get(root) is None:
                names.set(root, f"{number}/")
            if names.get(module) is None:
                names.set(module, self._hidden(module) or f"{number}/")
            self._paths.set(root, names)
        return str(names.get(module))

    def _hidden(self, module: Any) -> str:
        """The path of a layer that a model calls and does not know, as those in a list of Python are: one of a model of its own."""
        own = module.parameters(recurse=False)
        if self._most_hidden and any(p.requires_grad and p.is_leaf for p in own):
            self._most_hidden -= 1
            number = len(self._known)
            self._known.append(weakref.ref(module))
            name = f"{type(module).__name__}{number}"
            self._records.emit("root", number=number, name=name, hidden=True)
            return f"{number}/"
        return ""

    def root(self, outermost: Any) -> Any:
        """The model that a module belongs to: what is called outermost, or whose method calls it."""
        known = self._roots.get(outermost)
        if known is not None and known() is not None:
            return known()
        frame = user_frame()
        names = locals_of(frame) if frame is not None else {}
        owner = names.get("self")
        names = {**frame.f_globals, **names} if frame is not None else {}
        root, name = outermost, ""
        if isinstance(owner, torch.nn.Module) and any(p is outermost for p in owner.modules()):
            root = owner
        for label, value in names.items():
            if value is root and label != "self":
                name = label
        self._roots.set(outermost, weakref.ref(root))
        if not any(ref() is root for ref in self._known):
            first = self._known[0]() if self._known else None
            if first is not None and name in structure.inner(first)._modules:
                # The layers of the first model have no prefix: a layer of it would be taken for this model.
                name = ""
            self._known.append(weakref.ref(root))
            self._records.emit("root", number=len(self._known) - 1, name=name)
        return root

    def parameters(self) -> list[tuple[str, Any]]:
        """Names and parameters of all models that live; of many, some at even distances."""
        found = self.all_parameters()
        return found[:: -(-len(found) // MOST_WATCHED)] if found else []

    def all_parameters(self) -> list[tuple[str, Any]]:
        """Names and parameters of all models that live."""
        return [
            (f"{number}/{name}", parameter)
            for number, root in self._living()
            for name, parameter in structure.inner(root).named_parameters()
            # Weights that are computed, as in meta-learning, have no gradient: torch warns who asks for it.
            if parameter.is_leaf and structure.has_values(parameter)
        ]

    def others(self, optimizers: Iterable[Any]) -> dict[str, float]:
        """A fingerprint of each parameter that no optimizer holds, of many those at even distances."""
        held = _held(optimizers)
        others = [(name, value) for name, value in self.all_parameters() if id(value) not in held]
        look, found = Look(), dict[str, float]()
        for name, value in others[:: -(-len(others) // MOST_OTHERS)] if others and held else ():
            if value.numel():
                look.add(found, (name,), fingerprint(value))
        look.read()
        return found

    def statistics(self) -> dict[str, dict[str, float]]:
        """``mean0`` and so on, ``variance0`` and so on of the first normalizations over the batch: a rank may gather its own."""
        look, found = Look(), dict[str, dict[str, float]]()
        parts = (
            (f"{number}/{name}", part.running_mean, part.running_var)
            for number, root in self._living()
            for name, part in structure.inner(root).named_modules()
            if isinstance(getattr(part, "running_mean", None), torch.Tensor)
        )
        for name, means, variances in islice(parts, MOST_NORMALIZATIONS):
            if structure.has_values(means):
                values = found[name] = {}
                for what, tensor in (("mean", means), ("variance", variances)):
                    features = tensor.detach()[:MOST_FEATURES].float()
                    look.add(values, [f"{what}{n}" for n in range(len(features))], features)
        look.read()
        return found

    def unset(self) -> list[int]:
        """Numbers of models that would evaluate with the statistics that their first normalization over the batch was made with."""
        found = []
        for number, root in self._living():
            parts: Iterable[Any] = (p for p in structure.inner(root).modules() if not p.training)
            means = (getattr(part, "running_mean", None) for part in parts)
            first = next((of for of in means if isinstance(of, torch.Tensor)), None)
            if first is not None and structure.has_values(first) and not bool(first.any()):
                found.append(number)
        return found

    def unheld(self, optimizers: Iterable[Any]) -> list[str]:
        """Names of parameters that have a gradient and that no optimizer holds."""
        held = _held(optimizers)
        found = (
            name
            for name, value in self.all_parameters()
            if value.grad is not None and id(value) not in held
        )
        return list(islice(found, MOST_OTHERS if held else 0))

    def emit(self, iteration: int, optimizers: Iterable[Any]) -> None:
        """Each model once, and again when what of it is trained or called has changed."""
        held = _held(optimizers)
        for number, root in self._living():
            model = structure.inner(root)
            state = (
                tuple(p.requires_grad for p in model.parameters()),
                sum(id(p) in held for p in model.parameters()),
                sum(self._called.get(m) is True for m in model.modules()),
            )
            before = self._emitted.get(number)
            if before == state:
                continue
            self._emitted[number] = state
            if before is not None and before[:2] != state[:2]:
                self._on_change(iteration)
            look = Look()
            description = structure.described(look, model, self._made, held or None, self._called)
            look.read()
            self._records.emit("model", number=number, iteration=iteration, **description)

    def _living(self) -> list[tuple[int, Any]]:
        roots = ((number, ref()) for number, ref in enumerate(self._known))
        return [(number, root) for number, root in roots if root is not None]


def _held(optimizers: Iterable[Any]) -> set[int]:
    return {id(p) for opt in optimizers for group in opt.param_groups for p in group["params"]}
