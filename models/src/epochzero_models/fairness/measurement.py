"""`measure_fairness`: how much a model discriminates, what the searches find, and what retraining changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from epochzero.reports.statistics import Estimate, wilson
from epochzero_models.classifier import Classifier, ProgressCallback, as_classifier, check_labels
from epochzero_models.fairness.domain import Domain
from epochzero_models.fairness.groups import (
    GroupFairness,
    Mitigation,
    measure_groups,
    measure_reweighing,
)
from epochzero_models.fairness.retraining import retrained_reweighed, retrained_with
from epochzero_models.fairness.search import SearchBudget, SearchOutcome
from epochzero_models.fairness.search_plan import searched
from epochzero_models.fairness.subject import Subject
from epochzero_models.fairness.table import PeopleTable

SCHEMA = "epochzero.model-fairness/6"
SAMPLE = 10_000
"""Number of random inputs from which the discriminated share of the domain is estimated."""
LOOKED_INTO = 2000
EXAMPLES = 10
DEFAULT_BUDGET = SearchBudget(seconds=10)


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search.

    Attributes:
        search: exhaustive, guided or random.
        found: number of discriminatory instances, all different apart from protected attributes.
        checked: number of checked inputs, including repetitions.
        share: found divided by checked.
        seconds: duration.
        course: seconds and number of instances at several times.
    """

    search: str
    found: int
    checked: int
    share: float
    seconds: float
    course: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Driver:
    """How discrimination depends on an attribute.

    Attributes:
        attribute: its name.
        protected: whether it is protected.
        share: of the instances. For a protected attribute: those in which it alone changes the class. For another:
            those that are no longer discriminatory when it is redrawn.
    """

    attribute: str
    protected: bool
    share: Estimate


@dataclass(frozen=True, slots=True)
class DiscriminatoryPair:
    """Two variants of an input with different classes.

    Attributes:
        shared: the unprotected attributes.
        variant, other: the protected attributes of both.
        output, other_output: the classes of both.
    """

    shared: Mapping[str, str]
    variant: Mapping[str, str]
    other: Mapping[str, str]
    output: str
    other_output: str


@dataclass(frozen=True)
class Retrained:
    """The model after retraining with instances.

    Attributes:
        instances: number of instances used, with their partners.
        discriminated: share of the same random inputs as before.
        accuracy_before, accuracy: on held-out rows.
        module: the model.
    """

    instances: int
    discriminated: Estimate
    accuracy_before: Estimate
    accuracy: Estimate
    module: nn.Module = field(repr=False)


@dataclass(frozen=True)
class Fairness:
    """How a model treats people who differ only in protected attributes.

    Attributes:
        model, data: names.
        rows: number of rows.
        accuracy: on the rows.
        protected: protected attributes.
        variants: number of combinations of their values.
        inputs: number of inputs in the domain, not counting variants.
        discriminated: share of inputs drawn uniformly from the domain.
        discriminated_rows: share of the rows.
        searches: only the exhaustive one if the budget sufficed; otherwise guided, random.
        drivers: protected attributes, then the others, each by share.
        examples: some instances.
        retrained: if requested.
        reweighed: the model after training with reweighed rows, if requested; `groups` has its effect.
        groups: of models with two classes.
        left_out: what was omitted, with the reasons.
        instances: everything found, by search.
    """

    model: str
    data: str
    rows: int
    accuracy: Estimate
    protected: tuple[str, ...]
    variants: int
    inputs: int
    discriminated: Estimate
    discriminated_rows: Estimate
    searches: tuple[Searched, ...]
    drivers: tuple[Driver, ...]
    examples: tuple[DiscriminatoryPair, ...]
    retrained: Retrained | None
    groups: GroupFairness | None
    left_out: Mapping[str, str]
    instances: Mapping[str, SearchOutcome] = field(repr=False)
    reweighed: nn.Module | None = field(repr=False)

    def to_dict(self) -> Mapping[str, Any]:
        """Return JSON data without the instances, of which there may be millions."""
        fields = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("instances", "retrained", "reweighed")
        }
        plain = {name: _plain(value) for name, value in fields.items()}
        retrained = self.retrained and {
            name: _plain(getattr(self.retrained, name))
            for name in ("instances", "discriminated", "accuracy_before", "accuracy")
        }
        return {"schema": SCHEMA, **plain, "retrained": retrained}


def measure_fairness(
    model: Classifier | nn.Module,
    people: PeopleTable,
    *,
    budget: SearchBudget = DEFAULT_BUDGET,
    retrain: bool = False,
    reweigh: bool = False,
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> Fairness:
    """Searches inputs that a model judges otherwise when only protected attributes differ.

    All inputs are checked where the budget of one search suffices for it; what is found is then all there is.

    Args:
        model: a module, which is put into evaluation mode, or what `load_model` gives.
        people: rows, from which half of the guided search starts, and the domain that is searched.
        budget: of each search. By inputs or instances alone, the same seed finds the same.
        retrain: whether a copy of the model is retrained with instances that were found.
        reweigh: whether a copy of the model is trained with reweighed rows.
        seed: of all that is random.
        on_progress: called with the progress.

    Raises:
        InputError: the model cannot be used on these inputs.
    """
    classifier = as_classifier(model)
    subject = Subject(classifier, people.domain)
    classes = classifier.logits(people.domain.inputs(people.levels[:1])).shape[1]
    check_labels(classifier.name, classes, people.examples)
    draw = torch.Generator().manual_seed(seed)
    sample = people.domain.drawn(SAMPLE, draw)
    began = budget.clock()
    discriminated = _share(subject.judge(sample).discriminates)
    seconds = (budget.clock() - began) / SAMPLE
    found, left_out = searched(subject, people, budget, seconds, seed, on_progress)
    best = max(found, key=len)
    if on_progress:
        on_progress("what drives it")
    groups = reweighed = None
    if classes == 2:
        probabilities = subject.probabilities(people.domain.inputs(people.levels))
        groups = measure_groups(people, probabilities[:, 1].double().numpy(), seed)
        if reweigh and (why_not := _why_no_training(subject, people)):
            left_out["reweighing"] = why_not
        elif reweigh:
            reweighed, mitigations = _reweighed(subject, people, seed, on_progress)
            groups = replace(groups, mitigations=groups.mitigations + mitigations)
    else:
        left_out["groups"] = f"the model has {classes} classes; group metrics compare two"
    retrained = None
    if retrain and (why_not := _why_no_retraining(subject, people, best)):
        left_out["retraining"] = why_not
    elif retrain:
        retrained = _retrained(subject, people, best, sample, seed, on_progress)
    return Fairness(
        model=classifier.name,
        data=people.name,
        rows=len(people.labels),
        accuracy=_share(subject.outputs(people.levels) == people.labels),
        protected=tuple(people.domain.attributes[at].name for at in people.domain.protected),
        variants=len(people.domain.variants),
        inputs=people.domain.size,
        discriminated=discriminated,
        discriminated_rows=_share(subject.judge(people.levels).discriminates),
        searches=tuple(
            Searched(c.search, len(c), c.checked, len(c) / max(1, c.checked), c.seconds, c.course)
            for c in found
        ),
        drivers=_drivers(subject, best, draw),
        examples=_examples(people, best, draw),
        retrained=retrained,
        groups=groups,
        left_out=left_out,
        instances={candidate.search: candidate for candidate in found},
        reweighed=reweighed,
    )  # fmt: skip


def _retrained(
    subject: Subject,
    people: PeopleTable,
    found: SearchOutcome,
    sample: Tensor,
    seed: int,
    on_progress: ProgressCallback | None,
) -> Retrained:
    module, used, rest = retrained_with(subject, people, found, seed, on_progress)
    after = Subject(as_classifier(module, subject.classifier.name), people.domain)
    return Retrained(
        used,
        _share(after.judge(sample).discriminates),
        _share(subject.outputs(people.levels[rest]) == people.labels[rest]),
        _share(after.outputs(people.levels[rest]) == people.labels[rest]),
        module,
    )


def _reweighed(
    subject: Subject, people: PeopleTable, seed: int, on_progress: ProgressCallback | None
) -> tuple[nn.Module, tuple[Mitigation, ...]]:
    module, rest = retrained_reweighed(subject, people, seed, on_progress)
    after = Subject(as_classifier(module, subject.classifier.name), people.domain)
    left_out = torch.zeros(len(people.labels), dtype=torch.bool)
    left_out[rest] = True
    decided, redecided = (each.outputs(people.levels).numpy() == 1 for each in (subject, after))
    return module, measure_reweighing(people, decided, redecided, left_out.numpy(), seed)


def _why_no_retraining(subject: Subject, people: PeopleTable, found: SearchOutcome) -> str:
    if why_not := subject.no_gradients(people.levels[:1]):
        return why_not
    return _why_no_training(subject, people) if len(found) else "nothing was found"


def _why_no_training(subject: Subject, people: PeopleTable) -> str:
    if why_not := subject.no_gradients(people.levels[:1]):
        return why_not
    has_weights = next(subject.classifier.differentiable().parameters(), None) is not None
    return "" if has_weights else f"{subject.classifier.name} has no weights"


def _drivers(subject: Subject, found: SearchOutcome, draw: torch.Generator) -> tuple[Driver, ...]:
    if not len(found):
        return ()
    domain = subject.domain
    few = found.levels[torch.randperm(len(found), generator=draw)[:LOOKED_INTO]]
    drivers = []
    for at, attribute in enumerate(domain.attributes):
        if at in domain.protected:
            alone = Domain(domain.attributes, (at,))
            flags = Subject(subject.classifier, alone).judge(few).discriminates
        else:
            changed = few.clone()
            changed[:, at] = domain.drawn(len(few), draw)[:, at]
            flags = ~subject.judge(changed).discriminates
        drivers.append(Driver(attribute.name, at in domain.protected, _share(flags)))
    return tuple(
        sorted(drivers, key=lambda driver: (not driver.protected, -(driver.share.value or 0)))
    )


def _examples(
    people: PeopleTable, found: SearchOutcome, draw: torch.Generator
) -> tuple[DiscriminatoryPair, ...]:
    attributes, protected = people.domain.attributes, people.domain.protected

    def shown(levels: Tensor, wanted: Sequence[int]) -> Mapping[str, str]:
        return {attributes[at].name: attributes[at].shown(int(levels[at])) for at in wanted}

    free = [at for at in range(len(attributes)) if at not in protected]
    return tuple(
        DiscriminatoryPair(
            shown(found.levels[at], free),
            shown(found.levels[at], protected),
            shown(found.partners[at], protected),
            people.called(int(found.outputs[at])),
            people.called(int(found.others[at])),
        )
        for at in torch.randperm(len(found), generator=draw)[:EXAMPLES].tolist()
    )


def _share(flags: Tensor) -> Estimate:
    part = int(flags.sum())
    return Estimate(part / len(flags), wilson(part, len(flags))) if len(flags) else Estimate(None)


def _plain(value: Any) -> Any:
    """As JSON takes it."""
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)
    return [_plain(element) for element in value] if isinstance(value, tuple) else value
