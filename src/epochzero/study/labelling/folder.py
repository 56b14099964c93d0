"""Where labels lie: ``FILE.labels``, with a file an annotator and the questions that they were asked.

    FILE.labels/scheme.json   alice.jsonl   bob.jsonl   adjudicated/carol.jsonl

Who labels reads the file of that name and no other, so that annotators stay blind to one another.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from epochzero.errors import InputError
from epochzero.study.labelling.journal import LabelJournal, Labels, read_journal
from epochzero.study.labelling.scheme import SCHEMES, Scheme, load_scheme, scheme_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class LabelFolder:
    """The labels of a file of records, or of a folder of logs.

    Args:
        source: the file or folder.
    """

    def __init__(self, source: Path) -> None:
        self.path = source.with_name(source.name + ".labels") if source.name else source / ".labels"

    def scheme(self, name: str | None) -> Scheme:
        """What is asked: that with which the labelling was begun, else by ``name``, else failures.

        Raises:
            InputError: it cannot be read, or another one was begun with.
        """
        begun = self._begun()
        if begun is None:
            return load_scheme(name or SCHEMES[0])
        if name is not None and load_scheme(name).version != begun.version:
            raise InputError(
                f"{self.path}: was started with other questions or definitions ({begun.title}); omit --scheme to "
                "continue with them, or label a copy of the file with the new ones"
            )
        return begun

    def journal(
        self, annotator: str, scheme: Scheme, *, adjudicating: bool = False
    ) -> LabelJournal:
        """The open file of an annotator; the questions are kept beside it.

        Raises:
            InputError: the name cannot be one, or the file cannot be written.
        """
        if not _NAME.fullmatch(annotator):
            raise InputError(
                f"{annotator!r}: not a valid annotator name; use at most 64 letters, digits, - and _"
            )
        folder = self._adjudicated if adjudicating else self.path
        journal = LabelJournal(folder / f"{annotator}.jsonl", scheme.version)
        if self._begun() is None:
            self._keep(scheme)
        return journal

    def annotators(self) -> dict[str, Labels]:
        """All that was labelled, by annotator.

        Raises:
            InputError: nobody has labelled anything, or a file cannot be read.
        """
        found = _read_all(self.path)
        if not found:
            raise InputError(f"{self.path}: contains no labels yet")
        return found

    def adjudicated(self) -> dict[str, Labels]:
        """What was decided where annotators disagree, by who decided; the first name counts."""
        return _read_all(self._adjudicated)

    @property
    def _adjudicated(self) -> Path:
        return self.path / "adjudicated"

    @property
    def _scheme_file(self) -> Path:
        return self.path / "scheme.json"

    def _begun(self) -> Scheme | None:
        try:
            data = json.loads(self._scheme_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(f"{self._scheme_file}: cannot be read: {error}") from error
        return scheme_of(data, str(self._scheme_file))

    def _keep(self, scheme: Scheme) -> None:
        """Written aside first: two annotators may begin at once."""
        aside = self._scheme_file.with_name(f"scheme.json.{os.getpid()}")
        try:
            aside.write_text(scheme.to_json() + "\n", encoding="utf-8")
            aside.replace(self._scheme_file)
        except OSError as error:
            raise InputError(f"{self._scheme_file}: cannot be written: {error.strerror}") from error


def _read_all(folder: Path) -> dict[str, Labels]:
    files: Mapping[str, Path] = {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
    return {name: read_journal(path) for name, path in files.items()}
