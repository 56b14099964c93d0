"""The code property graph of a file: its syntax, its control flow and its data dependences in one.

F. Yamaguchi, N. Golde, D. Arp, K. Rieck: "Modeling and Discovering Vulnerabilities with Code
Property Graphs", IEEE S&P 2014, Sections III and IV. There, every expression is a node; here a node
is a statement or a clause (``elif``, ``except``, ``case``) with the expressions in it, so that a
file has hundreds of nodes and not thousands. Control dependence is left to the syntax edges, which
at this grain say the same except behind jumps. The program dependences are those within a function.

Written for Python; statements of the other languages have the same parts under similar names, and
what is unknown here is a statement that does nothing but run its body. Functions inside expressions
(lambdas, arrow functions) are part of their statement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from epochzero.code.parse import syntax_of
from epochzero.code.words import IDENTIFIER

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tree_sitter import Node

    Edges: TypeAlias = NDArray[np.int32]


MOST_NODES = 400
"""So many nodes of a file are kept, those nested least: every signature before any inner line."""
DEEPEST = 60
"""What is nested deeper is part of the statement around it."""
MOST_NAMES = 60
"""Names of one node; longer are only tables and texts."""

_TYPES = {
    "block": """block compound_statement statement_block module program translation_unit source_file
        class_body constructor_body declaration_list field_declaration_list interface_body else_clause
        finally_clause finalizer preproc_if preproc_ifdef preproc_else switch_body switch_block
        statement_list""",
    "comment": "comment line_comment block_comment",
    "definition": """function_definition class_definition function_declaration method_definition
        generator_function_declaration method_declaration constructor_declaration class_declaration
        class_specifier struct_specifier interface_declaration enum_declaration""",
    "loop": """while_statement for_statement for_in_statement enhanced_for_statement for_range_loop
        do_statement""",
    "try": "try_statement try_with_resources_statement",
    "handler": "except_clause except_group_clause catch_clause",
    "last": "finally_clause finalizer",
    "switch": """match_statement switch_statement switch_expression expression_switch_statement
        type_switch_statement select_statement""",
    "case": """case_clause case_statement switch_case switch_default switch_block_statement_group
        switch_rule expression_case default_case type_case communication_case""",
    "falling": "case_statement switch_case switch_default switch_block_statement_group",
    "raise": "raise_statement throw_statement",
}
_IS = {what: frozenset(types.split()) for what, types in _TYPES.items()}
"""The types of nodes by what they are to the flow. Blocks hold statements and are none themselves."""
_WRAPPERS = {"decorated_definition": "definition", "export_statement": "declaration"}
_JUMPS = {
    "break_statement": "break",
    "continue_statement": "continue",
    "return_statement": "return",
}


class GraphNode(NamedTuple):
    """A statement or clause, without the statements in it.

    Attributes:
        type: as the grammar names it.
        line: its first line, from 1.
        names: the identifiers in it in order, and the words of its strings.
    """

    type: str
    line: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CodeGraph:
    """A code property graph.

    Attributes:
        nodes: in the order of the text.
        syntax: from a statement to each statement in it, (edges, 2).
        flow: from a statement to what may run next, (edges, 2); a function's first statement comes
            after the function itself, and so do its parameters' values.
        data: from where a variable is set to where that value may be read, (edges, 2).
    """

    nodes: tuple[GraphNode, ...]
    syntax: Edges
    flow: Edges
    data: Edges

    @classmethod
    def empty(cls) -> CodeGraph:
        """The graph of a file without code."""
        return cls((), _edges(()), _edges(()), _edges(()))


def graph_of(data: bytes, path: str, most_nodes: int = MOST_NODES) -> CodeGraph:
    """The code property graph of a file.

    Args:
        data: the file; any bytes are accepted, and what no grammar accepts has no nodes.
        path: tells the language, together with the first bytes.
        most_nodes: how many nodes are kept at most.
    """
    syntax = syntax_of(data, path)
    if syntax is None:
        return CodeGraph.empty()
    walk = _GraphWalk()
    walk.file(syntax.root)
    order = sorted(range(len(walk.made)), key=lambda n: (walk.made[n].depth, n))
    kept = sorted(order[:most_nodes])
    place = {old: new for new, old in enumerate(kept)}
    nested = {made.node.id for made in walk.made}
    used = [_names(walk.made[old].node, nested, syntax.data) for old in kept]
    flow = _kept(walk.flow, place)
    # What is kept has its parents kept, for these are nested less.
    scopes = [place.get(walk.made[old].scope, -1) for old in kept]
    return CodeGraph(
        tuple(
            GraphNode(made.type, made.node.start_point[0] + 1, names.words)
            for made, names in zip((walk.made[old] for old in kept), used, strict=True)
        ),
        _edges(_kept(((made.parent, n) for n, made in enumerate(walk.made)), place)),
        _edges(flow),
        _edges(_dependences(used, flow, scopes)),
    )


def _kept(edges: Iterable[tuple[int, int]], place: Mapping[int, int]) -> list[tuple[int, int]]:
    return [(place[a], place[b]) for a, b in edges if a in place and b in place]


def _edges(pairs: Iterable[tuple[int, int]]) -> Edges:
    """Each pair once, sorted, read-only."""
    edges = np.array(sorted(set(pairs)), np.int32).reshape(-1, 2)
    edges.flags.writeable = False
    return edges


# -- Syntax and control flow -------------------------------------------------------------------


class _Made(NamedTuple):
    """A node of the graph while it grows; ``scope`` is the definition around it, -1 for none."""

    node: Node
    type: str
    parent: int
    scope: int
    depth: int


@dataclass
class _Around:
    """A statement that jumps in it lead to, and the jumps that did: their nodes by what they are."""

    catches: frozenset[str]
    jumps: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


_LOOP = frozenset({"break", "continue"})
_SWITCH = frozenset({"break"})
_FINALLY = frozenset(_JUMPS.values())


class _GraphWalk:
    """Goes through a tree once, statement by statement.

    Every method that takes ``before``, the nodes after which something runs, gives the nodes after
    which the next statement runs.
    """

    def __init__(self) -> None:
        self.made: list[_Made] = []
        self.flow: list[tuple[int, int]] = []
        self._around: list[_Around] = []
        self._scope = -1

    def file(self, root: Node) -> None:
        """Takes in a file."""
        self._sequence(root, -1, [])

    def _add(self, node: Node, kind: str, parent: int, before: Iterable[int]) -> int:
        number = len(self.made)
        depth = self.made[parent].depth + 1 if parent >= 0 else 0
        self.made.append(_Made(node, kind, parent, self._scope, depth))
        self.flow += [(other, number) for other in before]
        return number

    def _sequence(self, block: Node | None, parent: int, before: list[int]) -> list[int]:
        for node in _statements(block):
            before = self._statement(node, parent, before)
        return before

    def _statement(self, node: Node, parent: int, before: list[int]) -> list[int]:
        inner = node.child_by_field_name(_WRAPPERS.get(node.type, "")) or node
        kind = inner.type
        number = self._add(node, kind, parent, before)
        if kind in _JUMPS:
            self._jump(_JUMPS[kind], [number])
        if kind in _JUMPS or kind in _IS["raise"]:
            return []
        if self.made[number].depth >= DEEPEST:
            return [number]
        if kind == "if_statement":
            return self._branch(inner, number)
        if kind in _IS["loop"]:
            return self._loop(inner, number)
        if kind in _IS["try"]:
            return self._try(inner, number)
        if kind in _IS["switch"]:
            return self._switch(inner, number)
        if kind in _IS["definition"]:
            return self._definition(inner, number)
        return self._sequence(_body(inner), number, [number])

    def _jump(self, kind: str, nodes: list[int]) -> None:
        """Leads a jump to the innermost statement that it ends at or passes through."""
        for around in reversed(self._around):
            if kind in around.catches:
                around.jumps[kind] += nodes
                return

    def _branch(self, node: Node, number: int) -> list[int]:
        ends = self._sequence(_body(node), number, [number])
        untaken = [number]
        for other in node.children_by_field_name("alternative"):
            if other.type == "elif_clause":
                clause = self._add(other, other.type, number, untaken)
                ends += self._sequence(_body(other), clause, [clause])
                untaken = [clause]
            else:
                ends += self._sequence(other, number, untaken)
                untaken = []
        return ends + untaken

    def _loop(self, node: Node, number: int) -> list[int]:
        loop = _Around(_LOOP)
        self._around.append(loop)
        ends = self._sequence(_body(node), number, [number])
        self._around.pop()
        self.flow += [(end, number) for end in (*ends, *loop.jumps["continue"])]
        otherwise = self._sequence(node.child_by_field_name("alternative"), number, [number])
        return otherwise + loop.jumps["break"]

    def _try(self, node: Node, number: int) -> list[int]:
        """Any statement of the body may raise, and any handler may be the one that takes it."""
        last = _child(node, _IS["last"])
        passing = _Around(_FINALLY if last else frozenset())
        self._around.append(passing)
        ends = self._sequence(_body(node), number, [number])
        raising = self._since(number)
        handled: list[int] = []
        for handler in (child for child in node.children if child.type in _IS["handler"]):
            clause = self._add(handler, handler.type, number, raising)
            handled += self._sequence(_body(handler), clause, [clause])
        ends = self._sequence(_child(node, {"else_clause"}), number, ends) + handled
        self._around.pop()
        if last is None:
            return ends
        jumping = [n for nodes in passing.jumps.values() for n in nodes]
        ended = self._sequence(last, number, sorted({*self._since(number), *ends, *jumping}))
        for kind in passing.jumps:
            self._jump(kind, ended)
        return ended if ends else []

    def _since(self, number: int) -> list[int]:
        """The nodes made since one, itself included, that run as part of it."""
        own = range(number, len(self.made))
        return [n for n in own if self.made[n].scope == self._scope]

    def _switch(self, node: Node, number: int) -> list[int]:
        # In Python, a break in a case ends the loop around.
        switch = _Around(frozenset() if node.type == "match_statement" else _SWITCH)
        self._around.append(switch)
        ends = [number]
        falling: list[int] = []
        for case in _statements(_body(node) or node, _IS["case"]):
            clause = self._add(case, case.type, number, [number, *falling])
            after = self._sequence(case, clause, [clause])
            falling = after if case.type in _IS["falling"] else []
            ends += [] if falling else after
        self._around.pop()
        return ends + falling + switch.jumps["break"]

    def _definition(self, node: Node, number: int) -> list[int]:
        outside = self._around, self._scope
        self._around, self._scope = [], number
        self._sequence(_body(node), number, [number])
        self._around, self._scope = outside
        return [number]


def _body(node: Node) -> Node | None:
    """The block or the one statement that a statement runs."""
    for name in ("body", "consequence"):
        if (found := node.child_by_field_name(name)) is not None:
            return found
    return _child(node, _IS["block"])


def _child(node: Node, types: Iterable[str]) -> Node | None:
    return next((child for child in node.children if child.type in types), None)


_ENDINGS = ("statement", "declaration", "definition")


def _statements(block: Node | None, types: frozenset[str] = frozenset()) -> Iterator[Node]:
    """The statements of a block, through blocks right in it.

    Args:
        block: a block, a case, or a statement that stands in its place.
        types: if given, only these.
    """
    waiting = [] if block is None else [block]
    while waiting:
        node = waiting.pop()
        opened = node.type in _IS["block"] or (node is block and bool(types))
        if node is block and node.type in _IS["case"]:
            waiting += [child for child in reversed(node.named_children) if _is_in_case(child)]
        elif types and node.type in types:
            yield node
        elif opened:
            waiting += [child for child in reversed(node.named_children) if _is_statement(child)]
        elif not types:
            yield node


def _is_statement(node: Node) -> bool:
    # A bare name in a block is what `#ifdef` asks for.
    return node.type not in _IS["comment"] and node.type != "identifier"


def _is_in_case(node: Node) -> bool:
    return node.type in _IS["block"] or node.type.endswith(_ENDINGS)


# -- Data dependence ---------------------------------------------------------------------------

_USE, _SET, _CHANGE, _PARAMETER, _SKIP = range(5)
_LEFT = {"left": _SET}
_CALLABLE = {"name": _SET, "declarator": _SET, "parameters": _PARAMETER}
_PART = {"type": _USE, "value": _USE}
_ROLES: Mapping[str, Mapping[str, int]] = {
    "assignment": {"left": _SET, "type": _USE},
    "augmented_assignment": {"left": _CHANGE},
    "named_expression": {"name": _SET},
    "as_pattern": {"alias": _SET},
    "for_statement": _LEFT,
    "for_in_clause": {"left": _SKIP},
    "lambda": {"parameters": _SKIP},
    "import_statement": {"name": _SET},
    "import_from_statement": {"name": _SET, "module_name": _SKIP},
    "aliased_import": {"name": _SKIP, "alias": _SET},
    "function_definition": _CALLABLE,
    "class_definition": {"name": _SET},
    "default_parameter": _PART,
    "typed_parameter": _PART,
    "typed_default_parameter": _PART,
    "keyword_argument": {"name": _SKIP},
    "attribute": {"object": _USE, "attribute": _SKIP},
    "subscript": {"value": _USE, "subscript": _USE},
    # The other languages.
    "function_declaration": _CALLABLE,
    "method_declaration": _CALLABLE,
    "method_definition": _CALLABLE,
    "constructor_declaration": _CALLABLE,
    "class_declaration": {"name": _SET},
    "function_declarator": {"parameters": _PARAMETER},
    "parameter_declaration": _PART,
    "formal_parameter": _PART,
    "required_parameter": _PART,
    "optional_parameter": _PART,
    "declaration": {"declarator": _SET},
    "init_declarator": {"declarator": _SET, "value": _USE},
    "variable_declarator": {"name": _SET, "value": _USE},
    "var_spec": {"name": _SET, **_PART},
    "assignment_expression": _LEFT,
    "augmented_assignment_expression": {"left": _CHANGE},
    "update_expression": {"argument": _CHANGE},
    "short_var_declaration": _LEFT,
    "assignment_statement": _LEFT,
    "range_clause": _LEFT,
    "for_in_statement": _LEFT,
    "for_range_loop": {"declarator": _SET},
    "enhanced_for_statement": {"name": _SET},
    "field_expression": {"argument": _USE},
    "member_expression": {"object": _USE},
    "selector_expression": {"operand": _USE},
    "subscript_expression": {"argument": _USE, "object": _USE, "index": _USE},
    "index_expression": {"operand": _USE, "index": _USE},
    "field_access": {"object": _USE, "field": _SKIP},
    "method_invocation": {"name": _SKIP},
}
"""By the type of a node and the field of its child what the child's identifiers are; a child of any
other field is what the node is."""


_PLAIN = frozenset({"=", ":="})
"""Operators that set a variable without reading it."""


@dataclass
class _Names:
    """The names of a node, and what they do.

    Attributes:
        words: all, in order.
        reads, sets: variables of the scope that the node is in.
        parameters: variables that a definition sets in its own scope.
    """

    words: tuple[str, ...] = ()
    reads: set[str] = field(default_factory=set)
    sets: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)


def _names(node: Node, nested: set[int], data: bytes) -> _Names:
    """The names in a node outside of the nodes that are nested in it."""
    found = _Names()
    words: list[str] = []
    waiting = [(child, role) for child, role in _roles(node, _USE) if child.id not in nested]
    while waiting:
        part, role = waiting.pop()
        kind = part.type
        if part.child_count:
            if kind in _ROLES or kind == "dotted_name":
                waiting += [pair for pair in _roles(part, role) if pair[0].id not in nested]
            else:
                waiting += [(c, role) for c in reversed(part.children) if c.id not in nested]
        elif part.is_named and kind not in _IS["comment"]:
            text = data[part.start_byte : part.end_byte].decode("utf-8", "replace")
            if len(words) < MOST_NAMES:
                words += IDENTIFIER.findall(text)
            if kind == "identifier":
                _note(found, text, role)
    found.words = tuple(words[:MOST_NAMES])
    return found


def _roles(node: Node, role: int) -> list[tuple[Node, int]]:
    """The children of a node, the last first, with what the identifiers in each are."""
    children = node.children
    roles = [role] * len(children)
    if node.type == "dotted_name":  # only its first part is a variable
        roles[1:] = [_SKIP] * (len(children) - 1)
    elif fields := _ROLES.get(node.type):
        operator = node.child_by_field_name("operator")
        changes = operator is not None and operator.type not in _PLAIN
        for name, of in fields.items():
            ids = {child.id for child in node.children_by_field_name(name)}
            own = _CHANGE if of == _SET and changes else of
            roles = [own if c.id in ids else r for c, r in zip(children, roles, strict=True)]
    return list(zip(reversed(children), reversed(roles), strict=True))


def _note(found: _Names, name: str, role: int) -> None:
    if role in (_USE, _CHANGE):
        found.reads.add(name)
    if role in (_SET, _CHANGE):
        found.sets.add(name)
    if role == _PARAMETER:
        found.parameters.add(name)


def _dependences(
    names: Sequence[_Names], flow: Iterable[tuple[int, int]], scopes: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """From each setting of a variable to the nodes that it reaches and that read it."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    for one, other in flow:
        after[one].append(other)
    for number, own in enumerate(names):
        for scope, variables in ((scopes[number], own.sets), (number, own.parameters)):
            for variable in variables:
                waiting = [n for n in after[number] if scopes[n] == scope]
                seen = set(waiting)
                while waiting:
                    reached = waiting.pop()
                    if variable in names[reached].reads:
                        yield number, reached
                    if variable not in names[reached].sets:
                        new = {n for n in after[reached] if scopes[n] == scope} - seen
                        seen |= new
                        waiting += new
