"""The shell's builtins, and some commands that affect later ones: conda, mkdir, tee."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from epochzero.check.launch.condition import Outcome, compared, outcome_of
from epochzero.check.launch.environments import activate
from epochzero.check.launch.model import CommandSource, Word
from epochzero.check.launch.setting import Script, Setting, read_text
from epochzero.errors import InputError

"""How other commands are followed."""

_LETTERS = {"e": "errexit", "u": "nounset"}
_NAME = re.compile(r"\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\}")

BUILTINS = frozenset(
    """
    : . [ [[ alias bg bind break builtin caller case cd command compgen complete continue
    declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history
    jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set
    shift shopt source suspend test time times trap true type typeset ulimit umask unalias unset
    wait
    """.split()
)
"""Builtins of the shell, which exist on every platform."""


class Builtins(ABC):
    """Run builtins."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @abstractmethod
    def run_script(self, script: Script) -> None:
        """Walk another script in the same setting."""

    def leave(self, words: Sequence[Word]) -> Outcome:
        """``exit``, ``return``, ``break``, ``continue``."""
        self.setting.left = words[0].text
        return Outcome.DONE

    def wait(self, words: Sequence[Word]) -> Outcome:
        """``wait``."""
        self.setting.record.background.clear()
        self.setting.record.waits += 1
        return Outcome.DONE

    def change_folder(self, words: Sequence[Word]) -> Outcome:
        """``cd`` and ``pushd``."""
        operands = [word for word in words[1:] if word.text not in ("--", "-P", "-L")]
        home = Word("~", words[0].place, known=False)
        self.setting.enter(operands[0] if operands else home)
        return Outcome.DONE

    def back(self, words: Sequence[Word]) -> Outcome:
        """``popd``."""
        self.setting.lost = "`popd` is not followed"
        return Outcome.DONE

    def source(self, words: Sequence[Word]) -> Outcome:
        """``source file``: walk it if it is in the directory; record an environment that it activates."""
        if len(words) < 2:
            return Outcome.DONE
        setting, word = self.setting, words[1]
        if os.path.basename(word.text) in ("activate", "conda.sh", "mamba.sh"):
            return self.activate(words)
        path = Path(os.path.abspath(setting.draft.folder / word.text))
        try:
            if not word.known or not path.is_relative_to(setting.record.root):
                raise InputError("it is not in the directory of the job")
            script = Script(setting.label(path), read_text(path), 1, word.text)
        except InputError as error:
            reason = str(error).removeprefix(f"{path}: ")
            setting.record.unknown(f"`source {word.text}`", reason, word.place)
            setting.blind = True
            return Outcome.DONE
        before = setting.arguments
        setting.arguments = tuple(words[2:]) or before
        self.run_script(script)
        setting.arguments = before
        return Outcome.DONE

    def activate(self, words: Sequence[Word]) -> Outcome:
        """``module load``, ``conda activate``, ``source venv/bin/activate``."""
        draft = self.setting.draft
        found = CommandSource(words[0].place, " ".join(word.text for word in words))
        self.setting.draft = draft.with_script(activated=(*draft.launch_script.activated, found))
        activate(words, self.setting)
        self.setting.blind = True
        return Outcome.DONE

    def conda(self, words: Sequence[Word]) -> Outcome:
        """``conda activate``, or the program conda."""
        if len(words) > 1 and words[1].text in ("activate", "load", "deactivate", "use", "purge"):
            return self.activate(words)
        self.setting.follow(words)
        return Outcome.DONE

    def set(self, words: Sequence[Word]) -> Outcome:
        """``set -e``, ``set -- a b``."""
        texts = [word.text for word in words]
        if "--" in texts:
            self.setting.arguments = tuple(words[texts.index("--") + 1 :])
        switch(texts[1:], self.setting)
        return Outcome.DONE

    def shift(self, words: Sequence[Word]) -> Outcome:
        """``shift``, ``shift 2``."""
        count = words[1].text if len(words) > 1 else "1"
        arguments = self.setting.arguments
        skipped = arguments[: int(count)] if count.isascii() and count.isdigit() else arguments
        if any(word.many for word in skipped):
            place = words[0].place
            self.setting.arguments = (Word("$@", place, known=False, many=True),)
        else:
            self.setting.arguments = arguments[len(skipped) :]
        return Outcome.DONE

    def read(self, words: Sequence[Word]) -> Outcome:
        """``read x``, ``mapfile x``, ``getopts o x``: the values come from outside."""
        for word in words[1:]:
            if word.text.isidentifier():
                value = Word("$" + word.text, word.place, known=False, many=True)
                self.setting.assign(word.text, value)
        return Outcome.MAYBE

    def evaluate(self, words: Sequence[Word]) -> Outcome:
        """``eval "..."``."""
        texts = [readable(word) for word in words[1:]]
        if not any(texts):
            what = "`eval` of what is not known"
            self.setting.record.unknown(what, "its text depends on the run", words[0].place)
            self.setting.blind = True
            return Outcome.MAYBE
        text = " ".join(part or "$unknown" for part in texts)
        script = Script(words[0].place.path, text, words[0].place.line, self.setting.script.path)
        self.run_script(script)
        return Outcome.DONE

    def make(self, words: Sequence[Word]) -> Outcome:
        """``mkdir -p a b``."""
        self.setting.follow(words)
        for word in words[1:]:
            # Even under a condition: a directory is often created if it is missing.
            if word.known and not word.text.startswith("-") and not self.setting.lost:
                self.setting.record.makes.append(self.setting.written(word))
        return Outcome.DONE

    def tee(self, words: Sequence[Word]) -> Outcome:
        """``tee log``."""
        self.setting.follow(words)
        for word in words[1:]:
            if word.known and word.text and not word.text.startswith(("-", "/dev/")):
                write(self.setting, word)
        return Outcome.DONE

    def known(self, words: Sequence[Word]) -> Outcome:
        """``true``, ``:``, ``false``."""
        return outcome_of(words[0].text != "false")


COMMANDS: dict[str, Callable[[Builtins, Sequence[Word]], Outcome]] = {
    "[": lambda shell, words: compared(words),
    "test": lambda shell, words: compared(words),
    "exit": Builtins.leave,
    "return": Builtins.leave,
    "break": Builtins.leave,
    "continue": Builtins.leave,
    "cd": Builtins.change_folder,
    "pushd": Builtins.change_folder,
    "popd": Builtins.back,
    "source": Builtins.source,
    ".": Builtins.source,
    "module": Builtins.activate,
    "ml": Builtins.activate,
    "spack": Builtins.conda,
    "conda": Builtins.conda,
    "mamba": Builtins.conda,
    "micromamba": Builtins.conda,
    "pyenv": Builtins.activate,
    "deactivate": Builtins.activate,
    "set": Builtins.set,
    "shift": Builtins.shift,
    "wait": Builtins.wait,
    "read": Builtins.read,
    "mapfile": Builtins.read,
    "readarray": Builtins.read,
    "getopts": Builtins.read,
    "eval": Builtins.evaluate,
    "mkdir": Builtins.make,
    "tee": Builtins.tee,
    "true": Builtins.known,
    ":": Builtins.known,
    "false": Builtins.known,
}
"""Builtins by name; other commands are left to the caller."""


def switch(texts: Sequence[str], setting: Setting) -> None:
    """Set and unset options of the shell: ``-euo pipefail``, ``+e``."""
    remaining = iter(texts)
    for text in remaining:
        if text == "--" or text[:1] not in ("-", "+"):
            return
        for letter in text[1:] if text[:2] != "--" else "":
            name = next(remaining, "") if letter == "o" else _LETTERS.get(letter, "")
            if name == "errexit":
                setting.draft = setting.draft.with_script(stops_at_error=text[0] == "-")
            elif text[0] == "-":
                setting.options |= {name}
            else:
                setting.options -= {name}


def write(setting: Setting, word: Word) -> None:
    """Record a file that is written; if it is a program, it does not exist yet."""
    _note(setting, setting.record.writes, word)
    if word.text.endswith((".py", ".sh")):
        setting.fetched = f"> {word.text}"


def _note(setting: Setting, into: list[CommandSource], word: Word) -> None:
    if setting.sure and not setting.lost:
        into.append(setting.written(word))


def readable(word: Word) -> str:
    """Return a text as a script. Unknown parts become variables: a variable as written, any other part a variable that is never
    set. Empty if nothing is known.
    """
    if word.known:
        return word.text
    kept = (text if known or _NAME.fullmatch(text) else "$unknown" for text, known in word.parts)
    return "".join(kept) if any(known for _, known in word.parts) else ""
