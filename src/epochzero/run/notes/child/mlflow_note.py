"""Puts a note into the runs of MLflow that a job made: tags, and its text below the description.

Source: MLflow's documentation, "MLflow Tracking APIs"; ``mlflow.note.content`` is what its pages show as
the description of a run.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_DESCRIPTION = "mlflow.note.content"


def main() -> int:
    """Reads the note, finds the runs, writes; the exit code."""
    note = json.load(sys.stdin)
    try:
        import mlflow
    except ImportError as error:
        print(f"mlflow is not installed: {error}", file=sys.stderr)
        return 3
    found = [note["run"]] if note["run"] else _runs(mlflow, note["job"], note["attempt"])
    if not found:
        print("no MLflow run of the job was found", file=sys.stderr)
        return 1
    client = mlflow.MlflowClient()
    for run in found:
        for name, value in note["tags"].items():
            client.set_tag(run, f"epochzero.{name}", value)
        before = client.get_run(run).data.tags.get(_DESCRIPTION, "")
        client.set_tag(run, _DESCRIPTION, f"{before}\n\n{note['text']}".strip())
    print("run " + ", ".join(found))
    return 0


def _runs(mlflow: Any, job: str, attempt: str) -> list[str]:
    """The runs that have the tags which the job's environment gave them."""
    # To look into a store that is not there would make one.
    if not mlflow.is_tracking_uri_set() and not any(map(os.path.exists, ("mlruns", "mlflow.db"))):
        return []
    wanted = f"tags.`epochzero.job` = '{job}' and tags.`epochzero.attempt` = '{attempt}'"
    runs = mlflow.search_runs(
        search_all_experiments=True, filter_string=wanted, output_format="list"
    )
    return [run.info.run_id for run in runs]


if __name__ == "__main__":
    raise SystemExit(main())
