"""Code property graphs, checked by hand: every statement stands on a line of its own."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.code.graph import CodeGraph, graph_of

Pairs = set[tuple[int, int]]


def graph(text: str, path: str = "a.py") -> CodeGraph:
    return graph_of(dedent(text).lstrip("\n").encode(), path)


def by_line(found: CodeGraph, kind: str) -> Pairs:
    """The edges of one kind, from line to line."""
    line = [node.line for node in found.nodes]
    return {(line[a], line[b]) for a, b in getattr(found, kind).tolist()}


def flow(text: str, path: str = "a.py") -> Pairs:
    return by_line(graph(text, path), "flow")


def data(text: str, path: str = "a.py") -> Pairs:
    return by_line(graph(text, path), "data")


# -- Syntax ------------------------------------------------------------------------------------


def test_a_node_has_its_own_names_and_not_those_of_the_statements_in_it() -> None:
    found = graph("""
        @cached
        def load(path, mode="read only"):
            data = open(path)
            return data
    """)
    assert [(node.type, node.line) for node in found.nodes] == [
        ("function_definition", 1),
        ("expression_statement", 3),
        ("return_statement", 4),
    ]
    assert found.nodes[0].names == ("cached", "load", "path", "mode", "read", "only")
    assert found.nodes[1].names == ("data", "open", "path")
    assert by_line(found, "syntax") == {(1, 3), (1, 4)}


def test_clauses_are_nodes_below_their_statement() -> None:
    found = graph("""
        try:
            a()
        except E:
            if b:
                c()
            elif d:
                e()
    """)
    assert by_line(found, "syntax") == {(1, 2), (1, 3), (3, 4), (4, 5), (4, 6), (6, 7)}


def test_comments_are_no_nodes() -> None:
    assert [node.line for node in graph("# one\na()\n# two\nb()\n").nodes] == [2, 4]


# -- Control flow ------------------------------------------------------------------------------


def test_flow_of_if_elif_else() -> None:
    assert flow("""
        if a:
            b()
        elif c:
            d()
        else:
            e()
        f()
    """) == {(1, 2), (1, 3), (3, 4), (3, 6), (2, 7), (4, 7), (6, 7)}


def test_an_if_without_else_may_be_passed_over() -> None:
    assert flow("if a:\n    b()\nc()\n") == {(1, 2), (2, 3), (1, 3)}


def test_flow_of_while_with_break_and_continue() -> None:
    assert flow("""
        while a:
            if b:
                break
            if c:
                continue
            d()
        e()
    """) == {(1, 2), (2, 3), (3, 7), (2, 4), (4, 5), (5, 1), (4, 6), (6, 1), (1, 7)}


def test_the_else_of_a_loop_runs_unless_it_was_broken_out_of() -> None:
    assert flow("""
        for a in b:
            break
        else:
            c()
        d()
    """) == {(1, 2), (2, 5), (1, 4), (4, 5)}


def test_flow_of_try_except_else() -> None:
    assert flow("""
        try:
            a()
            b()
        except E:
            c()
        else:
            d()
        e()
    """) == {
        *((1, 2), (2, 3), (3, 7)),
        *((1, 4), (2, 4), (3, 4), (4, 5)),
        *((7, 8), (5, 8)),
    }


def test_a_return_passes_through_finally_and_goes_nowhere_else() -> None:
    assert flow("""
        def f():
            try:
                return a()
            finally:
                b()
            c()
    """) == {(1, 2), (2, 3), (2, 5), (3, 5)}


def test_a_break_passes_through_finally_and_ends_the_loop() -> None:
    assert flow("""
        for a in b:
            try:
                break
            finally:
                c()
        d()
    """) == {(1, 2), (2, 3), (2, 5), (3, 5), (5, 6), (1, 6)}


def test_nothing_follows_return_and_raise() -> None:
    assert flow("""
        def f():
            if a:
                return
            raise b
            c()
        d()
    """) == {(1, 2), (2, 3), (2, 4), (1, 6)}


def test_flow_of_with_and_match() -> None:
    assert flow("""
        with a:
            match b:
                case 1:
                    c()
                case _:
                    d()
        e()
    """) == {(1, 2), (2, 3), (2, 5), (3, 4), (5, 6), (4, 7), (6, 7), (2, 7)}


def test_a_function_is_entered_from_its_head_and_passed_over_by_the_file() -> None:
    assert flow("""
        a()
        def f():
            b()
            c()
        d()
    """) == {(1, 2), (2, 3), (3, 4), (2, 5)}


def test_a_break_in_a_function_does_not_end_the_loop_around_the_function() -> None:
    found = flow("while a:\n    def f():\n        break\nb()\n")
    assert found == {(1, 2), (2, 3), (2, 1), (1, 4)}


def test_a_case_of_c_falls_through_until_a_break() -> None:
    assert flow(
        """
        void f(int a) {
          switch (a) {
            case 1:
              b();
            case 2:
              c();
              break;
            default:
              d();
          }
          e();
        }
        """,
        "a.c",
    ) == {
        *((1, 2), (2, 3), (3, 4), (4, 5), (2, 5), (5, 6), (6, 7), (7, 11)),
        *((2, 8), (8, 9), (9, 11), (2, 11)),
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.c", "int f(int a) {\nwhile (a) {\na = g(a);\n}\nreturn a;\n}\n"),
        ("a.cpp", "int f(int a) {\nwhile (a) {\na = g(a);\n}\nreturn a;\n}\n"),
        ("a.js", "function f(a) {\nwhile (a) {\na = g(a);\n}\nreturn a;\n}\n"),
        ("a.ts", "function f(a: int) {\nwhile (a) {\na = g(a);\n}\nreturn a;\n}\n"),
        ("a.go", "func f(a int) int {\nfor a > 0 {\na = g(a)\n}\nreturn a\n}\n"),
    ],
)
def test_other_languages_have_the_same_graph(path: str, text: str) -> None:
    assert flow(text, path) == {(1, 2), (2, 3), (3, 2), (2, 5)}
    assert data(text, path) == {(1, 2), (1, 3), (1, 5), (3, 2), (3, 3), (3, 5)}


# -- Data dependence ---------------------------------------------------------------------------


def test_a_value_reaches_its_reads_until_it_is_set_anew() -> None:
    assert data("""
        a = 1
        b = a
        a = 2
        c = a + b
    """) == {(1, 2), (2, 4), (3, 4)}


def test_values_of_both_branches_reach_what_follows() -> None:
    assert data("""
        a = 1
        if b:
            a = 2
        c(a)
    """) == {(1, 4), (3, 4)}


def test_a_loop_brings_a_value_back() -> None:
    assert data("""
        a = 0
        for b in c:
            a += b
        d(a)
    """) == {(1, 3), (3, 3), (2, 3), (1, 4), (3, 4)}


def test_parameters_reach_the_body_and_nothing_outside_of_it() -> None:
    assert data("""
        def f(a, b=c, *d, e: int = 3, **g):
            return a, b, d, e, g
        a()
        f()
    """) == {(1, 2), (1, 4)}


def test_imports_handlers_and_with_set_names() -> None:
    assert data("""
        import os.path as p
        from x import y
        import a.b
        with p as q:
            r = q
        try:
            y()
        except E as e:
            print(e)
        a()
    """) == {(1, 4), (2, 7), (3, 10), (4, 5), (8, 9)}


def test_an_attribute_is_no_variable() -> None:
    assert data("""
        x = 1
        a.x = 2
        f(x=3)
        g(x)
    """) == {(1, 4)}


# -- Any input ---------------------------------------------------------------------------------


def test_what_is_no_code_has_no_nodes() -> None:
    for path in ("a.md", "a.png", "a.py"):
        found = graph_of(b"", path)
        assert found.nodes == ()
        assert [edges.shape for edges in (found.syntax, found.flow, found.data)] == [(0, 2)] * 3


def test_the_shallowest_nodes_are_kept() -> None:
    text = "def f():\n    a()\n    b()\ndef g():\n    c()\n"
    found = graph_of(text.encode(), "a.py", most_nodes=3)
    assert [node.line for node in found.nodes] == [1, 2, 4]
    assert by_line(found, "syntax") == {(1, 2)}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.c", "int f() {" + "{" * 5000 + "}" * 5000 + "}"),
        ("a.js", "if (a) b(); else " * 3000 + "c();"),
        ("a.py", "\n".join(" " * n + "if a:" for n in range(300)) + "\n" + " " * 300 + "b()\n"),
        ("b.py", "a = " + "(" * 2000 + ")" * 2000),
        ("c.py", "a = a + 1\n" * 5000),
    ],
)
def test_depth_and_length_are_no_danger(path: str, text: str) -> None:
    assert len(graph_of(text.encode(), path).nodes) <= 400


@given(
    st.lists(
        st.sampled_from(
            [
                "if a:",
                "elif b:",
                "else:",
                "for a in b:",
                "while a:",
                "try:",
                "except E as e:",
                "finally:",
                "return a",
                "break",
                "continue",
                "raise",
                "a = b",
                "def f(a):",
                "class C:",
                "match a:",
                "case 1:",
                "with a as b:",
                "{",
                "}",
                "(",
                '"',
            ]
        ).flatmap(lambda line: st.integers(0, 4).map(lambda depth: "  " * depth + line)),
        max_size=30,
    ),
    st.sampled_from(["a.py", "a.js", "a.go", "a.c", "A.java"]),
)
def test_any_text_has_a_graph_whose_edges_join_its_nodes(lines: list[str], path: str) -> None:
    found = graph_of("\n".join(lines).encode(), path)
    for edges in (found.syntax, found.flow, found.data):
        assert edges.dtype == np.int32
        assert not len(edges) or (edges.min() >= 0 and edges.max() < len(found.nodes))
        assert not edges.flags.writeable
    # Every node but the outermost is in one other, which stands before it.
    inner = found.syntax[:, 1].tolist()
    assert len(set(inner)) == len(inner)
    assert (found.syntax[:, 0] < found.syntax[:, 1]).all()
