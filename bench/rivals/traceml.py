"""Has TraceML name the slow rank of a training of the lab.

TraceML learns where a step begins and ends from the program, so the body of the training's loop is wrapped as its
documentation says. Its verdict is the summary that it writes when the training is interrupted.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

__all__ = ["verdict", "version"]

SUMMARY_WITHIN_S = 120.0


def version(python: Path) -> str:
    """The version that the environment of ``python`` has."""
    query = "import importlib.metadata as m; print(m.version('traceml-ai'))"
    return subprocess.check_output((python, "-c", query), text=True).strip()


def verdict(python: Path, script: Path, ranks: str, seconds: float) -> dict[str, object]:
    """What TraceML says after ``seconds`` of the training: kind of its diagnosis, ranks that it names, text."""
    with tempfile.TemporaryDirectory() as directory:
        instrumented = Path(directory, script.name)
        instrumented.write_text(_instrumented(script.read_text("utf-8")), "utf-8")
        run = (python.with_name("traceml"), "run", "--nproc-per-node", ranks, "--run-name", "run")
        with subprocess.Popen(
            (*run, script.name),
            cwd=directory,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            try:
                process.wait(SUMMARY_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
        summary = Path(directory, "logs", "run", "final_summary.json")
        if not summary.exists():
            return {"kind": "NO_SUMMARY", "ranks": [], "text": ""}
        diagnosis = json.loads(summary.read_text("utf-8"))["step_time"]["diagnosis"]
        named = diagnosis.get("ranks") or []
        return {"kind": diagnosis["kind"], "ranks": named, "text": diagnosis.get("summary", "")}


def _instrumented(source: str) -> str:
    tree = _StepTimer().visit(ast.parse(source))
    first = 1 if ast.get_docstring(tree) is not None else 0
    tree.body[first:first] = ast.parse("import traceml_ai\ntraceml_ai.init()").body
    return ast.unparse(ast.fix_missing_locations(tree))


class _StepTimer(ast.NodeTransformer):
    """Wraps the body of the innermost loop that holds the backward pass."""

    def visit_For(self, node: ast.For) -> ast.For:
        if any(isinstance(child, ast.For) and _trains(child) for child in node.body):
            self.generic_visit(node)
        elif _trains(node):
            step = ast.parse(f"traceml_ai.trace_step({_model(node)})", mode="eval").body
            node.body = [ast.With([ast.withitem(step)], node.body)]
        return node


def _trains(loop: ast.For) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(loop))


def _model(loop: ast.For) -> str:
    """The name of the model, of those that the lab's trainings use."""
    names = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name)}
    return next(name for name in ("model", "weights") if name in names)
