"""The programs in ``memory/``, measured on the local GPU, compared with the estimate for it.

An estimate needs no GPU: ``--estimate FILE --gpu H100`` writes those of all cases anywhere, and
``--estimates FILE`` reads them where the GPU is. Without the latter they are computed here, at the same time as
the measurements. Each measurement is appended to ``memory_gpu.jsonl`` next to the result files at once; ``--measured``
makes the result from such a file, of a run that was cut off. Without a GPU nothing is measured or written, and the exit
code is that of a skipped part; if some cases could not be measured, it is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from common import RESULTS, SKIPPED, require_all, save
from memory import errors, estimated, versions
from rivals.memory import torch_preflight

from epochzero.check.target.gpus import presets
from epochzero.check.target.model import GPU

HERE = Path(__file__).resolve().parent
AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))
"""Programs that run at the same time: in this order, four take at most 45 GiB."""
LIMIT_S = 150
"""Seconds for one program; compiling takes longest."""
MEAN_ALLOCATED, MEAN_RESERVED, MOST = 0.015, 0.03, 0.06
"""The largest errors that are wanted."""
GPT2 = ("language.py", "--model=gpt2")
LLAMA = ("language.py", "--model=llama1b", "--dtype=bf16")
CASES: tuple[tuple[str, ...], ...] = (
    # The slowest first, so that the others run meanwhile.
    (*GPT2, "--batch=8", "--length=512", "--autocast", "--compile"),
    ("image.py", "--batch=64", "--autocast", "--compile"),
    (*LLAMA, "--batch=1", "--length=1024", "--inference", "--generate=32"),
    (*GPT2, "--batch=4", "--length=512", "--fsdp"),
    (*GPT2, "--batch=16", "--length=1024", "--dtype=bf16", "--inference", "--compile"),
    (*GPT2, "--batch=4", "--length=512"),
    (*GPT2, "--batch=8", "--length=1024", "--autocast"),
    (*GPT2, "--batch=8", "--length=1024", "--autocast", "--checkpointing"),
    (*GPT2, "--batch=8", "--length=512", "--dtype=bf16"),
    (*GPT2, "--batch=8", "--length=512", "--half"),
    (*GPT2, "--batch=2", "--length=128", "--optimizer=adamw", "--single"),
    (*GPT2, "--batch=4", "--length=512", "--fused"),
    (*GPT2, "--batch=4", "--length=512", "--optimizer=adamw8bit"),
    (*GPT2, "--batch=4", "--length=512", "--optimizer=sgd"),
    (*GPT2, "--batch=4", "--length=512", "--accumulate=4"),
    (*GPT2, "--batch=4", "--length=1024", "--attention=eager"),
    (*GPT2, "--batch=4", "--length=1024", "--attention=math"),
    (*GPT2, "--batch=4", "--length=1024", "--attention=efficient"),
    (*GPT2, "--batch=16", "--length=1024", "--dtype=bf16", "--inference"),
    (*LLAMA, "--batch=2", "--length=1024", "--checkpointing", "--optimizer=sgd"),
    (*LLAMA, "--batch=2", "--length=1024", "--lora"),
    ("language.py", "--model=bert", "--batch=8", "--length=256"),
    ("language.py", "--model=bert", "--batch=32", "--length=512", "--autocast"),
    ("language.py", "--model=distilbert", "--batch=16", "--length=256", "--autocast"),
    ("image.py", "--batch=32"),
    ("image.py", "--batch=64", "--autocast"),
    ("image.py", "--batch=64", "--autocast", "--channels-last"),
    ("image.py", "--batch=16", "--optimizer=sgd"),
    ("image.py", "--batch=16", "--single"),
    ("image.py", "--batch=64", "--inference", "--autocast"),
)
NAMES = {
    "gpt2": "gpt2",
    "bert": "bert-base-uncased",
    "distilbert": "distilbert-base-uncased",
}
"""Of the models that torch-preflight knows, for it."""
OPTIMIZERS = {("image", "sgd"): "sgd-momentum", ("language", "adamw8bit"): "adamw-8bit"}
"""Those whose names differ, by program."""
UNKNOWN_TO_PREFLIGHT = ("inference", "lora", "fsdp", "compile", "accumulate", "attention", "half")


def main() -> None:
    """Measures, prints, and saves the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="has torch for CUDA, transformers")
    parser.add_argument("--rivals", default=sys.executable, metavar="PYTHON", help="Python that has torch-preflight.")  # fmt: skip
    parser.add_argument("--estimate", type=Path, metavar="FILE", help="write the estimates only")
    parser.add_argument("--estimates", type=Path, metavar="FILE", help="read them")
    parser.add_argument("--gpu", default="H100", help="preset for --estimate")
    parser.add_argument("--stand-in", action="store_true", help="measure on a simulated GPU")
    parser.add_argument("--measured", type=Path, metavar="FILE", help="measurements made before")
    parser.add_argument("--only", default="", metavar="WORD", help="cases with this word")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in " ".join(case)]
    if options.estimate:
        estimates = _estimates(cases, presets()[options.gpu], options.python)
        options.estimate.write_text(json.dumps(estimates, indent=1) + "\n")
        return
    stand_in = options.stand_in or options.measured
    gpu = presets()[options.gpu] if stand_in else _gpu(options.python)
    if gpu is None:
        print("skipped, because it needs a GPU and torch sees none")
        sys.exit(SKIPPED)
    measure = _measured
    if options.measured:
        before = _read(options.measured)
        cases = [case for case in cases if " ".join(case) in before]
        measure = partial(_recorded, before)
    with ThreadPoolExecutor(1) as background, ThreadPoolExecutor(AT_ONCE) as pool:
        if options.estimates:
            estimates: Any = json.loads(options.estimates.read_text(encoding="utf-8"))
            waiting = None
        else:
            waiting = background.submit(_estimates, cases, gpu, options.python)
        if options.stand_in and waiting is not None:
            # Nothing is measured: the estimate, in place of what a GPU would show.
            estimates = waiting.result()
            measure = partial(
                _recorded, {case: row.get("epochzero", row) for case, row in estimates.items()}
            )
        measured = list(pool.map(lambda case: measure(case, options.python), cases))
        if waiting is not None:
            estimates = waiting.result()
    rows: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for case, real in zip(cases, measured, strict=True):
        row = {"program": case, **estimates[" ".join(case)]}
        if "error" in real or "error" in row:
            failed.append({**row, **({"measuring": real["error"]} if "error" in real else {})})
        else:
            rows.append({**row, "measured": real})
    used = versions(options.python, "torch", "transformers")
    try:
        rivals = _add_rival(rows, options.rivals, gpu)
    except subprocess.CalledProcessError as error:  # The measurements are valid without the rival.
        rivals = {"torch-preflight": f"not run: {error.stderr[-300:]}"}
    numbers: dict[str, Any] = {
        "gpu": gpu.model,
        "cases": len(cases),
        "of": len(CASES),
        "runs": rows,
        "failed": failed,
    }
    if rows:
        numbers |= _summary(rows)
    for row in rows:
        real, said = row["measured"], row["epochzero"]
        texts = [f"{what} {said[what] / real[what] - 1:+.1%}" for what in ("allocated", "reserved")]
        print(f"{' '.join(row['program']):80} {', '.join(texts)}")
    for row in failed:
        why = row.get("measuring") or row.get("error")
        print(f"{' '.join(row['program']):80} failed: {why[-300:]}")
    if options.stand_in or not options.only:
        save("memory_gpu", numbers, rivals={**used, **rivals})
    require_all(len(rows), len(cases), "cases")


def _estimates(cases: Sequence[Sequence[str]], gpu: GPU, python: str) -> dict[str, Any]:
    """Of the cases, by their command line."""

    def estimate(case: Sequence[str]) -> dict[str, Any]:
        try:
            memory, seconds, _ = estimated(case, gpu, python)
        except SystemExit as error:
            return {"error": str(error)}
        peaks = {"allocated": memory.allocated.likely, "reserved": memory.reserved.likely}
        ranges = {
            "allocated": [memory.allocated.low, memory.allocated.high],
            "reserved": [memory.reserved.low, memory.reserved.high],
        }
        return {"epochzero": peaks, "range": ranges, "seconds": round(seconds, 1)}

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {
            " ".join(case): found
            for case, found in zip(cases, pool.map(estimate, cases), strict=True)
        }


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = errors(rows, "epochzero")
    numbers: dict[str, Any] = {
        "epochzero": found,
        "without_compile": errors(
            [row for row in rows if "--compile" not in row["program"]], "epochzero"
        ),
        "in_range": {
            what: sum(
                row["range"][what][0] <= row["measured"][what] <= row["range"][what][1]
                for row in rows
            )
            for what in ("allocated", "reserved")
        },
        "reached": {
            "allocated": found["allocated"] <= MEAN_ALLOCATED,
            "reserved": found["reserved"] <= MEAN_RESERVED,
            "most": max(found["allocated_most"], found["reserved_most"]) <= MOST,
        },
    }
    common = [row for row in rows if "torch_preflight" in row]
    if common:
        numbers["same_cases"] = {
            "cases": len(common),
            "epochzero": errors(common, "epochzero"),
            "torch_preflight": errors(common, "torch_preflight"),
        }
    print(json.dumps(numbers))
    return numbers


def _add_rival(rows: Sequence[dict[str, Any]], python: str, gpu: GPU) -> Mapping[str, str]:
    """Adds the answers of torch-preflight to the rows it can describe; returns its version."""
    known = [row for row in rows if not _given(row["program"]).keys() & {*UNKNOWN_TO_PREFLIGHT}]
    known = [row for row in known if _given(row["program"]).get("model", "gpt2") in NAMES]
    answers = torch_preflight(python, [_described(row["program"], gpu) for row in known])
    for row, (allocated, reserved, _) in zip(known, answers, strict=True):
        row["torch_preflight"] = {"allocated": allocated, "reserved": reserved}
    return versions(python, "torch-preflight")


def _gpu(python: str) -> GPU | None:
    program = (
        "import json, torch\n"
        "if torch.cuda.is_available():\n"
        "    found = torch.cuda.get_device_properties(0)\n"
        "    print(json.dumps([found.name, found.total_memory, found.major, found.minor]))"
    )
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    if not done.stdout.strip():
        return None
    name, size, major, minor = json.loads(done.stdout)
    return GPU(name, size, (major, minor))


def _measured(case: Sequence[str], python: str) -> Mapping[str, Any]:
    """The peaks of a program on the GPU, in bytes, or ``error``."""
    command = [python, str(HERE / "memory" / "measure.py"), str(HERE / "memory" / case[0])]
    try:
        done = subprocess.run(
            [*command, *case[1:]], capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not finished after {LIMIT_S} s"}
    if done.returncode:
        return {"error": done.stderr[-2000:]}
    peaks: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    with (RESULTS / "memory_gpu.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"case": " ".join(case), **peaks}) + "\n")
    return peaks


def _read(path: Path) -> dict[str, dict[str, int]]:
    """Measurements by their command line."""
    measured = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {
        row["case"]: {what: row[what] for what in ("allocated", "reserved")}
        for row in measured
        if "error" not in row
    }


def _recorded(
    before: Mapping[str, Mapping[str, Any]], case: Sequence[str], _: str
) -> Mapping[str, Any]:
    """The peaks of an earlier measurement."""
    return before[" ".join(case)]


def _given(case: Sequence[str]) -> dict[str, str]:
    return dict(word.lstrip("-").partition("=")[::2] for word in case[1:])


def _described(case: Sequence[str], gpu: GPU) -> Mapping[str, Any]:
    """A case in the words of torch-preflight."""
    given = _given(case)
    image = case[0] == "image.py"
    half = "autocast" in given or given.get("dtype") == "bf16"
    precision = "pure-bf16" if "dtype" in given else "amp" if half else "fp32"
    optimizer = given.get("optimizer", "adamw")
    return {
        "model": "resnet50" if image else NAMES[given["model"]],
        "gpu_memory": gpu.memory_bytes,
        "config": {
            "batch_size": int(given["batch"]),
            **({"image_size": 224} if image else {"seq_len": int(given["length"])}),
            "precision": precision,
            "optimizer": OPTIMIZERS.get(("image" if image else "language", optimizer), optimizer),
            "gradient_checkpointing": "checkpointing" in given,
            "flash_attention": half and (gpu.capability or (0, 0)) >= (8, 0),
        },
    }


if __name__ == "__main__":
    main()
