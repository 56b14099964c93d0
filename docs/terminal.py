"""Writes `terminal.svg`, the animated terminal of the site, from real output of a recorded job.

python docs/terminal.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ("diagnose", "lab/logs/ranks_missing_shard")
LINE, CHARACTER, MARGIN = 18, 8.4, 20
DELAY_S = 0.08
"""Seconds between two lines."""
STYLE = """
text { font: 14px ui-monospace, Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre }
.prompt { fill: #88c0d0 } .head { fill: #ff8f86; font-weight: bold }
.line:not(.prompt) { opacity: 0; animation: show 0.01s forwards }
@keyframes show { to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { .line:not(.prompt) { animation: none; opacity: 1 } }
"""


def main() -> None:
    """Write the file."""
    (ROOT / "docs" / "terminal.svg").write_text(svg(), encoding="utf-8")


def svg() -> str:
    """Run the command and return its screen as SVG."""
    done = subprocess.run(
        [sys.executable, "-m", "epochzero", *COMMAND],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
    )
    return _drawn([f"$ epochzero {' '.join(COMMAND)}", "", *done.stdout.rstrip().splitlines()])


def _drawn(lines: list[str]) -> str:
    width = int(max(map(len, lines)) * CHARACTER) + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN
    texts = []
    for number, line in enumerate(lines):
        kind = "prompt" if number == 0 else "head" if line.startswith("FAILED") else ""
        texts.append(
            f'<text class="line {kind}" x="{MARGIN}" y="{MARGIN + LINE * number + 14}" '
            f'style="animation-delay:{0.5 + DELAY_S * number:.2f}s">{escape(line)}</text>'
        )
    body = "\n".join(texts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#1f2430"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    main()
