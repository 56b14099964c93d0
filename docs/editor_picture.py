"""The picture of `editor.md`: what the problem matcher there reads of a check, in the editor of VS Code.

Monaco is that editor without the rest of VS Code; `npm pack monaco-editor` brings it. Run as
``python docs/editor_picture.py package/min``, with Chromium.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
JOB = """\
import argparse

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(arguments.epochs):
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("epoch %d of %d: loss %.3f" % (epoch, loss.item()))
    torch.save(model.state_dict(), argument.out)


main()
"""
PAGE = """\
<!doctype html><meta charset="utf-8"><body style="margin:0"><div id="it" style="width:900px;height:560px"></div>
<script src="vs/loader.js"></script><script>
require.config({paths: {vs: "vs"}});
require(["vs/editor/editor.main"], () => {
  const editor = monaco.editor.create(document.getElementById("it"), {value: JOB, language: "python",
    theme: "vs-dark", fontSize: 15, minimap: {enabled: false}, scrollBeyondLastLine: false});
  monaco.editor.setModelMarkers(editor.getModel(), "epochzero", MARKERS.map(one => ({...one,
    startLineNumber: one.line, endLineNumber: one.line, startColumn: one.column,
    endColumn: editor.getModel().getLineMaxColumn(one.line), source: "epochzero",
    severity: monaco.MarkerSeverity[one.severity]})));
  editor.focus();
  editor.trigger("", "editor.action.marker.next");
});
</script>
"""


def main() -> None:
    """Checks the job, reads the problems as VS Code does, and takes the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(JOB)
        # The machine of the picture need not have torch.
        check = ["check", "--ignore", "module-missing", "--", "python", "train.py"]
        command = [sys.executable, "-m", "epochzero", *check]
        environment = {**os.environ, "NO_COLOR": "1"}
        told = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        markers = problems(told.stdout)
        (folder / "vs").symlink_to((Path(sys.argv[1]) / "vs").resolve())
        page = PAGE.replace("MARKERS", json.dumps(markers)).replace("JOB", json.dumps(JOB))
        (folder / "page.html").write_text(page)
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--allow-file-access-from-files",
             "--window-size=900,560", "--virtual-time-budget=20000",
             f"--screenshot={HERE / 'editor.png'}", f"file://{folder}/page.html"],
            check=True,
        )  # fmt: skip


def problems(output: str) -> list[dict[str, object]]:
    """What the problem matcher of the guide finds in the output of a check."""
    guide = (HERE / "editor.md").read_text(encoding="utf-8")
    (task,) = re.findall(r"(?ms)^```json\n(.*?)^```$", guide)
    patterns = json.loads(task)["tasks"][0]["problemMatcher"]["pattern"]
    lines = output.splitlines()
    found: list[dict[str, object]] = []
    for three in zip(lines, lines[1:], lines[2:], strict=False):
        matches = [
            re.search(one["regexp"], line) for one, line in zip(patterns, three, strict=True)
        ]
        first, _, last = matches
        if first and last and all(matches):
            _, line, column, severity, rule = first.groups()
            found.append({"line": int(line), "column": int(column or 1), "code": rule,
                          "severity": severity.capitalize(), "message": last[1]})  # fmt: skip
    return found


if __name__ == "__main__":
    main()
