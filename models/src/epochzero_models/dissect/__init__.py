"""DISSECTOR: distinguish inputs that a model can handle from others, by the agreement of its layers.

Wang, Xu, Xu, Ma and Lu (ICSE 2020), doi 10.1145/3377811.3380379. On the way through the layers the
model's confidence in its final prediction grows for an input within its reach, and does not for one
beyond it. A linear sub-model on each of some layers says how far the prediction stands there (`validity`);
a weighted mean over the layers is compared with a threshold.
"""

from __future__ import annotations

from epochzero_models.dissect.dissector import Dissector, read_dissector
from epochzero_models.dissect.guard import Guard, Guarded
from epochzero_models.dissect.measurement import Dissection, dissect

__all__ = ["Dissection", "Dissector", "Guard", "Guarded", "dissect", "read_dissector"]
