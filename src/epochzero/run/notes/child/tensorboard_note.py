"""Puts a note next to the newest event file of TensorBoard that a job wrote: the text ``epochzero/diagnosis``.

Source: TensorBoard's documentation, "Displaying text data in TensorBoard".
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator

_TAG = "epochzero/diagnosis"
_EVENTS = ".tfevents."
_MOST_FILES = 200_000


def main() -> int:
    """Reads the note, finds the folder, writes; the exit code."""
    note = json.load(sys.stdin)
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.text.summary_v2 import text_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        print(f"tensorboard is not installed: {error}", file=sys.stderr)
        return 3
    newest = max(_event_files(note["folders"], note["since"]), default=None)
    if newest is None:
        print("no event file of the job was found", file=sys.stderr)
        return 1
    folder = os.path.dirname(newest[1])
    writer = EventFileWriter(folder, filename_suffix=".epochzero")
    writer.add_event(Event(wall_time=time.time(), step=0, summary=text_pb(_TAG, note["text"])))
    writer.close()
    print(folder)
    return 0


def _event_files(folders: list[str], since: float) -> Iterator[tuple[float, str]]:
    """Those that were written during the attempt, each with when."""
    seen = 0
    for top in folders:
        for folder, below, files in os.walk(top):
            below[:] = [name for name in below if not name.startswith(".")]
            seen += len(files)
            if seen > _MOST_FILES:
                return
            for name in files:
                path = os.path.join(folder, name)
                if _EVENTS in name and os.path.getmtime(path) >= since:
                    yield os.path.getmtime(path), path


if __name__ == "__main__":
    raise SystemExit(main())
