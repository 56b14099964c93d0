"""The session of one annotator: the current record and question, and the actions on them.

The screen shows a `View` and calls a `Session`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochzero.study.labelling.items import LabelItem, visible
from epochzero.study.labelling.journal import LabelJournal
from epochzero.study.labelling.scheme import KEYS, Choice, Question, Scheme

if TYPE_CHECKING:
    from epochzero.study.labelling.compare import LabelledRecord

LONGEST_NOTE = 2000


@dataclass(frozen=True, slots=True)
class View:
    """What a screen shows.

    Attributes:
        item: the record; None when all are labeled.
        question: about it.
        choices: by key.
        chosen_by: annotators who gave each choice, by its name; only while adjudicating.
        answers: titles of the given answers of this record, by name of the question.
        note: about the record.
        labelled, skipped, total: numbers of records.
    """

    item: LabelItem | None
    question: Question | None
    choices: Mapping[str, Choice]
    chosen_by: Mapping[str, Sequence[str]]
    answers: Mapping[str, str]
    note: str
    labelled: int
    skipped: int
    total: int


class Session:
    """Asks for labels of records; skipped records come last.

    Args:
        items: the records, in the order in which they are shown.
        scheme: the questions.
        journal: of the annotator.
        adjudicated: labels of the other annotators, by record; only while adjudicating.
    """

    def __init__(
        self,
        items: Sequence[LabelItem],
        scheme: Scheme,
        journal: LabelJournal,
        adjudicated: Mapping[str, LabelledRecord] | None = None,
    ) -> None:
        self.scheme = scheme
        self._items = items
        self._journal = journal
        self._labels = journal.labels
        self._adjudicated = adjudicated or {}
        self._places = {item.id: at for at, item in enumerate(items)}
        self._open = {item.id for item in items if self._walk(item.id)[1] is not None}

    def view(self) -> View:
        """Return what to show now."""
        item = self._current()
        answers, question = self._walk(item.id) if item else ({}, None)
        choices = question.choices_after(answers) if question else ()
        chosen_by: dict[str, list[str]] = {}
        if item and question and (record := self._adjudicated.get(item.id)):
            for name, value in record.answers.get(question.name, {}).items():
                chosen_by.setdefault(value, []).append(name)
        return View(
            item=item,
            question=question,
            choices=dict(zip(KEYS, choices, strict=False)),
            chosen_by=chosen_by,
            answers={
                each.name: each.choice(answers[each.name]).title
                for each in self.scheme.questions
                if each.name in answers
            },
            note=self._labels.notes.get(item.id, "") if item else "",
            labelled=len(self._items) - len(self._open),
            skipped=sum(self._labels.skips.get(text, 0) > 0 for text in self._open),
            total=len(self._items),
        )

    def answer(self, name: str) -> bool:
        """Answer the question; return whether the choice exists."""
        view = self.view()
        if view.item is None or view.question is None:
            return False
        if name not in [choice.name for choice in view.choices.values()]:
            return False
        self._journal.add("answer", view.item.id, view.question.name, name)
        self._look_again(view.item.id)
        return True

    def skip(self) -> None:
        """Skip the record until all others are labeled."""
        if item := self._current():
            self._journal.add("skip", item.id)

    def undo(self) -> bool:
        """Undo the last answer or skip, also of an earlier session; return whether there was one."""
        if not self._labels.undoable:
            return False
        identity = self._labels.undoable[-1].id
        self._journal.add("undo", identity)
        self._look_again(identity)
        return True

    def note(self, text: str) -> None:
        """Store a note about the record, replacing an earlier one."""
        if item := self._current():
            self._journal.add("note", item.id, value=visible(text.strip())[:LONGEST_NOTE])

    def _current(self) -> LabelItem | None:
        if not self._open:
            return None
        skips = self._labels.skips
        return self._items[min((skips.get(text, 0), self._places[text]) for text in self._open)[1]]

    def _walk(self, identity: str) -> tuple[dict[str, str], Question | None]:
        record = self._adjudicated.get(identity)
        answers = self._labels.answers.get(identity, {})
        return self.scheme.walk({**(record.unanimous if record else {}), **answers})

    def _look_again(self, identity: str) -> None:
        if identity not in self._places:
            return
        if self._walk(identity)[1] is None:
            self._open.discard(identity)
        else:
            self._open.add(identity)
