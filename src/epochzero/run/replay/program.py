"""Writes a small program that reproduces a failure, to be attached to a bug report.

The program requires only torch. Small tensors are literals. Larger ones are drawn from the same range; if that
does not reproduce the failure, they are stored in a file next to the program. Every program is run before it is
returned, and only one that fails in the same way as the job is returned.
"""

from __future__ import annotations

import ast
import math
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epochzero.errors import InputError, writing
from epochzero.run.replay.child.layout import header_of
from epochzero.run.replay.walk_result import FailureOrigin, OperatorCall, TensorValues
from epochzero.scratch import scratch_directory

MOST_INLINE = 256
"""Largest number of elements, of all tensors together, that are written as literals."""
LIMIT_S = 120
_NAME = re.compile(r"(?:torch|aten|[a-z_]+)(?:\.\w+)+")
_WORD = re.compile(r"torch\.\w+")
_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
}  # fmt: skip
_READ = '''

def read(path):
    """The tensors of a file in the layout of safetensors."""
    data = open(path, "rb").read()
    end = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:end]).items():
        start, stop = (end + offset for offset in entry["data_offsets"])
        raw = torch.frombuffer(bytearray(data[start:stop]), dtype=torch.uint8)
        found[name] = raw.view(TYPES[entry["dtype"]]).reshape(entry["shape"])
    return found

'''
_NOT_FINITE = """
for tensor in result if isinstance(result, (tuple, list)) else (result,):
    print(tensor)
    if tensor is not None and tensor.is_floating_point():
        assert torch.isfinite(tensor).all(), "the result is not finite"
"""
_BAD = "the result is not finite"


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A program that fails in the same way as the job.

    Attributes:
        path: of the program.
        call: the call that fails in it.
        data: ``inline``, ``made`` from the same range, or ``file``.
        file: file of the tensors; None if there is none.
        outcome: how the program ended when it was run.
    """

    path: Path
    call: str
    data: str
    file: Path | None
    outcome: str


def write_program(walked: FailureOrigin, path: Path, python: Path | None = None) -> Reproducer:
    """Write a program that reproduces the failure, after running it to confirm that.

    Args:
        walked: result of following the failing step.
        path: of the program to write; a file of tensors gets the same name with ``.safetensors``.
        python: interpreter with torch that runs it; by default the one that ran the job.

    Raises:
        InputError: no operator of torch fails on its own, no candidate program failed in the same way as the job,
            or the file cannot be written.
    """
    if walked.why not in ("raised", "not_finite") or not walked.calls:
        raise InputError(
            "no PyTorch operator fails on its own: the failure is in the program's own code, and no smaller "
            "program reproduces it"
        )
    for call, held in reversed([*_with_tensors(walked)]):
        for data, text in _texts(call, held, walked, path):
            wanted = walked.error or f"AssertionError: {_BAD}"
            if wanted in map(_plain, _tried(text, held, path, str(python or walked.python))):
                file = _beside(path) if data == "file" else None
                return _kept(Reproducer(path, call.name, data, file, wanted), text, held)
    raise InputError(
        "the failing operator succeeds on its own; it may depend on earlier operations. Use the replay itself"
    )


def _with_tensors(
    walked: FailureOrigin,
) -> Iterator[tuple[OperatorCall, Mapping[str, TensorValues]]]:
    """Yield each call that can be written as a program, with its tensors."""
    for number, call in enumerate(walked.calls):
        held = {
            n.partition(".")[2]: t for n, t in walked.held.items() if n.startswith(f"{number}.")
        }
        if _is_safe(call) and all(tensor.dtype in _DTYPES for tensor in held.values()):
            yield call, held


def _is_safe(call: OperatorCall) -> bool:
    """Whether a name belongs to torch and a module has only plain arguments: both become code."""
    if call.kind != "module":
        return _NAME.fullmatch(call.name) is not None
    try:
        made = ast.parse(call.name, mode="eval").body
        if not isinstance(made, ast.Call) or not ast.unparse(made.func).startswith("torch.nn."):
            return False
        for value in (*made.args, *(keyword.value for keyword in made.keywords)):
            ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return False
    return True


# Program text -----------------------------------------------------------------------------------------


def _texts(
    call: OperatorCall, held: Mapping[str, TensorValues], walked: FailureOrigin, path: Path
) -> Iterator[tuple[str, str]]:
    """Yield candidate programs, the smallest first, each with the form of its tensors."""
    try:
        arguments = [_literal(arg) for arg in call.given["args"]]
        arguments += [f"{_word(n)}={_literal(value)}" for n, value in call.given["kwargs"].items()]
    except (KeyError, TypeError, ValueError):
        return
    names = re.findall(r"\bx\d+\b", ", ".join(arguments))
    if any(name[1:] not in held for name in names):
        return
    called = f"torch.ops.{call.name}" if call.kind == "operator" else call.name
    lines = [f"result = {called}({', '.join(arguments)})"]
    if walked.why == "not_finite":
        lines.append(_NOT_FINITE.rstrip())
    ending = "\n".join(lines) + "\n"
    top = _head(walked)
    grads = _gradients(call.given)
    if sum(_count(held_value) for held_value in held.values()) <= MOST_INLINE:
        made = [f"x{name} = {_inline(h)}{grads.get(name, '')}" for name, h in held.items()]
        yield "inline", f"{top}import torch\n\n" + "\n".join(made) + f"\n{ending}"
        return
    made = [line for name, h in held.items() for line in _made(f"x{name}", h, grads.get(name, ""))]
    yield "made", f"{top}import torch\n\ntorch.manual_seed(0)\n" + "\n".join(made) + f"\n{ending}"
    types = ", ".join(
        f'"{w}": torch.{_DTYPES[w]}' for w in sorted({o.dtype for o in held.values()})
    )
    read = [f'x{name} = tensors["{name}"]{grads.get(name, "")}' for name in held]
    yield (
        "file",
        f"{top}import json\nfrom pathlib import Path\n\nimport torch\n\nTYPES = {{{types}}}\n{_READ}\n"
        f'tensors = read(Path(__file__).with_name("{_beside(path).name}"))\n' + "\n".join(read) + f"\n{ending}",
    )  # fmt: skip


def _head(walked: FailureOrigin) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in walked.versions.items())
    outcome = walked.error or f"{walked.culprit.name if walked.culprit else 'an operator'} returns non-finite values"  # fmt: skip
    outcome = re.sub(r'[^ -~]|["\\]', "'", outcome)
    return f'"""{outcome}"""\n\n# Seen with {re.sub(r"[^ -~]", "", versions)}.\n'


def _literal(recorded: Any) -> str:
    """Return an argument as code; tensors are named ``x0``, ``x1``."""
    if recorded is None or isinstance(recorded, (bool, int, float, str)):
        return repr(recorded)
    kind = recorded["kind"]
    if kind == "tensor":
        return f"x{int(recorded['name'])}"
    if kind == "float":
        return f"float({str(float(recorded['value']))!r})"
    if kind in ("list", "tuple"):
        items = ", ".join(_literal(item) for item in recorded["items"])
        return f"[{items}]" if kind == "list" else f"({items}{',' if recorded['items'] else ''})"
    pairs = recorded["items"] if kind == "dict" else None
    if pairs and len(pairs) == 1 and pairs[0][0] == "torch":
        text = str(pairs[0][1])
        return text if _WORD.fullmatch(text) else 'torch.device("cpu")'
    if pairs is not None:
        return "{" + ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in pairs) + "}"
    raise ValueError(f"an argument of type {kind} cannot be written as code")


def _word(name: str) -> str:
    if not name.isidentifier():
        raise ValueError(name)
    return name


def _gradients(given: Any) -> dict[str, str]:
    """Code, by name of a tensor, that makes it require gradients."""
    if isinstance(given, Mapping):
        if given.get("kind") == "tensor":
            return {given["name"]: ".requires_grad_()"} if given.get("requires_grad") else {}
        given = list(given.values())
    if isinstance(given, list):
        return {name: text for value in given for name, text in _gradients(value).items()}
    return {}


def _inline(held: TensorValues) -> str:
    flat = _values(held).reshape(-1)
    # The shortest decimal that is the same value in the tensor's type.
    values = repr([float(str(v)) for v in flat] if flat.dtype.kind == "f" else flat.tolist())
    values = re.sub(r"-?\b(?:inf|nan)\b", lambda word: f'float("{word[0]}")', values)
    made = f"torch.tensor({values}, dtype=torch.{_DTYPES[held.dtype]})"
    return made if len(held.shape) == 1 else f"{made}.reshape({list(held.shape)})"


def _made(name: str, held: TensorValues, gradient: str) -> list[str]:
    """Return lines that create a tensor of the same range with the same share of zeros and non-finite values."""
    values, dtype = _values(held).reshape(-1), f"torch.{_DTYPES[held.dtype]}"
    shape = list(held.shape)
    if not values.size:
        return [f"{name} = torch.empty({shape}, dtype={dtype}){gradient}"]
    if not held.dtype.endswith(("F16", "F32", "F64")):
        least, most = int(values.min()), int(values.max())
        lines = [f"{name} = torch.randint({least}, {most + 1}, {shape}).to({dtype})"]
        return [*lines, f"{name}.view(-1)[:2] = torch.tensor([{least}, {most}])[:{min(2, values.size)}].to({dtype})"]  # fmt: skip
    finite = values[np.isfinite(values)].astype(np.float64)
    mean, spread = (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 1.0)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    lines = [f"{name} = (torch.randn({shape}) * {spread:.9g} + {mean:.9g}).clamp({low!r}, {high!r}).to({dtype})"]  # fmt: skip
    special = [low, high, *([0.0] if (finite == 0).any() else [])]
    special += [
        v for v in (math.nan, math.inf, -math.inf) if np.isclose(values, v, equal_nan=True).any()
    ]
    recorded = ", ".join(f'float("{v}")' if not math.isfinite(v) else repr(v) for v in special)
    count = min(len(special), values.size)
    lines.append(f"{name}.view(-1)[:{count}] = torch.tensor([{recorded}])[:{count}].to({dtype})")
    return [*lines, f"{name}{gradient}"] if gradient else lines


def _values(held: TensorValues) -> Any:
    """The elements of a tensor as a NumPy array."""
    if held.dtype == "BF16":
        wide = np.frombuffer(held.data, dtype="<u2").astype(np.uint32) << 16
        return wide.view(np.float32).reshape(held.shape)
    word = {"BOOL": "?"}.get(held.dtype) or {"F": "f", "I": "i", "U": "u"}[held.dtype[0]] + str(int(held.dtype[1:]) // 8)  # fmt: skip
    return np.frombuffer(held.data, dtype=word).reshape(held.shape)


def _count(held: TensorValues) -> int:
    return math.prod(held.shape)


# Running and storing ----------------------------------------------------------------------------------


def _tried(text: str, held: Mapping[str, TensorValues], path: Path, python: str) -> Sequence[str]:
    """Run the program in a temporary directory; return its standard error, empty if it does not fail."""
    with scratch_directory() as folder:
        program = Path(folder, path.name)
        program.write_text(text, encoding="utf-8")
        _write_tensors(_beside(program), held)
        try:
            done = subprocess.run(
                [python, "-I", program.name], cwd=folder, env={}, capture_output=True, text=True,
                errors="replace", timeout=LIMIT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ()
    return done.stderr.splitlines() if done.returncode else ()


def _plain(outcome: str) -> str:
    """Return a message without the module of its exception."""
    kind, colon, message = outcome.partition(": ")
    return f"{kind.rpartition('.')[2]}{colon}{message}"


def _kept(program: Reproducer, text: str, held: Mapping[str, TensorValues]) -> Reproducer:
    with writing(program.path):
        program.path.write_text(text, encoding="utf-8")
        if program.file is not None:
            _write_tensors(program.file, held)
    return program


def _write_tensors(path: Path, held: Mapping[str, TensorValues]) -> None:
    head = header_of({name: (h.dtype, h.shape) for name, h in held.items()})
    path.write_bytes(head + b"".join(held_value.data for held_value in held.values()))


def _beside(path: Path) -> Path:
    return path.with_suffix(".safetensors")
