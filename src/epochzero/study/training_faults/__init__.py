"""Published methods that find faults of a training, applied to the same records for comparison.

deeplocalize    DeepLocalize, ICSE 2021: the first numerical error, with its layer and phase
deepdiagnosis   DeepDiagnosis, ICSE 2022: eight symptoms with advice for each
deepfd          DeepFD, ICSE 2022: five kinds of faults, distinguished by classifiers
training_view   the input of all three: the training by layers and epochs

They were made for Keras, where a callback computes its input from whole tensors. Here they read statistics of
sampled iterations; each module lists its departures from the publication.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from epochzero.errors import InputError
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.options import with_options
from epochzero.run.watch.model import WatchResult
from epochzero.run.watch.verdict import conclude

Method = Callable[[TrainingHistory], WatchResult]
NAMES = ("epochzero", "deeplocalize", "deepdiagnosis", "deepfd")


def by_name(name: str) -> Method:
    """Return the method of that name; its findings refer to command-line options that set a value.

    Raises:
        InputError: there is none.
    """
    if name not in NAMES:
        raise InputError(f"unknown method {name!r}; choose one of {', '.join(NAMES)}")
    method: Method = conclude
    if name != "epochzero":
        method = import_module(f"{__name__}.{name}").find
    return lambda history: with_options(method(history), history.arguments)
