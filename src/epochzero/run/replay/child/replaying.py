"""Replays a capture in this process and writes the result as one JSON object to a descriptor."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from epochzero.injected.ranks import own_rank
from epochzero.redact import redact_command
from epochzero.run.replay.child import failure as failures
from epochzero.run.replay.child.capturing import ExitObserver, versions
from epochzero.run.replay.child.files import MANIFEST, TENSORS, read_json
from epochzero.run.replay.child.inputs import Inputs, feed
from epochzero.run.replay.child.loaded import packages
from epochzero.run.replay.child.sources import Sources

REPLAY_VARIABLE = "EPOCHZERO_REPLAY"
"""Environment variable with the options, as JSON."""


class ProcessReplay(ExitObserver):
    """Replays what was captured of the same program and rank; other processes run unchanged."""

    def __init__(self, asked: str, environment: Mapping[str, str]) -> None:
        """Prepare the replay.

        Args:
            asked: JSON: ``folder`` of the captures; ``told_by``, the capture of the process that reports the
                result; ``from_snapshot``, ``step``, ``inspect``; and ``records``, a descriptor or its path.
            environment: of this process.
        """
        super().__init__()
        self._asked = json.loads(asked)
        if isinstance(self._asked["records"], int):
            # A launcher closes descriptors in the ranks that it starts; they open this one by its path.
            self._asked["records"] = f"/proc/{os.getpid()}/fd/{self._asked['records']}"
            os.environ[REPLAY_VARIABLE] = json.dumps(self._asked)
        rank = own_rank(environment)
        self._folder, self._manifest = self._own_of(Path(self._asked["folder"]), rank)
        self._course: Any = None
        self._player: Any = None
        self._began = time.time()
        self._inputs = Inputs(self._asked["folder"])
        self.sources = Sources(self._folder, self._manifest)

    @staticmethod
    def _own_of(root: Path, rank: int) -> tuple[Path, dict[str, Any] | None]:
        """Return the capture of this process, found by its rank and command."""
        own = redact_command(sys.orig_argv)
        for path in sorted(root.glob(f"*/{MANIFEST}")):
            manifest = read_json(path)
            if manifest["rank"] == rank and manifest["argv"][1:] == list(own[1:]):
                return path.parent, manifest
        return root, None

    def begin(self) -> None:
        """Start before the first line of the job."""
        if self._manifest is not None:
            feed(self._manifest["input"])
            self.sources.watch_python()
            self._inputs.listen()
            self.listen()

    def follow(self, torch: ModuleType) -> None:
        """Follow the training, once torch is imported."""
        if self._manifest is None:
            return
        from epochzero.run.replay.child.course import Course
        from epochzero.run.replay.child.hooks import install
        from epochzero.run.replay.child.player import Player
        from epochzero.run.replay.child.walking import WalkingPlayer

        if self._asked["nonfinite"]:
            # Do not wait for an exception that a rank raised because of another rank's loss.
            self._manifest["failure"] = None
        if self._manifest["threads"]:
            torch.set_num_threads(self._manifest["threads"])
        self._course = Course(looks_at_inputs=True)
        kind = WalkingPlayer if self._asked["walk"] else Player
        self._player = self._course.follower = kind(
            self._course,
            self._manifest,
            self._folder / TENSORS,
            self._stop,
            from_snapshot=self._asked["from_snapshot"],
            step=self._asked["step"],
        )
        self._course.on_fork.append(self.sources.forked)
        install(self._course)

    def encode(self, value: Any) -> Any:
        """See `ExitObserver`: arguments are already in the capture."""
        return None

    def failed(self, failure: dict[str, Any]) -> None:
        """See `ExitObserver`."""
        # The arguments are in the capture.
        self._tell("failed", failure | {"arguments": {}})

    def ended_well(self) -> None:
        """See `ExitObserver`."""
        self._tell("ended", None)

    def _stop(self, why: str) -> None:
        """End the process here."""
        nonfinite = self._course.nonfinite
        failure = failures.of_nonfinite(nonfinite) if why == "nonfinite" else None
        self._tell(why, failure)
        sys.stdout.flush()
        os._exit(0)

    def _tell(self, why: str, failure: dict[str, Any] | None) -> None:
        assert self._manifest is not None
        course = self._course
        start = self._manifest["time"] - self._manifest["elapsed_s"]
        record: dict[str, Any] = {
            "why": why,
            "failure": failure,
            "versions": packages() | versions(),
        }
        record["changed"] = sorted(self.sources.changed)
        record["later"] = self._inputs.changed_between(start, self._began)
        if course is not None:
            import torch

            record |= {
                "deterministic": torch.are_deterministic_algorithms_enabled(),
                "losses": [loss if loss - loss == 0 else str(loss) for loss in course.losses()],
                "position": course.position(),
                "nonfinite": course.nonfinite,
                "notes": sorted(self._player.notes),
                "troubles": course.troubles,
            }
            if self._asked["inspect"]:
                from epochzero.run.replay.child.step_table import table

                record["table"] = table(course)
            if self._asked["walk"]:
                record["walk"] = self._player.walked()
        if self._folder.name != self._asked["told_by"]:
            return
        line = json.dumps(record, default=str).encode() + b"\n"
        descriptor = os.open(self._asked["records"], os.O_WRONLY | os.O_APPEND)
        with open(descriptor, "wb") as stream:
            stream.write(line)
