"""Collects numbers while training and writes them once at the end."""
import json
from pathlib import Path


class Reporter:
    def __init__(self, root, run_name):
        self.root = Path(root)
        self.run_name = run_name
        self.rows = []

    @property
    def folder(self):
        return self.root / "runs" / self.run_name

    def add(self, **values):
        self.rows.append(values)

    def best(self):
        return max(self.rows, key=lambda row: row["accuracy"])

    def close(self, **final):
        summary = {"run": self.run_name, "best": self.best(), "final": final}
        with open(self.folder / "summary.json", "w") as f:
            json.dump(summary, f, indent=1)
        with open(self.folder / "history.jsonl", "w") as f:
            for row in self.rows:
                f.write(json.dumps(row) + "\n")
