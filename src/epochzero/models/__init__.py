"""Tests of a trained classifier itself: the fault may sit in the model or its data, not in the code.

model = load_model("net.py:build", weights="net.pt")
test = load_examples("data.py:test")
dissection = dissect(model, load_examples("data.py:train"), test)
evaluation = evaluate([model], test)
fairness = measure_fairness(model, load_people("people.csv", protected=["sex"]))

A test is a folder of this room (`dissect`, `evaluate`, `fairness`, `generate`); what all share is beside them:
`loading` and `reading` make a `Classifier` and `Examples` out of what a user names. `mutate` needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochzero.lazy_exports import export_lazily

if TYPE_CHECKING:
    from epochzero.models.classifier import Classifier
    from epochzero.models.dissect import Dissection, Dissector, Guard, dissect
    from epochzero.models.evaluate import Evaluation, ModelMeasured, evaluate
    from epochzero.models.examples import Examples
    from epochzero.models.fairness import Fairness, load_people, measure_fairness
    from epochzero.models.loading import load_model
    from epochzero.models.reading import load_examples

__all__ = [
    "Classifier",
    "Dissection",
    "Dissector",
    "Evaluation",
    "Examples",
    "Fairness",
    "Guard",
    "ModelMeasured",
    "dissect",
    "evaluate",
    "load_examples",
    "load_model",
    "load_people",
    "measure_fairness",
]

_ROOMS = {
    "epochzero.models.classifier": ("Classifier",),
    "epochzero.models.dissect": ("Dissection", "Dissector", "Guard", "dissect"),
    "epochzero.models.evaluate": ("Evaluation", "ModelMeasured", "evaluate"),
    "epochzero.models.examples": ("Examples",),
    "epochzero.models.fairness": ("Fairness", "load_people", "measure_fairness"),
    "epochzero.models.loading": ("load_model",),
    "epochzero.models.reading": ("load_examples",),
}

export_lazily(__name__, _ROOMS)
