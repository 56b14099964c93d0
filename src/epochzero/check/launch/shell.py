"""A shell script, walked from top to bottom as far as its values are constant.

Nothing is run. Commands are assumed to succeed. If a condition is unknown, both branches are walked, their commands are
not certain, and what differs after them is unknown.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import tree_sitter_bash
from tree_sitter import Language, Parser

from epochzero.check.launch.builtins import BUILTINS, COMMANDS, Builtins, write
from epochzero.check.launch.condition import Outcome, opposite, tested
from epochzero.check.launch.expand import between, one, text_of, words_of
from epochzero.check.launch.model import CommandSource, Word
from epochzero.check.launch.scripts import fault_of, note_line_ends
from epochzero.check.launch.setting import MOST_DEPTH, MOST_ITEMS, Script, Setting, ShellFunction

if TYPE_CHECKING:
    from tree_sitter import Node


MOST_ROUNDS = 1000
_WRITING = frozenset({">", ">>", "&>", "&>>", ">|"})


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def run_script(script: Script, setting: Setting) -> None:
    """Walk a script in a setting and follow what it starts."""
    if setting.depth > MOST_DEPTH:
        place = script.place(0)
        setting.record.unknown("a script", "scripts and functions call one another too deep", place)
        return
    before = setting.script
    setting.script = script
    setting.depth += 1
    tree = _parser().parse(script.text.encode("utf-8", errors="replace"))
    if not note_line_ends(script, setting) and tree.root_node.has_error:
        _note_fault(script, _first_error(tree.root_node), setting)
    try:
        _Walk(setting).program(tree.root_node.children)
    except RecursionError:
        setting.record.unknown("the shell script", "it is nested too deep", script.place(0))
    setting.script = before
    setting.depth -= 1
    if setting.left == "return":
        setting.left = ""


def _note_fault(script: Script, row: int, setting: Setting) -> None:
    """Record bash's own syntax error for a script that the parser does not understand."""
    found = fault_of(script.text)
    if found is None:
        reason = "its syntax is not understood"
        setting.record.unknown("the shell script", reason, script.place(row))
    else:
        line, message = found
        place = script.place(line - 1)
        setting.record.problem("syntax", place, message, certain=setting.sure)


def _first_error(node: Node) -> int:
    """The row of the first node that the parser does not understand."""
    while True:
        wrong = next((c for c in node.children if c.has_error or c.is_missing), None)
        if wrong is None or node.type == "ERROR":
            return int(node.start_point[0])
        node = wrong


class _Walk(Builtins):
    """The walk through the nodes of one script."""

    def run_script(self, script: Script) -> None:
        run_script(script, self.setting)

    def all(self, nodes: Sequence[Node]) -> Outcome:
        """Walk nodes in order; return the outcome of the last."""
        outcome = Outcome.DONE
        for node in nodes:
            if self.setting.left:
                break
            if node.is_named and node.type != "comment":
                started = len(self.setting.record.jobs)
                outcome = self.one(node)
                if node.next_sibling is not None and node.next_sibling.type == "&":
                    self.in_background(node, started)
        return outcome

    def in_background(self, node: Node, started: int) -> None:
        """Record a job that was started in the background."""
        record = self.setting.record
        if len(record.jobs) > started:
            beside = [job.with_script(in_background=True) for job in record.jobs[started:]]
            record.jobs[started:] = beside
            place = self.setting.script.place(*node.start_point)
            record.background.append((CommandSource(place, text_of(node)), record.started()))

    def program(self, nodes: Sequence[Node]) -> None:
        """A whole script; after a node that is not understood, nothing is certain."""
        wrong = next((at for at, node in enumerate(nodes) if node.has_error), len(nodes))
        self.all(nodes[:wrong])
        if wrong < len(nodes):
            with _Unsure(self.setting):
                self.all(nodes[wrong:])

    def one(self, node: Node) -> Outcome:
        """A statement."""
        place = self.setting.script.place(*node.start_point)
        if not self.setting.record.step(place):
            self.setting.left = "exit"
            return Outcome.DONE
        walker = _WALKERS.get(node.type)
        return walker(self, node) if walker else Outcome.MAYBE

    def group(self, node: Node) -> Outcome:
        """``{ ...; }``, a part of a conditional, or a node that is not understood."""
        if text_of(node)[:2] == "((":
            return tested(node, self.setting)
        return self.all(node.children)

    def negated(self, node: Node) -> Outcome:
        """``! command``."""
        return opposite(self.all(node.children))

    def both(self, node: Node) -> Outcome:
        """``a && b``, ``a || b``."""
        left, right = node.named_children[0], node.named_children[-1]
        either = any(child.type == "||" for child in node.children)
        first = self.one(left)
        if left.id == right.id or self.setting.left:
            return first
        if first == (Outcome.TRUE if either else Outcome.FALSE):
            return first
        if (first == Outcome.DONE and not either) or first in (Outcome.TRUE, Outcome.FALSE):
            return self.one(right)
        return self.perhaps([right], first)

    def perhaps(self, nodes: Sequence[Node], otherwise: Outcome) -> Outcome:
        """Walk what runs only under an unknown condition."""
        self.branches([(nodes, True), ((), True)])
        return otherwise if otherwise == Outcome.DONE else Outcome.MAYBE

    def branches(self, branches: Sequence[tuple[Sequence[Node], bool]]) -> None:
        """Walk alternatives if it is unknown which one is taken."""
        done = []
        for nodes, unsure in branches:
            branch = self.setting.fork()
            branch.sure = branch.sure and not unsure
            _Walk(branch).all(nodes)
            branch.sure = self.setting.sure
            done.append(branch)
        self.setting.join(*done)

    def subshell(self, node: Node) -> Outcome:
        """``( ... )``: its changes stay local."""
        inner = self.setting.fork()
        outcome = _Walk(inner).all(node.children)
        self.setting.fetched = self.setting.fetched or inner.fetched
        return outcome

    def pipeline(self, node: Node) -> Outcome:
        """``a | b``: each side is a shell of its own."""
        outcome = Outcome.DONE
        record = self.setting.record
        started = len(record.jobs)
        for child in node.named_children:
            if child.id == node.named_children[-1].id and len(record.jobs) > started:
                self.hides_failure(node)
            inner = self.setting.fork()
            outcome = _Walk(inner).one(child)
            self.setting.fetched = self.setting.fetched or inner.fetched
        return outcome

    def hides_failure(self, node: Node) -> None:
        """Record a pipeline whose outcome is that of its last command, in a script that should end at failures."""
        if (
            self.setting.draft.launch_script.stops_at_error
            and "pipefail" not in self.setting.options
        ):
            place = self.setting.script.place(*node.start_point)
            last = text_of(node.named_children[-1]).split()[0]
            self.setting.record.problem("pipe", place, last, certain=False)

    def redirected(self, node: Node) -> Outcome:
        """A statement with redirected output."""
        redirects = node.children_by_field_name("redirect")
        texts = [child for child in redirects if child.type == "heredoc_redirect"]
        for child in redirects:
            if child.type != "heredoc_redirect":
                self.redirect(child)
        body = node.child_by_field_name("body")
        self.setting.input = self.here_document(texts[-1]) if texts else None
        outcome = self.one(body) if body else Outcome.DONE
        self.setting.input = None
        for child in texts:  # they also contain the commands after `|`
            self.redirect(child)
        return outcome

    def here_document(self, node: Node) -> Word | None:
        """The text of ``<<EOF``; unexpanded if the delimiter is quoted."""
        start = next((c for c in node.children if c.type == "heredoc_start"), None)
        body = next((c for c in node.children if c.type == "heredoc_body"), None)
        if start is None or body is None:
            return None
        place = self.setting.script.place(body.start_point[0])
        if set(text_of(start)) & set("\"'\\"):
            return Word(text_of(body), place)
        return between(body, self.setting, place)

    def redirect(self, node: Node) -> None:
        """Record a file that is written."""
        if (
            node.type == "heredoc_redirect"
        ):  # the node includes what follows its delimiter on the line
            for child in node.named_children:
                if child.type == "file_redirect":
                    self.redirect(child)
                elif child.type == "pipeline":
                    self.pipeline(child)
            return
        target = node.child_by_field_name("destination")
        if target is None or not any(child.type in _WRITING for child in node.children):
            return
        word = one(target, self.setting, self.setting.script.place(*node.start_point))
        if word.known and word.text and not word.text.startswith(("/dev/", "/proc/", "&")):
            write(self.setting, word)

    def assignment(self, node: Node) -> Outcome:
        """``A=1``, and several of them."""
        if node.type == "variable_assignments":
            return self.all(node.children)
        self.assign(node, export=False)
        return Outcome.DONE

    def assign(self, node: Node, *, export: bool) -> None:
        """Set a variable by an assignment node."""
        named, value_node = node.child_by_field_name("name"), node.child_by_field_name("value")
        if named is None:
            return
        name = text_of(named)
        place = self.setting.script.place(*node.start_point)
        more = any(child.type == "+=" for child in node.children)
        old = self.setting.value(name)
        if named.type == "subscript":
            self.setting.assign(name.partition("[")[0], Word(name, place, known=False, many=True))
        elif value_node is not None and value_node.type == "array":
            items = self.words(value_node)
            before = (old if isinstance(old, tuple) else (old,)) if more and old else ()
            self.setting.assign(name, (*before, *items))
        else:
            word = one(value_node, self.setting, place)
            if more and isinstance(old, Word):
                word = _appended(old, word)
            elif more and isinstance(old, tuple):
                word = Word("$" + name, place, known=False, many=True)
            self.setting.assign(name, word, export=export)

    def words(self, node: Node) -> list[Word]:
        """The words of a command or an array."""
        words = []
        for child in node.named_children:
            inner = child.named_children[0] if child.type == "command_name" else child
            if child.type not in ("comment", "variable_assignment", *_REDIRECTS):
                words.extend(words_of(inner, self.setting))
        return words[:MOST_ITEMS]

    def declaration(self, node: Node) -> Outcome:
        """``export A=1 B``, ``local``, ``declare -x``, ``readonly``."""
        kind = node.children[0].type
        options = [text_of(c) for c in node.named_children if text_of(c).startswith("-")]
        unexport = kind == "export" and "-n" in options
        export = (kind == "export" and not unexport) or any("x" in option for option in options)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self.assign(child, export=export)
            elif export and child.type in ("variable_name", "word"):
                self.setting.exported.add(text_of(child))
            elif not text_of(child).startswith("-") and export:
                self.export_words(child)
        return Outcome.DONE

    def export_words(self, node: Node) -> None:
        """``export "A=1"``."""
        for word in words_of(node, self.setting):
            name, equals, value = word.text.partition("=")
            if name.isidentifier() and equals:
                self.setting.assign(name, replace(word, text=value), export=True)

    def unset(self, node: Node) -> Outcome:
        """``unset A``."""
        for child in node.named_children:
            name = text_of(child)
            self.setting.variables.pop(name, None)
            self.setting.exported.discard(name)
            self.setting.functions.pop(name, None)
            left = {k: v for k, v in self.setting.draft.environment.items() if k != name}
            self.setting.draft = replace(self.setting.draft, environment=left)
        return Outcome.DONE

    def function(self, node: Node) -> Outcome:
        """``f() { ... }``."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.setting.functions[text_of(name)] = ShellFunction(body, self.setting.script)
        return Outcome.DONE

    def asked(self, condition: Sequence[Node]) -> Outcome:
        """A condition: if a program in it fails, the condition is false."""
        jobs = self.setting.record.jobs
        started = len(jobs)
        outcome = self.all(condition)
        jobs[started:] = [replace(job, certain=False) for job in jobs[started:]]
        return outcome

    def conditional(self, node: Node) -> Outcome:
        """``if``, with ``elif`` and ``else``."""
        ways = _ways(node)
        for position, (condition, body) in enumerate(ways):
            known = self.asked(condition) if condition else Outcome.TRUE
            if self.setting.left:
                return Outcome.DONE
            if known == Outcome.TRUE:
                return self.all(body)
            if known != Outcome.FALSE:
                rest = [nodes for _, nodes in ways[position + 1 :]]
                ended = bool(ways[-1][0]) or position == len(ways) - 1
                self.branches([(nodes, True) for nodes in [body, *rest, *([()] if ended else [])]])
                return Outcome.MAYBE
        return Outcome.DONE

    def case(self, node: Node) -> Outcome:
        """``case value in pattern) ...``."""
        subject = node.child_by_field_name("value")
        place = self.setting.script.place(*node.start_point)
        word = one(subject, self.setting, place)
        items = [child for child in node.named_children if child.type == "case_item"]
        if not word.known:
            self.branches([*((_body(item), True) for item in items), ((), True)])
            return Outcome.MAYBE
        for item in items:
            patterns = item.children_by_field_name("value")
            if any(self.matches(word.text, pattern) for pattern in patterns):
                return self.all(_body(item))
        return Outcome.DONE

    def matches(self, text: str, pattern: Node) -> bool:
        """Whether a text matches a pattern of ``case``."""
        raw = text_of(pattern)
        if pattern.type in ("string", "raw_string", "concatenation"):
            found = one(pattern, self.setting, self.setting.script.place(0))
            raw = found.text
        return fnmatch.fnmatchcase(text, raw.replace("\\", ""))

    def for_each(self, node: Node) -> Outcome:
        """``for x in words``; without words over ``$@``."""
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None:
            return Outcome.DONE
        name = text_of(variable)
        given = node.children_by_field_name("value")
        words = [word for value in given for word in words_of(value, self.setting)]
        if not given:
            words = list(self.setting.arguments)
        if any(word.many for word in words) or text_of(node).startswith("select"):
            return self.some_rounds(body, name)
        for word in words[:MOST_ROUNDS]:
            self.setting.assign(name, word)
            self.all([body])
            if self.ends_loop():
                break
        return Outcome.DONE

    def some_rounds(self, body: Node, name: str = "") -> Outcome:
        """A loop with an unknown number of iterations: what it sets is unknown."""
        for changed in {name, *_assigned(body)} - {""}:
            place = self.setting.script.place(*body.start_point)
            self.setting.assign(changed, Word("$" + changed, place, known=False, many=True))
        branch = self.setting.fork()
        branch.sure = False
        _Walk(branch).all([body])
        branch.sure = self.setting.sure
        if branch.left in ("break", "continue"):
            branch.left = ""
        self.setting.join(branch, self.setting.fork())
        return Outcome.MAYBE

    def ends_loop(self) -> bool:
        """Whether ``break`` or a stronger exit was reached."""
        left = self.setting.left
        if left in ("break", "continue"):
            self.setting.left = ""
        return left not in ("", "continue")

    def loop(self, node: Node) -> Outcome:
        """``while`` and ``until``."""
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        if condition is None or body is None:
            return Outcome.DONE
        until = node.children[0].type == "until"
        for _ in range(MOST_ROUNDS):
            known = self.one(condition)
            known = opposite(known) if until else known
            if known == Outcome.FALSE or self.setting.left:
                return Outcome.DONE
            if known != Outcome.TRUE:
                break
            self.all([body])
            if self.ends_loop():
                return Outcome.DONE
        return self.some_rounds(body)

    def counted(self, node: Node) -> Outcome:
        """``for ((i = 0; i < n; i++))``."""
        body = node.child_by_field_name("body")
        start = node.child_by_field_name("initializer")
        name = start.child_by_field_name("name") if start else None
        return self.some_rounds(body, text_of(name) if name else "") if body else Outcome.DONE

    def command(self, node: Node) -> Outcome:
        """A command: its assignments, its words."""
        for child in node.named_children:
            if child.type in _REDIRECTS:
                self.redirect(child)
        words = self.words(node)
        given = [child for child in node.named_children if child.type == "variable_assignment"]
        if not words:
            for child in given:
                self.assign(child, export=False)
            return Outcome.DONE
        if not given:
            return self.run(words)
        saved, exported = dict(self.setting.variables), set(self.setting.exported)
        for child in given:
            self.assign(child, export=True)
        outcome = self.run(words)
        self.setting.variables, self.setting.exported = saved, exported
        return outcome

    def run(self, words: Sequence[Word]) -> Outcome:
        """A command whose words are as known as they can be."""
        name = words[0].text
        function = self.setting.functions.get(name)
        if function is not None and words[0].known:
            return self.call(function, words[1:])
        own = COMMANDS.get(name) if words[0].known else None
        if own is not None:
            return own(self, words)
        if words[0].known and name in BUILTINS - {"exec", "command", "builtin", "time"}:
            return Outcome.DONE
        if name in ("command", "type", "hash") and any(w.text in ("-v", "-V") for w in words[1:2]):
            return Outcome.MAYBE
        if words[0].known and re.match(r"--?[A-Za-z]", name):
            self.setting.record.problem("option", words[0].place, name, certain=self.setting.sure)
            return Outcome.MAYBE
        self.setting.follow(words)
        if name == "exec" and len(words) > 1:
            self.setting.left = "exit"
        return Outcome.DONE

    def call(self, function: ShellFunction, arguments: Sequence[Word]) -> Outcome:
        """Call a function of the script."""
        setting = self.setting
        if setting.depth > MOST_DEPTH:
            return Outcome.MAYBE
        before, script = setting.arguments, setting.script
        setting.arguments, setting.script = tuple(arguments), function.script
        setting.depth += 1
        outcome = self.one(function.body)
        setting.depth -= 1
        setting.arguments, setting.script = before, script
        if setting.left == "return":
            setting.left = ""
        return outcome


class _Unsure:
    """Within it, commands are not certain."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.before = setting, setting.sure

    def __enter__(self) -> None:
        self.setting.sure = False

    def __exit__(self, *_: object) -> None:
        self.setting.sure = self.before


def _appended(old: Word, new: Word) -> Word:
    """``A+=new``."""
    text = old.text + new.text
    if old.known and new.known:
        return Word(text, new.place)
    parts = [part for word in (old, new) for part in word.parts or ((word.text, word.known),)]
    return Word(text, new.place, known=False, parts=tuple(parts))


def _ways(node: Node) -> list[tuple[list[Node], list[Node]]]:
    """The conditions of an ``if``, each with its body; ``else`` has no condition."""
    ways: list[tuple[list[Node], list[Node]]] = []
    condition: list[Node] = []
    body: list[Node] = []
    in_body = False
    for child in node.children:
        if child.type == "then":
            in_body = True
        elif child.type == "elif_clause":
            ways.append((condition, body))
            inner = _ways(child)
            (condition, body), in_body = inner[0], True
        elif child.type == "else_clause":
            ways.append((condition, body))
            condition, body = [], list(child.named_children)
        elif child.is_named and child.type != "comment":
            (body if in_body else condition).append(child)
    return [*ways, (condition, body)]


def _body(item: Node) -> list[Node]:
    patterns = {child.id for child in item.children_by_field_name("value")}
    return [child for child in item.named_children if child.id not in patterns]


def _assigned(node: Node) -> set[str]:
    """The names that are set within a node."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        waiting.extend(current.named_children)
        if current.type == "variable_assignment":
            name = current.child_by_field_name("name")
            names |= {text_of(name).partition("[")[0]} if name else set()
    return names


_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")
_WALKERS: dict[str, Callable[[_Walk, Node], Outcome]] = {
    "command": _Walk.command,
    "program": _Walk.group,
    "ERROR": _Walk.group,
    "compound_statement": _Walk.group,
    "do_group": _Walk.group,
    "negated_command": _Walk.negated,
    "list": _Walk.both,
    "subshell": _Walk.subshell,
    "pipeline": _Walk.pipeline,
    "redirected_statement": _Walk.redirected,
    "variable_assignment": _Walk.assignment,
    "variable_assignments": _Walk.assignment,
    "declaration_command": _Walk.declaration,
    "unset_command": _Walk.unset,
    "function_definition": _Walk.function,
    "if_statement": _Walk.conditional,
    "case_statement": _Walk.case,
    "for_statement": _Walk.for_each,
    "while_statement": _Walk.loop,
    "c_style_for_statement": _Walk.counted,
    "test_command": lambda walk, node: tested(node, walk.setting),
}
