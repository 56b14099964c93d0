"""Tests of a trained classifier: a fault may be in the model or its data rather than in the code.

model = load_model("net.py:build", weights="net.pt")
test = load_examples("data.py:test")
dissection = dissect(model, load_examples("data.py:train"), test)
evaluation = evaluate([model], test)
fairness = measure_fairness(model, load_people("people.csv", protected=["sex"]))

Each test is a subpackage (`dissect`, `evaluate`, `fairness`, `generate`). `loading` and `reading`, which they share, make a
`Classifier` and `Examples` from what the user names. `mutate` does not require torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochzero.lazy_exports import export_lazily

if TYPE_CHECKING:
    from epochzero_models.classifier import Classifier as Classifier
    from epochzero_models.dissect import Dissection as Dissection
    from epochzero_models.dissect import Dissector as Dissector
    from epochzero_models.dissect import Guard as Guard
    from epochzero_models.dissect import dissect as dissect
    from epochzero_models.evaluate import Evaluation as Evaluation
    from epochzero_models.evaluate import ModelMeasured as ModelMeasured
    from epochzero_models.evaluate import evaluate as evaluate
    from epochzero_models.examples import Examples as Examples
    from epochzero_models.fairness import Fairness as Fairness
    from epochzero_models.fairness import load_people as load_people
    from epochzero_models.fairness import measure_fairness as measure_fairness
    from epochzero_models.loading import load_model as load_model
    from epochzero_models.reading import load_examples as load_examples

_ROOMS = {
    "epochzero_models.classifier": ("Classifier",),
    "epochzero_models.dissect": ("Dissection", "Dissector", "Guard", "dissect"),
    "epochzero_models.evaluate": ("Evaluation", "ModelMeasured", "evaluate"),
    "epochzero_models.examples": ("Examples",),
    "epochzero_models.fairness": ("Fairness", "load_people", "measure_fairness"),
    "epochzero_models.loading": ("load_model",),
    "epochzero_models.reading": ("load_examples",),
}

export_lazily(__name__, _ROOMS)
