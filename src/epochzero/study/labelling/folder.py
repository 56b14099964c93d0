"""The directory of labels, ``FILE.labels``: one file per annotator, and the questions.

    FILE.labels/scheme.json   alice.jsonl   bob.jsonl   adjudicated/carol.jsonl

An annotator's session reads only that annotator's file, so that labels are independent.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from epochzero.errors import InputError, writing
from epochzero.study.labelling.journal import LabelJournal, Labels, read_journal
from epochzero.study.labelling.scheme import SCHEMES, Scheme, load_scheme, scheme_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class LabelFolder:
    """The labels of a file of records, or of a directory of logs."""

    def __init__(self, source: Path) -> None:
        self.path = source.with_name(source.name + ".labels") if source.name else source / ".labels"
        self._adjudicated, self._scheme_file = self.path / "adjudicated", self.path / "scheme.json"

    def scheme(self, name: str | None) -> Scheme:
        """Return the scheme of the existing labels, otherwise the one named ``name``, otherwise failures.

        Raises:
            InputError: it cannot be read, or the existing labels use another one.
        """
        begun = self._begun()
        if begun is None:
            return load_scheme(name or SCHEMES[0])
        if name is not None and load_scheme(name).version != begun.version:
            raise InputError(
                f"{self.path} was started with other questions or definitions ({begun.title}); omit --scheme to "
                "continue with them, or label a copy of the file with the new ones"
            )
        return begun

    def journal(
        self, annotator: str, scheme: Scheme, *, adjudicating: bool = False
    ) -> LabelJournal:
        """Open the file of an annotator; the questions are stored next to it.

        Raises:
            InputError: the name is invalid, or the file cannot be written.
        """
        if not _NAME.fullmatch(annotator):
            raise InputError(
                f"{annotator!r} is not a valid annotator name; use at most 64 letters, digits, - and _"
            )
        folder = self._adjudicated if adjudicating else self.path
        journal = LabelJournal(folder / f"{annotator}.jsonl", scheme.version)
        if self._begun() is None:
            self._keep(scheme)
        return journal

    def annotators(self) -> dict[str, Labels]:
        """Return all labels, by annotator.

        Raises:
            InputError: there are none, or a file cannot be read.
        """
        found = _read_all(self.path)
        if not found:
            raise InputError(f"{self.path} contains no labels yet")
        return found

    def adjudicated(self) -> dict[str, Labels]:
        """Return adjudicated labels by adjudicator; the first name takes precedence."""
        return _read_all(self._adjudicated)

    def _begun(self) -> Scheme | None:
        try:
            data = json.loads(self._scheme_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(f"{self._scheme_file} cannot be read: {error}") from error
        return scheme_of(data, str(self._scheme_file))

    def _keep(self, scheme: Scheme) -> None:
        """Write a temporary file first: two annotators may start at the same time."""
        aside = self._scheme_file.with_name(f"scheme.json.{os.getpid()}")
        with writing(self._scheme_file):
            aside.write_text(scheme.to_json() + "\n", encoding="utf-8")
            aside.replace(self._scheme_file)


def _read_all(folder: Path) -> dict[str, Labels]:
    return {path.stem: read_journal(path) for path in sorted(folder.glob("*.jsonl"))}
