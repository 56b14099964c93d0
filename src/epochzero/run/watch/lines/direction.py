"""Whether what a training minimizes should be minimized: the sign of each term, as a reader of the source follows it.

A term has a direction by what it is: a log-probability, a likelihood, an overlap, a reward or the value of an actor's action
should grow; a loss or an error should fall. The sign of a term is followed through sums, differences, products with a
constant and increasing functions, along names and into functions of the file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.loss import losses, reached
from epochzero.run.watch.lines.program import ParsedFile, Use, last_name
from epochzero.run.watch.model import SourceLine

_FALLS = re.compile(
    r"loss|criteri|cross_entropy|nll|bce|mse|mae|rmse|kl_?div|ctc|error|cost|penalt|neg|minus|distance|energy|(^|_)(kl|kld|divergence)(_|$)",
    re.I,
)  # fmt: skip
_GROWS = re.compile(
    r"(^|_)(log_?probs?|logp|log_?likelihood|likelihood|elbo|evidence|rewards?|accuracy|iou|dice|jaccard|f1|psnr|ssim|"
    r"utility|sharpe)(_|$)",
    re.I,
)
_GAIN = re.compile(r"advantage|(^|_)adv(s|_|$)|reward|returns?(_|$)|(^|_)(gae|gain)(_|$)", re.I)
_CHOICE = re.compile(r"log_?prob|logp|ratio|chosen", re.I)
_VALUE = re.compile(r"^(critic|q_?(net|network|function|value)?\d?|value_?(net|function)?)\d?$", re.I)  # fmt: skip
_ACTOR = re.compile(r"^(actor|policy|pi)(_?net)?$", re.I)
_PREFERRED = re.compile(r"(^|_)(pos|positives?|preferred|chosen|better|winner|win)(_|$)", re.I)
_OTHER = re.compile(r"(^|_)(neg|negatives?|rejected|worse|loser|lose)(_|$)", re.I)
_DISTANCE = re.compile(r"dist|(^|_)d_|norm\(|cdist|pow\(2|square|\*\* ?2|energy|error|loss", re.I)
_ADDED = re.compile(
    r"(^|_)(kl|kld|kl_?div\w*|divergence|recon\w*|mse|bce|nll|cross_entropy|commit\w*|penalty)(_|$)",
    re.I,
)
_RIVAL = re.compile(
    r"adv|domain|disc|critic|fake|real|entropy|teacher|confus|(^|_)(g|gen\w*)(_|$)", re.I
)
_NEUTRAL = re.compile(r"entropy|regular|decay|bonus", re.I)
_INCREASING = frozenset({
    "mean", "sum", "nanmean", "squeeze", "float", "to", "cpu", "view", "reshape", "flatten", "exp", "log", "sqrt", "relu",
    "softplus", "sigmoid", "logsigmoid", "tanh", "clamp", "clip", "min", "minimum", "scale", "div", "stack", "cat", "double",
})  # fmt: skip
_FACTOR = re.compile(r"weight|coef|beta|lambda|lam$|scale|mask|factor|gamma|(^|_)w\d?$", re.I)
_DEEPEST = 24


@dataclass(frozen=True, slots=True)
class LossTerm:
    """A term of what is minimized.

    Attributes:
        name: as the source calls it.
        place: its line.
        sign: 1 or -1, as it enters what is minimized.
        grows: whether it should be maximized; None where that is unknown.
    """

    name: str
    place: SourceLine
    sign: int
    grows: bool | None


def minimized_terms(history: TrainingHistory) -> Iterator[list[LossTerm]]:
    """For each backward pass the terms that should grow, if going down its gradient makes all of them fall.

    An optimizer with ``maximize=True`` goes up instead.
    """
    for program, loss in losses(history):
        if wrong := wrong_terms(program, loss):
            yield wrong


def wrong_terms(program: ParsedFile, loss: ast.expr) -> list[LossTerm]:
    """The terms of a loss that minimizing it moves the wrong way.

    Terms that should grow, if all of them fall; a subtracted unknown term decides nothing. Of two alternatives, as of a positive
    and a negative example, both, if the wrong one gains. A divergence or an error that is subtracted from another one.
    """
    terms = list(_terms(program, Use(loss), 1, 0))
    better = [term for term in terms if _is_preferred(term.name)]
    worse = [term for term in terms if _is_other(term.name)]
    of_generator = _RIVAL.search(last_name(loss).replace("loss", ""))
    if better and worse and not of_generator:
        if all(term.sign > 0 for term in better) and all(term.sign < 0 for term in worse):
            return better[:1] + worse[:1]
        return []
    # One alone says nothing: a generator's loss is of what is generated.
    alone = {id(term) for term in (*better, *worse)}
    terms = [replace(term, grows=None) if id(term) in alone else term for term in terms]
    added = [term for term in terms if term.grows is False and _ADDED.search(term.name)]
    subtracted = [term for term in added if term.sign < 0]
    rivals = of_generator or any(_RIVAL.search(term.name) for term in terms)
    if subtracted and not rivals and len(subtracted) < sum(term.grows is False for term in terms):
        return subtracted
    growing = [term for term in terms if term.grows]
    undecided = any(term.sign < 0 and term.grows is not False for term in terms)
    return [] if undecided else growing


def _terms(program: ParsedFile, use: Use, sign: int, depth: int) -> Iterator[LossTerm]:
    node = use.node
    if depth > _DEEPEST:
        yield LossTerm("", program.place(node), sign, None)
        return

    def of(part: ast.AST, sign: int = sign) -> Iterator[LossTerm]:
        return _terms(program, replace(use, node=part, path=(), changes=None), sign, depth + 1)

    if isinstance(node, ast.Constant):
        return
    if alternative := _alternative(program, use, sign):
        yield alternative
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from of(node.operand, -sign)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from of(node.left)
        yield from of(node.right, sign if isinstance(node.op, ast.Add) else -sign)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _product(program, use, node, sign, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from of(node.left)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        yield from of(node.value, sign if isinstance(node.op, ast.Add) else -sign)
        before = program.behind(use)
        yield from _terms(program, before, sign, depth + 1) if before is not None else ()
    elif isinstance(node, ast.Call):
        yield from _of_call(program, use, node, sign, depth)
    elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        before = program.behind(use)
        terms = list(_terms(program, before, sign, depth + 1)) if before is not None else []
        if before is not None and _is_loss_by_name(node, before.node, terms):
            terms = []
        yield from _or_named(terms, program, node, sign)
    else:
        yield LossTerm("", program.place(node), sign, None)


def _is_loss_by_name(node: ast.AST, made: ast.AST, terms: list[LossTerm]) -> bool:
    """Whether the result of a call is stored as a loss, though the call has the name of what should grow."""
    is_item = isinstance(node, ast.Subscript) and len(terms) == 1
    named = isinstance(made, ast.Call) and [term.name for term in terms] == [last_name(made.func)]
    grows = is_item or named
    return grows and bool(_FALLS.search(last_name(node))) and not terms[0].name.startswith("log")


def _product(
    program: ParsedFile, use: Use, node: ast.BinOp, sign: int, depth: int
) -> Iterator[LossTerm]:
    """The choice of an action times what it gained; or a term times a factor that is positive."""
    parts: list[ast.expr] = []
    for side in (node.left, node.right):
        part = side
        while isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
            sign, part = -sign, part.operand
        parts.append(part)
    left, right = parts
    for choice, gain in ((left, right), (right, left)):
        if _mentions(choice, _CHOICE) and _mentions(gain, _GAIN):
            yield LossTerm(ast.unparse(node)[:60], program.place(node), sign, True)
            return
    for factor, term in ((left, right), (right, left)):
        if isinstance(factor, ast.Constant) or _FACTOR.search(last_name(factor)):
            rest = replace(use, node=term, path=(), changes=None)
            yield from _terms(program, rest, sign, depth + 1)
            return
    yield LossTerm("", program.place(node), sign, None)


def _of_call(
    program: ParsedFile, use: Use, call: ast.Call, sign: int, depth: int
) -> Iterator[LossTerm]:
    name = last_name(call.func)
    if _VALUE.match(name) and any(_is_action(program, use, argument) for argument in call.args):
        yield LossTerm(ast.unparse(call)[:60], program.place(call), sign, True)
        return
    if name in _INCREASING:
        method = isinstance(call.func, ast.Attribute) and not program.is_of_library(call.func.value)
        is_scaling = name == "scale"
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        inner = receiver if method and not is_scaling else next(iter(call.args), None)
        if inner is not None:
            rest = replace(use, node=inner, path=(), changes=None)
            yield from _terms(program, rest, sign, depth + 1)
            return
    inside = program.defined(call)
    before = program.behind(use) if inside is not None and inside.name != "__init__" else None
    terms = list(_terms(program, before, sign, depth + 1)) if before is not None else []
    yield from _or_named(terms, program, call, sign)


def _or_named(
    terms: list[LossTerm], program: ParsedFile, node: ast.AST, sign: int
) -> list[LossTerm]:
    """The terms that a value was computed from, if a direction is known of any; else the value by its name, if that has one."""
    if any(term.grows is not None for term in terms):
        return terms
    name = last_name(node)
    if re.search(r"(^|_)(kl|kld)(_|$)", name, re.I) and any(
        term.sign != sign and term.name in ("pow", "square", "") for term in terms
    ):
        return [LossTerm("", program.place(node), sign, None)]  # The negative of a divergence.
    if _NEUTRAL.search(name) and not _FALLS.search(name):
        return []
    grows = False if _FALLS.search(name) else True if _GROWS.search(name) else None
    # A function called dice may return what is missing to the overlap; what log_prob returns is settled.
    if grows and any(term.sign != sign for term in terms) and not name.startswith("log_prob"):
        grows = None
    if grows is None and terms:
        return terms
    return [LossTerm(name, program.place(node), sign, grows)]


def _alternative(program: ParsedFile, use: Use, sign: int) -> LossTerm | None:
    """A score of one of two alternatives, which should grow or fall; a distance does the opposite."""
    node = use.node
    name = last_name(node)
    if isinstance(node, ast.Call) and not (_is_preferred(name) or _is_other(name)):
        known = [n for arg in node.args if _is_preferred(n := last_name(arg)) or _is_other(n)]
        is_method = program.defined(node) is not None or program.is_of_library(node.func)
        if len(known) != 1 or is_method or _FALLS.search(name) or name in _INCREASING:
            return None
        name = known[0]
    elif not isinstance(node, ast.Name | ast.Attribute | ast.Call):
        return None
    if not (_is_preferred(name) or _is_other(name)) or re.search(
        r"loss|err|weight|mask|label|criteri", name, re.I
    ):
        return None
    made = " ".join(ast.unparse(u.node) for u in [use, *list(reached(program, node))[:4]])
    sign = -sign if _DISTANCE.search(made) else sign
    return LossTerm(name, program.place(node), sign, _is_preferred(name))


def _is_preferred(name: str) -> bool:
    return bool(_PREFERRED.search(name)) and not _OTHER.search(name)


def _is_other(name: str) -> bool:
    return bool(_OTHER.search(name)) and not _PREFERRED.search(name)


def _mentions(node: ast.AST, words: re.Pattern[str]) -> bool:
    return any(words.search(last_name(part)) for part in ast.walk(node))


def _is_action(program: ParsedFile, use: Use, value: ast.expr) -> bool:
    """Whether a value was computed by an actor, and not cut off from it."""
    for source in reached(program, value):
        if isinstance(source.node, ast.Call) and _ACTOR.match(last_name(source.node.func)):
            return True
    return False
