"""Lines that announce a task, and lines that only contain its name."""

import pytest

from epochzero.logs.announcements import announced, last_announced


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        ("Starting training step on epoch 3", "training"),
        ("***** Running training *****", "training"),
        ("[2/4] Fine-tuning on 3 GPUs", "training"),
        ("INFO Start evaluation", "evaluation"),
        ("Running inference on 500 samples", "evaluation"),
        ("Computing the BLEU scores", "evaluation"),
        ("Tokenizing 10000 texts", "preprocessing"),
        ("Building vocabulary", "preprocessing"),
        ("Training loss: 0.31", ""),
        ("Training finished", ""),
        ("test set: 500 images", ""),
        ("training_batch_size = 3", ""),
        ("Test accuracy 0.93", ""),
        ("inference ....................... False", ""),
    ],
)
def test_what_a_line_announces(text: str, phase: str) -> None:
    assert announced(text) == phase


def test_the_last_announcement_counts() -> None:
    assert last_announced(["Start training", "Running inference ...", "x = 3"]) == "evaluation"
    assert last_announced(["x = 3"]) == ""
