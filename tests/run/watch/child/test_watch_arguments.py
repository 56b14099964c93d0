"""What of a job's command line comes into the records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.run.watch.child.arguments import HIDDEN, MOST_WORDS, arguments


@pytest.mark.parametrize(
    ("given_words", "kept"),
    [
        ("train.py --lr 10 --optimizer adam", "--lr 10 --optimizer adam"),
        ("train.py --lr=1e-3 -b 32 --betas 0.9,0.99", "--lr 1e-3 -b 32 --betas 0.9,0.99"),
        ("train.py --shift -0.5 --amp", "--shift -0.5 --amp"),
        ("train.py --max-tokens 512", "--max-tokens 512"),
        ("train.py --api-key 12345 --lr 1", f"--api-key {HIDDEN} --lr 1"),
        ("train.py --password=hunter", f"--password {HIDDEN}"),
        ("train.py --data /home/ann/x", f"--data {HIDDEN}"),
        ("train.py hf_abcdefABCDEF0123456789", HIDDEN),
        ("train.py db=postgres://ann:pw@host/x", HIDDEN),
        ("", ""),
    ],
)
def test_numbers_and_plain_words_are_kept_and_nothing_else(given_words: str, kept: str) -> None:
    assert arguments(given_words.split()) == kept.split()


@given(st.lists(st.text(max_size=200), max_size=2 * MOST_WORDS))
def test_whatever_the_words_are_there_are_few_and_short_ones(words: list[str]) -> None:
    told = arguments(words)
    assert len(told) <= 2 * MOST_WORDS
    assert all(len(word) <= 64 for word in told)
