"""Keras 3 rejects the suffix of the file to which a model is saved."""

import re
from dataclasses import dataclass

from epochzero.check.paths.accesses import is_true
from epochzero.check.paths.text import is_remote, path_text
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.rule import Claims, JobView, Rule, Target, claim_at, guarded

_MODEL = (
    r"(tensorflow\.)?keras\.(\w+\.)*((Model|Sequential)|(load_model|clone_model|model_from_json))"
)
_OF_MODELS = (".keras", ".h5", ".hdf5")


@dataclass(frozen=True, slots=True)
class _Saver:
    """A call that saves: its name, the position of the file argument, and the allowed suffixes."""

    name: re.Pattern[str]
    at: int
    endings: tuple[str, ...]


_SAVERS = (
    _Saver(re.compile(rf"{_MODEL}\(\)\.save$"), 0, _OF_MODELS),
    _Saver(re.compile(r"(tensorflow\.)?keras\.(models|saving)\.save_model$"), 1, _OF_MODELS),
    _Saver(re.compile(rf"{_MODEL}\(\)\.save_weights$"), 0, (".weights.h5",)),
    _Saver(re.compile(r"(tensorflow\.)?keras\.callbacks\.ModelCheckpoint$"), 0, (".keras", ".h5")),
)
_OTHERWISE = ("zipped", "max_shard_size")
"""Arguments with which other suffixes are allowed."""


def _check(view: JobView) -> Claims:
    if not _is_keras_3(view.target):
        return
    reach = view.reach
    for call in view.calls:
        saver = next((s for s in _SAVERS if s.name.match(call.name)), None)
        if saver is None or not call.complete or guarded(call.at, ValueError):
            continue
        endings = _endings(saver, call)
        ending = _ending(call, saver.at)
        if endings and ending is not None and not ending.endswith(endings):
            wanted = " or ".join(endings)
            yield claim_at(
                call.at,
                severity=reach.severity(call.at),
                message=f"Keras 3 saves this only to a file whose name ends in {wanted}, but the name "
                f"ends in {ending}.",
                consequence="ValueError: Invalid filepath extension for saving.",
                fix=f"Append {endings[0]} to the name, or call model.export for TensorFlow "
                "Serving.",
            )


def _is_keras_3(target: Target) -> bool:
    """Whether every ``keras`` of the target is version 3; TensorFlow can be set to use another."""
    known = target.distributions or {}
    return "keras" in known and known["keras"].version.startswith("3.") and "tf-keras" not in known


def _endings(saver: _Saver, call: LibraryCall) -> tuple[str, ...]:
    """The allowed suffixes; empty if they are not known."""
    if any(name in call.keywords for name in _OTHERWISE):
        return ()
    if not call.name.endswith("ModelCheckpoint"):
        return saver.endings
    only_weights = is_true(argument(call, 4, "save_weights_only"))
    if only_weights is None:
        return ()
    return (".weights.h5",) if only_weights else saver.endings


def _ending(call: LibraryCall, at: int) -> str | None:
    """The known part of the file name after its last directory; None if its end is not known."""
    text = path_text(argument(call, at, "filepath"))
    if text is None or text.parts[-1] is None or is_remote(text.beginning):
        return None
    return text.parts[-1].rpartition("/")[2] or None


RULE = Rule(
    category="illegal_argument",
    why="Keras 2.15 and earlier versions accept any name and create a directory in TensorFlow's "
    "format by default. Keras 3 selects the format by the suffix and rejects all other suffixes. "
    "The error occurs when the program saves the model after training.",
    fix="Use the suffix .keras for models and .weights.h5 for weights.",
    source="Keras 3 migration guide, Saving a model in the TF SavedModel format; keras/src/saving/saving_api.py",
    check=_check,
    examples="""
        import keras

        model = keras.Sequential([keras.layers.Dense(1)])
        model.save('model')  # <-
        ==> target.toml <==
        distributions = { keras = "3.12.0" }
        ---- caught if
        -model.save('model')  # <-
        +model.save_weights('weights.h5')  # <-
        ---- caught if
        -model.save('model')  # <-
        +keras.saving.save_model(model, 'model.tf')  # <-
        ---- ignored if
        -distributions = { keras = "3.12.0" }
        +distributions = { keras = "2.15.0" }
        ---- ignored if
        -model.save('model')
        +model.save('model', zipped=False)
        ---- ignored if
        -model.save('model')
        +try:
        +    model.save('model')
        +except ValueError:
        +    pass
        ---- ignored if
        +$ python train.py a.keras
        +import sys
         import keras
        @@
        -model.save('model')
        +model.save(sys.argv[1])
        ----
        from pathlib import Path
        from tensorflow import keras

        best = keras.models.load_model('best.keras')
        folder = Path('out')
        best.save(folder / 'export')  # <-
        ==> best.keras <==
        ==> out/a <==
        ==> target.toml <==
        distributions = { keras = "3.12.0" }
        ----
        import keras

        keep = keras.callbacks.ModelCheckpoint('w-{epoch}.keras')
        ==> target.toml <==
        distributions = { keras = "3.12.0" }
        ---- ignored if
        -keep = keras.callbacks.ModelCheckpoint('w-{epoch}.keras')
        +keep = keras.callbacks.ModelCheckpoint('w.weights.h5', save_weights_only=True)
        ---- caught if
        -keep = keras.callbacks.ModelCheckpoint('w-{epoch}.keras')
        +keep = keras.callbacks.ModelCheckpoint('w-{epoch}')  # <-
        ---- caught if
        -keep = keras.callbacks.ModelCheckpoint('w-{epoch}.keras')
        +keep = keras.callbacks.ModelCheckpoint('w.h5', save_weights_only=True)  # <-
    """,
)
