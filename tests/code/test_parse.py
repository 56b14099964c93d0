"""Files taken apart: units, imports, calls, words; and their form on disk."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import epochzero
import epochzero.code.parse as parse_module
from epochzero.code.parse import LARGE_BYTES, parse, parse_as_text
from epochzero.code.parsed import FIELDS, Parsed
from epochzero.code.words import hashes, phrases, words

SOURCE = Path(epochzero.__file__).parent

PYTHON = b'''#!/usr/bin/env python
# Copyright: nobody
"""Trains the tiny model."""
from .. import (a as b,
  c)  # both
import x.y, z as w
from q import *

@dec
@other(1)
class Trainer(Base):
    """Steers everything."""

    limit = "no limit was given"

    async def fit(self):
        def inner(): raise ValueError(f"bad {self.shape('k')} shape given here now")
        assert self
        return inner().item()
        # behind the block
# and further behind

try:
    import cupy
except ImportError:
    def fit(): log("first half of a "
                   "long message\\nnext")
'''


def units(parsed: Parsed) -> list[tuple[str, str, int, int]]:
    return [(unit.kind, unit.qualified, unit.start, unit.end) for unit in parsed.units]


def holds(parsed: Parsed, field: str) -> set[str]:
    """The words of a small file that a field's bag holds."""
    text = PYTHON.decode().replace("\\n", "  ")
    bag = set(parsed.bags[field].hashes.tolist())
    return {word for word in words(text) if int(hashes([word])[0]) in bag}


def test_a_python_file_is_taken_apart() -> None:
    parsed = parse(PYTHON, "pkg/train.py")
    assert parsed.language == "python"
    assert parsed.lines == PYTHON.count(b"\n")
    assert units(parsed) == [
        ("class", "Trainer", 9, 19),
        ("method", "Trainer.fit", 16, 19),
        ("function", "Trainer.fit.inner", 17, 17),
        ("function", "fit", 26, 27),
    ]
    assert [tuple(item) for item in parsed.imports] == [
        ("", ("a", "c"), 2),
        ("x.y", (), 0),
        ("z", (), 0),
        ("q", ("*",), 0),
        ("cupy", (), 0),
    ]
    assert [tuple(call) for call in parsed.calls] == [
        (-1, "other"),
        (2, "ValueError"),
        (2, "shape"),
        (1, "inner"),
        (1, "item"),
        (3, "log"),
    ]
    assert parsed.raises == 2


def test_each_field_holds_its_words() -> None:
    parsed = parse(PYTHON, "pkg/train.py")
    assert holds(parsed, "whole") == set(words(PYTHON.decode().replace("\\n", "  ")))
    assert {"trainer", "shape", "item"} <= holds(parsed, "identifiers")
    assert not {"tini", "messag", "steer"} & holds(parsed, "identifiers")
    assert holds(parsed, "definitions") == {"trainer", "fit", "inner"}
    assert {"tini", "model", "steer", "copyright", "behind"} <= holds(parsed, "comments")
    assert {"limit", "messag", "next", "bad"} <= holds(parsed, "strings")
    assert "nnext" not in holds(parsed, "strings")
    assert holds(parsed, "imports") == {"cupi"}
    assert holds(parsed, "card") == {"train", "tini", "model", "trainer", "fit", "inner"}


def test_names_are_exact_and_of_code_only() -> None:
    parsed = parse(PYTHON, "pkg/train.py")
    names = set(parsed.names.tolist())

    def known(*wanted: str) -> bool:
        return {int(value) for value in hashes(wanted)} <= names

    assert known("Trainer", "shape", "ValueError", "cupy")
    assert not any(known(word) for word in ("class", "trainer", "Trains", "message"))
    assert set(parsed.classes.tolist()) == set(hashes(["Trainer"]).tolist())
    assert set(parsed.defined.tolist()) == set(hashes(["Trainer", "fit", "inner"]).tolist())


def test_phrases_are_those_of_messages() -> None:
    found = set(parse(PYTHON, "pkg/train.py").phrases.tolist())
    assert set(phrases("first half of long message next").tolist()) <= found
    assert set(phrases("shape given here now").tolist()) <= found
    assert not set(phrases("Trains the tiny model").tolist()) & found
    assert not set(phrases("given first half").tolist()) & found


def test_a_method_counts_for_its_class_too() -> None:
    parsed = parse(PYTHON, "pkg/train.py")
    trainer, fit, inner, _ = parsed.unit_bags
    assert set(inner.hashes.tolist()) <= set(fit.hashes.tolist()) <= set(trainer.hashes.tolist())
    assert inner.total < fit.total < trainer.total < parsed.bags["whole"].total
    assert len(parsed.unit_bags[1:3]) == 2
    assert parsed.unit_bags[-1].total > 0


CPP = """// Copyright X

// Adds things.
#include <a/b.h>
#include "c.h"
namespace ns {
/*! Holds a sum. */
template <typename T>
class Foo : public Bar {
 public:
  // makes it
  Foo(int x) : x_(x) {}
  virtual ~Foo() {}
  bool operator==(const Foo& o) const { return h->run<int>(x_); }
 int x_; // trailing
};
template <>
int *Foo<int>::compute(const std::vector<int>& v) {
  CHECK_EQ(v.size(), 3) << "bad size of vector " "given here";
  ns::detail::go(v); std::make_shared<Foo>(1);
  throw std::runtime_error("x");
}
typedef struct { int a; } Thing;
}
"""
CUDA = """__global__ void kern(float* a) { a[0] = expf(1.0f); }
void launch() { kern<<<1, 2>>>(p); CUDA_CHECK(cudaGetLastError()); }
"""
GO = """package m
import (
 "fmt"
 x "a/b"
)
// T is.
type T struct { a int }
// Run runs.
func (t *T) Run(a int) error {
  fmt.Println("hi"); panic("x")
}
func main() { go func() { t.Run(1) }() }
"""
JAVA = """package a;
import java.util.List;
import static a.b.C.*;
/** Doc. */
public class X<T> {
  @Override
  public void run() { new ArrayList<String>(); this.go(); throw new E("a b c d"); }
  X() {}
  interface I { void m(); }
}
"""
SCRIPT = """import {a, b as c} from "./m";
import D from 'd';
const e = require("e");
class A extends B {
  foo(x) { this.bar(`t ${x + baz("in")} z`); }
  handler = () => { throw new Error("no way out"); };
}
export const f = async () => { await g(); };
A.prototype.old = function () {};
module.exports = { "quoted": function () {} };
"""
TYPED = """interface P { x: number }
abstract class Q<T> { run(x: T): void {} }
export default function main(): P { return new Q() as any; }
"""


@pytest.mark.parametrize(
    ("path", "code", "language", "expected", "raises"),
    [
        ("a.cc", CPP, "cpp", [
            ("class", "Foo", 7, 16), ("method", "Foo.Foo", 11, 12), ("method", "Foo.~Foo", 13, 13),
            ("method", "Foo.operator==", 14, 14), ("method", "Foo.compute", 17, 22),
            ("class", "Thing", 23, 23)], 2),
        ("a.h", CPP, "cpp", None, 2),
        ("a.c", "// Adds.\nstatic int *f(int a) {\n assert(a); return g(a); }\n", "c",
            [("function", "f", 1, 3)], 1),
        ("k.cu", CUDA, "cuda", [("function", "kern", 1, 1), ("function", "launch", 2, 2)], 1),
        ("x.go", GO, "go", [
            ("class", "T", 6, 7), ("method", "T.Run", 8, 11), ("function", "main", 12, 12)], 1),
        ("X.java", JAVA, "java", [
            ("class", "X", 4, 10), ("method", "X.run", 6, 7), ("method", "X.X", 8, 8),
            ("class", "X.I", 9, 9), ("method", "X.I.m", 9, 9)], 1),
        ("x.js", SCRIPT, "javascript", [
            ("class", "A", 4, 7), ("method", "A.foo", 5, 5), ("method", "A.handler", 6, 6),
            ("function", "f", 8, 8), ("function", "old", 9, 9), ("function", "quoted", 10, 10)], 1),
        ("x.ts", TYPED, "typescript", [
            ("class", "P", 1, 1), ("class", "Q", 2, 2), ("method", "Q.run", 2, 2),
            ("function", "main", 3, 3)], 0),
        ("x.tsx", "function V() { return <b a={f(1)}>text</b>; }\n", "typescript",
            [("function", "V", 1, 1)], 0),
    ],
)  # fmt: skip
def test_other_languages(
    path: str, code: str, language: str, expected: list[object] | None, raises: int
) -> None:
    parsed = parse(code.encode(), path)
    assert parsed.language == language
    assert parsed.raises == raises
    if expected is not None:
        assert units(parsed) == expected


@pytest.mark.parametrize(
    ("path", "code", "imports", "calls"),
    [
        ("a.cc", CPP, ["a/b.h", "c.h"],
            {"run", "size", "go", "make_shared", "CHECK_EQ", "runtime_error"}),
        ("k.cu", CUDA, [], {"expf", "CUDA_CHECK", "cudaGetLastError", "kern"}),
        ("x.go", GO, ["fmt", "a/b"], {"Println", "panic", "Run"}),
        ("X.java", JAVA, ["java.util", "a.b.C"], {"ArrayList", "E", "go"}),
        ("x.js", SCRIPT, ["./m", "d", "e"], {"require", "bar", "baz", "Error", "g"}),
    ],
)  # fmt: skip
def test_imports_and_calls_of_other_languages(
    path: str, code: str, imports: list[str], calls: set[str]
) -> None:
    parsed = parse(code.encode(), path)
    assert [item.module for item in parsed.imports] == imports
    assert {call.name for call in parsed.calls} == calls


def test_a_licence_is_no_introduction() -> None:
    card = set(parse(CPP.encode(), "a.cc").bags["card"].hashes.tolist())
    assert set(hashes(words("adds things")).tolist()) <= card
    assert not set(hashes(words("copyright")).tolist()) & card


def _of_ast(node: ast.AST, around: tuple[str, ...], in_class: bool) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_class = isinstance(child, ast.ClassDef)
            kind = "class" if is_class else "method" if in_class else "function"
            start = min([child.lineno, *(item.lineno for item in child.decorator_list)])
            path = (*around, child.name)
            found.append((kind, ".".join(path), start, child.end_lineno))
            found += _of_ast(child, path, is_class)
        else:
            found += _of_ast(child, around, in_class)
    return found


@pytest.mark.parametrize("folder", [SOURCE, Path(__file__).parent.parent])
def test_python_units_are_those_of_ast(folder: Path) -> None:
    # Every third file of thousands is enough, and takes seconds less.
    for path in sorted(folder.rglob("*.py"))[::3]:
        data = path.read_bytes()
        assert sorted(units(parse(data, path.name))) == sorted(_of_ast(ast.parse(data), (), False))


def test_python_of_long_ago_has_units_too() -> None:
    parsed = parse(b"class A:\n  def f(self):\n    print 'x', 1\n    exec 'y'\n", "a.py")
    assert units(parsed) == [("class", "A", 1, 4), ("method", "A.f", 2, 4)]


# -- Bytes of all kinds ------------------------------------------------------------------------

PATHS = [
    "a.py",
    "a.c",
    "a.cc",
    "a.cu",
    "a.java",
    "a.go",
    "a.js",
    "a.ts",
    "a.tsx",
    "a.h",
    "a",
    "a.md",
]
_CODE = st.text(st.sampled_from(string.printable + "äß€\u2028\ufeff\0"), max_size=200)
_BROKEN = st.builds(
    lambda code, cut, noise: code[:cut].encode() + noise + code[cut:].encode(),
    st.sampled_from([PYTHON.decode(), CPP, CUDA, GO, JAVA, SCRIPT, TYPED]),
    st.integers(0, 600),
    st.binary(max_size=6),
)


@given(st.one_of(st.binary(max_size=300), _CODE.map(str.encode), _BROKEN), st.sampled_from(PATHS))
@example(b"", "a.py")
@example(b"\xff\xfed\0e\0f\0", "a.py")
@example(b"\xef\xbb\xbfdef f(): pass", "a.py")
@example(b"def f():\r  pass\rx = 1\r", "a.py")
@example("größe = 'ä' # ü\ndef straße(): pass\n".encode(), "a.py")
def test_any_bytes_are_taken_apart_and_kept(data: bytes, path: str) -> None:
    parsed = parse(data, path)
    assert all(1 <= unit.start <= unit.end <= parsed.lines for unit in parsed.units)
    assert len(parsed.unit_bags) == len(parsed.units)
    assert all(-1 <= call.unit < len(parsed.units) for call in parsed.calls)
    whole = parsed.bags["whole"]
    for bag in (*parsed.bags.values(), *parsed.unit_bags):
        assert bag.total == int(bag.counts.sum()) <= whole.total
        assert set(bag.hashes.tolist()) <= set(whole.hashes.tolist())
    again = Parsed.from_bytes(parsed.to_bytes())
    assert again.to_bytes() == parsed.to_bytes()
    assert (again.units, again.imports, again.calls) == (
        parsed.units, parsed.imports, parsed.calls)  # fmt: skip


def test_encodings_and_line_ends_do_not_shift_lines() -> None:
    code = "# größe\nx = 'ß'\ndef straße():\n    return 'ä'\n"
    expected = [("function", "straße", 3, 4)]
    assert units(parse(code.encode(), "a.py")) == expected
    assert units(parse(code.replace("\n", "\r\n").encode(), "a.py")) == expected
    assert units(parse(code.replace("\n", "\r").encode(), "a.py")) == expected
    assert units(parse(b"\xef\xbb\xbf" + code.encode(), "a.py")) == expected
    assert units(parse(code.encode("utf-16"), "a.py")) == expected
    latin = parse(code.replace("straße", "f").encode("latin-1"), "a.py")
    assert units(latin) == [("function", "f", 3, 4)]


@pytest.mark.parametrize(
    "data",
    [
        b"(" * 100_000,
        b"[{" * 50_000,
        b"a+" * 50_000,
        b"".join(b" " * n + b"if x:\n" for n in range(300)),
        b'"""' + b"x" * 100_000,
        b"f(" * 3000 + b")" * 3000,
        b"not " * 50_000,
        b"x = 1\ndef f():\n  return " + b"[," * 50_000,
    ],
)
@pytest.mark.parametrize("path", ["a.py", "a.cc", "a.js"])
def test_monstrous_files_are_no_trouble(data: bytes, path: str) -> None:
    assert parse(data, path).lines >= 1


def test_a_large_file_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    code = b"def f():\n    return 1\n" * 9000
    assert len(code) > LARGE_BYTES
    monkeypatch.setattr(parse_module, "LONGEST_S", 0.0)
    parsed = parse(code, "a.py")
    assert parsed.language == "text"
    assert not parsed.units
    assert parse(PYTHON, "a.py").language == "python"


def test_a_large_file_of_its_language_is_not() -> None:
    code = b"".join(b"def f%d():\n    return g(%d)\n" % (n, n) for n in range(6000))
    assert len(code) > LARGE_BYTES
    assert len(parse(code, "a.py").units) == 6000


@pytest.mark.parametrize("path", ["a.md", "a.yaml", "Makefile", "x_pb2.py"])
def test_other_text_is_words_without_units(path: str) -> None:
    parsed = parse(PYTHON.split(b"\n", 1)[1], path)
    assert not parsed.units
    assert not parsed.calls
    assert parsed.bags["whole"].total > parsed.bags["card"].total > 0
    assert parsed.bags["identifiers"].total == 0
    assert parsed.language == ("generated" if path == "x_pb2.py" else "text")


def test_binary_files_are_empty() -> None:
    parsed = parse(b"word\0word", "a.py")
    assert (parsed.language, parsed.lines, parsed.bags["whole"].total) == ("binary", 0, 0)


def test_code_can_be_read_as_text() -> None:
    parsed = parse_as_text(PYTHON, "a.py")
    assert parsed.language == "text"
    assert not parsed.units
    assert parsed.bags["whole"].total > 0


def test_results_are_read_only() -> None:
    parsed = Parsed.from_bytes(parse(PYTHON, "a.py").to_bytes())
    for array in (parsed.names, parsed.bags["whole"].hashes, parsed.unit_bags[0].counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        parsed.lines = 3  # type: ignore[misc]
    with pytest.raises(KeyError):
        parsed.bags["nothing"]
    assert list(parsed.bags) == list(FIELDS)


@example(place=3, change=1)  # The length of the head.
@given(st.integers(0), st.integers(1, 255))
def test_damage_is_noticed(place: int, change: int) -> None:
    data = bytearray(parse(b"def f(): return 'a b c d'\n", "a.py").to_bytes())
    data[place % len(data)] ^= change
    with pytest.raises(ValueError, match="cache entry"):
        Parsed.from_bytes(bytes(data))
    with pytest.raises(ValueError, match="cache entry"):
        Parsed.from_bytes(bytes(data[: place % len(data)]))


def test_many_words_fit() -> None:
    text = " ".join(f"w{n}x" for n in range(70_000)).encode()
    parsed = Parsed.from_bytes(parse(text, "a.txt").to_bytes())
    assert len(parsed.bags["whole"]) > 69_000
    assert (np.diff(parsed.bags["whole"].hashes.astype(np.int64)) > 0).all()


def test_read_files_share_names_and_keep_only_arrays() -> None:
    data = parse(b"import os\n\n\ndef load_shard():\n    return os.getcwd()\n", "a.py").to_bytes()
    first, second = Parsed.from_bytes(data), Parsed.from_bytes(data)
    assert first.units[0].name is second.units[0].name
    assert first.called[0] is second.called[0]
    assert first.imports[0].module is second.imports[0].module
    body = first.names.base
    assert isinstance(body, bytes)
    assert b"load_shard" in data
    assert b"load_shard" not in body
