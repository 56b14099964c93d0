"""In which phase of a job a failure happened (Zhang et al., ICSE 2020, Section 4.4).

Rules read the names on the stack; a small learned model (``phase.json``, made by
``bench/train_phase.py``) weighs their answer against all that the stack names.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby

from epochzero.diagnose.linear import shipped
from epochzero.logs.traceback import Frame
from epochzero.logs.user_code import is_user_frame

# Phases by category, used if the stack does not determine the phase.
_AT_START = frozenset({"library_not_found", "syntax_error"})
_OF_DATA = frozenset({"corrupt_data", "unexpected_encoding"})


TRAINING = frozenset({"counting", "training"})
"""Work that is a training, unless the stack shows otherwise: a progress bar without a label counts its steps."""


_OF_DATA_SET = re.compile(r"^(?:__getitem__|__getitems__|collate_fn|prepare_data|_worker_loop)$")
"""Functions that only data sets and their loaders have."""
_OF_MODEL = re.compile(r"^(?:forward|training_step|validation_step|test_step|backward|step)$")
_OF_TEST = re.compile(r"^(?:_test_impl|test_step|_predict_impl|predict_step)$")
_OF_EPOCH = re.compile(
    r"^_?(?:inner_training_loop|train(?:ing)?_(?:epoch|step|iter\w*)|run_epoch|fit_one\w*|validat\w*)$"
)
"""Loops of a training, and validations: an evaluation that they call below a training is a validation."""
_INFERS = re.compile(
    r"(?i)(?:^|_)(?:infer|inference|predict|demo|generate|translate|sample)(?:_|$)"
)
"""Words in the name of a program that applies a model."""


def _decided(frames: Sequence[Frame], *, trained: bool) -> str:
    """The phase that the definitions decide by who called whom; empty if they decide none."""
    names = _names(frames)
    if reads_sample(frames):
        return "preprocessing"
    if any(map(_OF_TEST.match, names)):
        return "evaluation"
    own = [frame for frame in frames if is_user_frame(frame)]
    if (
        not trained
        and own
        and _INFERS.search(_module(own[0]))
        and _OF_MODEL.match(own[-1].function)
    ):
        return "evaluation"
    return ""


def _names(frames: Sequence[Frame]) -> list[str]:
    return [frame.function.rpartition(".")[2] for frame in frames]


def reads_sample(frames: Sequence[Frame]) -> bool:
    """Whether a data set or its loader was reading a sample, and no model was called by it."""
    names = _names(frames)
    data = max(
        (n for n, name in enumerate(names) if _OF_DATA_SET.match(name) and _of_data(frames[n])),
        default=-1,
    )
    return data >= 0 and not any(map(_OF_MODEL.match, names[data:]))


def _of_data(frame: Frame) -> bool:
    """Whether a frame is of a data set: containers of libraries have methods of the same names."""
    return is_user_frame(frame) or "/utils/data/" in frame.file.replace("\\", "/")


def _module(frame: Frame) -> str:
    return re.split(r"[\\/]", frame.file)[-1].removesuffix(".py")


def phase_of(
    frames: Sequence[Frame],
    category: str,
    *,
    kind: str = "",
    work: frozenset[str],
    stated: str = "",
    announced: str = "",
) -> str:
    """The phase that a stack and the log before it point to.

    Args:
        frames: outermost call first.
        category: of the failure.
        kind: class of the exception, as printed.
        work: what the job did before the failure, as in `epochzero.logs.progress.ProgressLine`.
        stated: the phase in which a known message usually is printed; empty if unknown.
        announced: the phase that the log announces before the failure, which counts where the stack names none.
    """
    trained = bool(work & TRAINING)
    if "serving" in work and "training" not in work:
        return "evaluation"
    decided = "" if category == "interrupted" else _decided(frames, trained=trained)
    if decided:
        return decided
    if stated and not ((trained or announced) and stated == "initialization"):
        return stated
    if announced and not trained and not _by_names(frames):
        return announced  # Once it trains, a program announces its validations too.
    phase = _weighed(frames, category, kind=kind, work=work)
    if category == "interrupted" and trained and phase == "preprocessing":
        return "training"  # The loop had begun: it reads its samples while it trains.
    if category == "interrupted" and phase == "training" and not (trained or _in_loop(frames)):
        others = [frame for frame in reversed(frames) if not is_user_frame(frame)]
        return "preprocessing" if _by_names(others) == "preprocessing" else phase
    names = [frame.function for frame in frames]
    trains = next((n for n, name in enumerate(names) if "train" in name), len(names))
    validates = phase == "evaluation" and any(map(_OF_EPOCH.match, names[trains:]))
    return "training" if validates else phase


def _in_loop(frames: Sequence[Frame]) -> bool:
    return any(_LOOP.search(frame.function) or _LOOP_CODE.search(frame.code) for frame in frames)


def _weighed(frames: Sequence[Frame], category: str, *, kind: str, work: frozenset[str]) -> str:
    """The phase by all names on the stack together."""
    trained = bool(work & TRAINING)
    own = [frame for frame in frames if is_user_frame(frame)]
    named = _by_function(own[-1]) if own else ""
    loads = named == "preprocessing" and _LOADS.search(own[-1].code)
    if loads or (named == "evaluation" and trained):
        return named
    ruled = ruled_phase(frames, category, trained=trained)
    features = phase_features(frames, category, ruled, kind=kind, work=work)
    learned, _ = shipped("phase.json").classify(features)
    return learned or ruled


def ruled_phase(frames: Sequence[Frame], category: str, *, trained: bool) -> str:
    """The phase by the names of functions and files alone (``phases.toml``)."""
    if category in _AT_START and not trained:
        return "initialization"
    own = [frame for frame in reversed(frames) if is_user_frame(frame)]
    other = [frame for frame in reversed(frames) if not is_user_frame(frame)]
    calling = [frame for frame in own if not _ANY_PHASE.match(frame.function)]
    phase = _by_names(calling) or _by_names(own) or _by_names(other)
    if phase == "training" and not trained and not _in_loop(frames):
        # No training so far, and no training loop is on the stack.
        phase = ""
    if phase:
        return phase
    if trained:
        return "training"
    return "preprocessing" if category in _OF_DATA else "initialization"


_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")
_WORD = re.compile(r"[A-Za-z]{3,}")
CODE_WORDS, LONGEST_PATH = 12, 4


def phase_features(
    frames: Sequence[Frame], category: str, ruled: str, *, kind: str, work: frozenset[str]
) -> frozenset[str]:
    """What the learned model of phases sees: the words in the names of functions and files, those of
    the innermost frame, of the user's first and of the user's last one marked as such, the source
    lines of these three, and through which phases the calls lead from the outermost to the innermost.
    """
    own = [frame for frame in frames if is_user_frame(frame)]
    found = {
        f"category={category}", f"ruled={ruled}", f"own={min(3, len(own))}",
        f"frames={min(20, len(frames) // 3)}", f"type={kind.rsplit('.', 1)[-1]}",
    }  # fmt: skip
    found |= {f"work={each}" for each in work or ("none",)}
    for frame in frames:
        found |= _named(frame, "")
    named = filter(None, (_by_names([frame]) for frame in own or frames))
    path = [phase for phase, _ in groupby(named)] or [""]
    found |= {f"path={'>'.join(path[:LONGEST_PATH])}", f"outer={path[0]}", f"inner={path[-1]}"}
    found.add(f"outer,trained={path[0]},{bool(work & TRAINING)}")
    marked = {"last": frames[-1:], "own": own[-1:], "first": own[:1]}
    for mark, chosen in marked.items():
        for frame in chosen:
            found |= _named(frame, mark)
            code = _WORD.findall(frame.code)[:CODE_WORDS]
            found |= {f"{mark}:code={word.lower()}" for word in code}
    return frozenset(found)


def _named(frame: Frame, mark: str) -> set[str]:
    file = re.split(r"[/\\]", frame.file)[-1]
    return {f"{mark}:in={part.lower()}" for part in _PART.findall(frame.function)} | {
        f"{mark}:file={part.lower()}" for part in _PART.findall(file)
    }


_LOADS = re.compile(r"\b(?:torch|joblib|pickle|np|numpy)\.load\(|\bopen\(")
"""Calls that load anything: what it is, the name of the function around them says."""
_ANY_PHASE = re.compile(r"^(?:\w*forward\w*|__call__|loss\w*|compute_loss|criterion)$")
"""Functions of a model, which are called in training and evaluation alike."""
_LOOP = re.compile(r"train|fit|backward|learn|epoch|step|loss")
_LOOP_CODE = re.compile(r"\bloss\w* = |criterion\(|\.backward\(|\.step\(|\bepoch\b")
_Hint = tuple[str, re.Pattern[str], re.Pattern[str] | None, re.Pattern[str] | None]


def _by_names(frames: Iterable[Frame]) -> str:
    for frame in frames:
        for phase, function, file, code in _hints():
            named = function.search(frame.function) or (file and file.search(frame.file))
            if named or (code and code.search(frame.code)):
                return phase
    return ""


def _by_function(frame: Frame) -> str:
    """The phase that the name of a function alone points to; empty if none."""
    return next((phase for phase, name, *_ in _hints() if name.search(frame.function)), "")


@cache
def _hints() -> tuple[_Hint, ...]:
    text = files(__package__).joinpath("phases.toml").read_text(encoding="utf-8")
    return tuple(
        (
            raw["phase"],
            re.compile(raw["function"]),
            re.compile(raw["file"]) if "file" in raw else None,
            re.compile(raw["code"]) if "code" in raw else None,
        )
        for raw in tomllib.loads(text)["hint"]
    )
