"""Words, their hashes, bags and phrases."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epochzero.code.words as module
from epochzero.code.words import Bag, BagList, hashes, name_hashes, phrases, word_stream, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clipGradNorm", ["clipgradnorm", "clip", "grad", "norm"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("running_losses", ["running_losses", "run", "loss"]),
        ("__init__", ["init"]),
        ("conv2d", ["conv2d", "conv"]),
        ("resnet50", ["resnet50", "resnet", "50"]),
        ("the model is not for x", ["model"]),
        ("return self", []),
        ("3abc + 0x1F", ["abc", "x1f"]),
        ("naïve_größe", ["naïve_größe", "naïv", "größe"]),
        ("_ __ a", []),
        ("q" * 101, []),
    ],
)
def test_identifiers_count_whole_and_by_their_parts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text())
def test_any_text_has_words(text: str) -> None:
    found = words(text)
    assert all(isinstance(word, str) and word for word in found)
    assert words(text) == found
    stream, bounds = word_stream(module.IDENTIFIER.findall(text))
    assert stream.tolist() == hashes(found).tolist()
    assert bounds[-1] == len(stream)


def test_hashes_are_the_same_everywhere() -> None:
    assert hashes(["loss", "Größe"]).tolist() == [3195244311, 2792039863]
    code = "from epochzero.code.words import hashes; print(hashes(['loss', 'Größe']).tolist())"
    other = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": "7", "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert other.stdout.strip() == str(hashes(["loss", "Größe"]).tolist())


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=3)))
def test_a_bag_counts_every_word(found: list[str]) -> None:
    bag = Bag.of(found)
    assert bag.total == len(found) == int(bag.counts.sum())
    assert len(bag) == len(set(hashes(found).tolist()))
    assert (np.diff(bag.hashes.astype(np.int64)) > 0).all()
    assert bag.hashes.dtype == np.uint32
    assert bag.counts.dtype == np.uint16


def test_bags_cannot_be_changed_and_counts_do_not_wrap() -> None:
    bag = Bag.of(["a"] * 70_000)
    assert bag.counts.tolist() == [65_535]
    assert bag.total == 70_000
    for array in (bag.hashes, bag.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_phrases_are_what_a_message_and_its_log_have_in_common() -> None:
    message = set(phrases("expected all tensors on device %s").tolist())
    log = set(phrases("RuntimeError: Expected all tensors on device cuda:0").tolist())
    assert message <= log
    assert len(message) == 3
    assert phrases("two words").size == 0
    assert phrases("all expected tensors").tolist() != phrases("expected all tensors").tolist()


def test_names_are_hashed_exactly() -> None:
    found = name_hashes(["Loss", "loss", "Loss"])
    assert found.tolist() == sorted(hashes(["Loss", "loss"]).tolist())


def test_the_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMO_SIZE", 8)
    text = " ".join(f"word{n}x" for n in range(100))
    assert len(words(text)) == len(hashes(words(text))) == len(words(text))
    assert len(module._WORDS) <= 9


@given(st.lists(st.text(max_size=30)), st.data())
def test_a_list_of_bags_holds_the_bag_of_each_text(texts: list[str], data: st.DataObject) -> None:
    bags = BagList.of(texts)
    rows = data.draw(st.lists(st.integers(0, max(len(texts) - 1, 0)), max_size=4)) if texts else []
    taken = bags.joined(BagList.of(texts[:1])).take(np.array(rows, np.int64))
    for found, said in ((bags, texts), (taken, [texts[row] for row in rows])):
        assert len(found) == len(said)
        for n, text in enumerate(said):
            bag = Bag.of(words(text))
            row = slice(found.bounds[n], found.bounds[n + 1])
            assert found.hashes[row].tolist() == bag.hashes.tolist()
            assert found.counts[row].tolist() == bag.counts.tolist()
            assert found.totals[n] == bag.total
