"""Configuration files as values with their lines; nothing in them is executed."""

from __future__ import annotations

import json
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from epochzero.check.program.configuration import Unreadable, get, load
from epochzero.check.program.values import Anything, Constant, Items, Value


def plainly(value: object) -> object:
    if isinstance(value, Items):
        items = [plainly(item) for item in value.values]
        if value.kind != "dict":
            return items
        return dict(zip([plainly(key) for key in value.keys], items, strict=True))
    assert isinstance(value, Constant)
    return value.value


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def line_of(value: Value | None) -> int:
    assert isinstance(value, Constant)
    assert value.origin is not None
    return value.origin.line


def test_yaml_with_anchors_and_merges(tmp_path: Path) -> None:
    text = (
        "base: &b {lr: 1e-3, n: 3}\nrun:\n  <<: *b\n  n: 4\n  shuffle: yes\nlist: [1, two, null]\n"
    )
    found = load(write(tmp_path, "a.yaml", text))
    assert plainly(found) == yaml.safe_load(text)
    assert isinstance(found, Items)
    run = get(found, "run")
    assert isinstance(run, Items)
    assert [line_of(get(run, name)) for name in ("lr", "n", "shuffle")] == [1, 4, 5]
    assert get(run, "nothing") is None


def test_json_toml_and_ini(tmp_path: Path) -> None:
    text = '{"a": [1, 2.5, {"b": "x\\n"}],\n "c": null,\n "d": {}, "e": -1e3, "c": true}'
    found = load(write(tmp_path, "a.json", text))
    assert plainly(found) == json.loads(text)
    assert isinstance(found, Items)
    assert line_of(get(found, "e")) == 3
    text = 'a = 1\n[t.x]\nb = "q"\n[[l]]\nz = [1, 2]\n'
    found = load(write(tmp_path, "a.toml", text))
    assert plainly(found) == tomllib.loads(text)
    assert isinstance(found, Items)
    assert line_of(get(found, "a")) == 1
    found = load(write(tmp_path, "a.ini", "[DEFAULT]\nk = 1\n[S]\nName = v\n"))
    assert plainly(found) == {"S": {"name": "v", "k": "1"}}


def test_all_documents_and_empty_files(tmp_path: Path) -> None:
    two = write(tmp_path, "a.yaml", "a: 1\n---\nb: 2\n")
    assert plainly(load(two, "yaml-all")) == [{"a": 1}, {"b": 2}]
    refused = load(two)
    assert isinstance(refused, Unreadable)
    assert refused.wrong
    assert plainly(load(write(tmp_path, "b.yaml", ""))) is None


def test_tags_make_no_objects(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    text = f'a: !!python/object/apply:os.mkdir ["{mark}"]\nb: !Own {{x: 1}}\n'
    found = load(write(tmp_path, "a.yaml", text))
    assert isinstance(found, Items)
    assert all(isinstance(value, Anything) for value in found.values)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.yaml", "a: 1\nb: [1\nc: 2\n", 3),
        ("a.yaml", "a: 1\n\tb: 2\n", 2),
        ("a.json", '{"a": 1,\n"b"}', 2),
        ("a.toml", "a = 1\nb =\n", 2),
        ("a.ini", "[s]\nx=1\n[s]\n", 3),
    ],
)
def test_what_is_wrong_has_its_line(tmp_path: Path, name: str, text: str, line: int) -> None:
    found = load(write(tmp_path, name, text))
    assert isinstance(found, Unreadable)
    assert found.wrong
    assert found.place.line == line


def test_bombs_and_what_is_no_file(tmp_path: Path) -> None:
    names = "abcdefghij"
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in pairwise(names)
    )
    assert isinstance(load(write(tmp_path, "bomb.yaml", bomb)), Items)
    assert isinstance(load(write(tmp_path, "self.yaml", "&a [*a]")), Items)
    for name in ("deep.yaml", "deep.json"):
        assert isinstance(load(write(tmp_path, name, "[" * 100_000)), Unreadable)
        assert isinstance(load(write(tmp_path, name, "[" * 100_000 + "]" * 100_000)), Unreadable)
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfea")
    (tmp_path / "big.json").write_text("[" + "1," * 600_000 + "1]")
    for name in ("loop.yaml", "none.yaml", "bytes.yaml", "big.json", "x.unknown", "."):
        assert isinstance(load(tmp_path / name), Unreadable)
    missing = load(tmp_path / "none.yaml")
    assert isinstance(missing, Unreadable)
    assert missing.missing


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["yaml", "yaml-all", "json", "jsonl", "toml", "ini"]),
    st.text(alphabet="ab1.:- \n\t[]{}\"',=&*!#|<", max_size=40),
)
def test_no_text_breaks_a_reader(
    tmp_path_factory: pytest.TempPathFactory, kind: str, text: str
) -> None:
    path = write(tmp_path_factory.getbasetemp(), "any.txt", text)
    assert isinstance(load(path, kind), Unreadable | Constant | Items | Anything)


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_json_is_read_as_python_reads_it(
    tmp_path_factory: pytest.TempPathFactory, data: object
) -> None:
    path = write(tmp_path_factory.getbasetemp(), "any.json", json.dumps(data, indent=1))
    assert plainly(load(path)) == data
