"""From values of the program to the paths that they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.paths.text import PathText, is_remote, path_text, texts_in
from epochzero.check.program.values import ANYTHING, Constant, Instance, Items, Text, Value

DATA = Constant("data")


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (Constant("a/b.csv"), "a/b.csv"),
        (Constant(b"a/b.csv"), "a/b.csv"),
        (Instance("pathlib.Path", (DATA, Constant("x.npy"))), "data/x.npy"),
        (Instance("pathlib.Path", (DATA, Constant("/x.npy"))), "/x.npy"),
        (Instance("pathlib.Path"), "."),
        (Instance("os.path.join", (DATA, Constant("a"), Constant("b"))), "data/a/b"),
        (Text(("run_", Constant(3), ".pt")), "run_3.pt"),
        (Instance("builtins.str", (Instance("pathlib.Path", (DATA,)),)), "data"),
    ],
)
def test_a_path_that_is_wholly_known(value: Value, known: str) -> None:
    text = path_text(value)
    assert text is not None
    assert text.known == known


def test_of_a_path_known_in_part_the_beginning_is_known() -> None:
    text = path_text(Instance("os.path.join", (DATA, Text(("fold_", ANYTHING, ".csv")))))
    assert text is not None
    assert text.known is None
    assert text.beginning == "data/fold_"
    assert text.pattern.fullmatch("data/fold_7.csv")
    assert not text.pattern.fullmatch("data/fold_7.json")


@pytest.mark.parametrize(
    "value",
    [
        *(Constant(3), Constant(None), Constant(""), Constant("a\0b"), Items("list", (DATA,))),
        *(Instance("builtins.open", (DATA,)), Instance("torch.nn.Linear")),
    ],
)
def test_what_is_no_path(value: Value) -> None:
    assert path_text(value) is None


def test_the_home_folder_is_only_meant_where_it_is_expanded() -> None:
    tilde = Constant("~/x.pt")
    plain, expanded = path_text(tilde), path_text(Instance("os.path.expanduser", (tilde,)))
    assert plain is not None
    assert expanded is not None
    assert (plain.home, expanded.home) == (False, True)


@pytest.mark.parametrize("text", ["https://a.org/x", "s3://b/k", "gs://b/k", "hdfs://n/x"])
def test_a_url_is_no_path_of_a_file_system(text: str) -> None:
    assert is_remote(text)
    assert not is_remote(f"/{text}")


def test_a_drive_of_windows_is_no_url() -> None:
    assert not is_remote("C:/data/train.csv")


def test_paths_in_the_options_of_a_call_are_found() -> None:
    value = Items("dict", (Items("list", (DATA,)),), (Constant("folders"),))
    assert [text.known for text in texts_in(value)] == ["data", "folders"]


@given(st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=6))
def test_a_known_path_matches_its_own_pattern(parts: list[str | None]) -> None:
    text = PathText(tuple(parts))
    example = "".join("?" if part is None else part for part in parts)
    assert text.pattern.fullmatch(example)
    assert example.startswith(text.beginning)
