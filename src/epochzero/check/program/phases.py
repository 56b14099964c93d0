"""The phase of an event, determined by names and loops.

The phases are those of Zhang et al., ICSE 2020, Figure 10: the loop that steps an optimizer is training, what precedes
it is initialization or data preparation, what follows it is evaluation. Validation between training steps belongs to
training.
"""

from __future__ import annotations

import re
from functools import lru_cache

_MOST_NAMES = 4096
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_DATA = frozenset(
    """
    data dataset datasets dataloader dataloaders loader loaders preprocess preprocessing
    preprocessor transforms collate tokenize tokenise augment augmentation augmentations corpus
    datamodule
    """.split()
)
_EVALUATION = frozenset(
    """
    eval evaluate evaluation evaluator test testing tester predict prediction predictions
    predictor infer inference export submission
    """.split()
)
_DATA_CALL = re.compile(
    r"pandas\.read_|polars\.(read|scan)_|torchvision\.(datasets|io|transforms)\.|torchaudio\.load"
    r"|datasets\.(load_|Dataset\b|DatasetDict\b)|torch\.utils\.data\.|tensorflow\.data\."
    r"|numpy\.(load|loadtxt|genfromtxt|memmap|fromfile)$|cv2\.imread$|PIL\.Image\.open$"
    r"|sklearn\.(datasets|preprocessing|model_selection)\.|csv\.(reader|DictReader)$"
)
_FIT = re.compile(
    r"(Trainer|Model|Module|Sequential|Learner|Classifier|Regressor|Estimator)\(\)\.(fit|fit_generator)$"
    r"|Trainer\(\)\.train$|(^|\.)keras\..*\.fit$"
)
_VERDICT = re.compile(r"Trainer\(\)\.(test|predict|evaluate)$|\(\)\.(evaluate|predict)$")
_OPTIMIZER = re.compile(
    r"(^|\.)(optim|optimizers?)\.[A-Z]\w*$|(^|\.)(Adam\w*|SGD|RMSprop|Adafactor)$"
)


def named_phase(name: str) -> str | None:
    """The phase that the name of a function, class or module implies; None if it implies none."""
    words = [word.lower() for word in _WORD.findall(name)]
    if _DATA.intersection(words):
        return "preprocessing"
    if words and words[0] in _EVALUATION:
        return "evaluation"
    return None


@lru_cache(_MOST_NAMES)
def is_data(name: str) -> bool:
    """Whether a library's function reads or prepares data."""
    return _DATA_CALL.match(name) is not None


@lru_cache(_MOST_NAMES)
def is_fit(name: str) -> bool:
    """Whether a library's function runs the whole training: ``Trainer().fit``."""
    return _FIT.search(name) is not None


@lru_cache(_MOST_NAMES)
def is_verdict(name: str) -> bool:
    """Whether a library's function evaluates or predicts."""
    return _VERDICT.search(name) is not None


@lru_cache(_MOST_NAMES)
def is_optimizer(name: str) -> bool:
    """Whether a library's name is the class of an optimizer."""
    return _OPTIMIZER.search(name) is not None


def is_step(name: str, receiver: str) -> bool:
    """Whether a call is a training step: ``backward``, or ``step`` of an optimizer.

    Args:
        name: dotted name of the callee.
        receiver: the expression before the last dot, as written.
    """
    last = name.rpartition(".")[2]
    if last == "backward":
        return True
    owner = name.removesuffix(".step")
    return last == "step" and (
        is_optimizer(owner.removesuffix("()"))
        or any(word in receiver.lower() for word in ("optim", "opt", "scaler"))
    )
