"""Losses: how the shapes of what a model gives and of what it should give must fit.

Source: PyTorch documentation, torch.nn, section Loss Functions; the messages are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from epochzero.check.program.tensors.values import Misfit, Shape, broadcast, differ, shown


def _of_classes(scores: Shape, labels: Shape) -> None:
    """Scores ``[N, C, ...]`` want labels ``[N, ...]``, or probabilities of the same shape."""
    rank = len(scores)
    if rank < 2 or (len(labels) == rank and not any(map(differ, scores, labels))):
        return
    if labels and differ(scores[0], labels[0]):
        said = f"Expected input batch_size ({scores[0]}) to match target batch_size ({labels[0]})."
        raise _misfit(scores, labels, said, ValueError)
    if rank > 2 and len(labels) == rank - 1 and any(map(differ, scores[2:], labels[1:])):
        said = f"Expected target size {shown((scores[0], *scores[2:]))}, got {shown(labels)}"
        raise _misfit(scores, labels, said, RuntimeError)
    if rank == 2 and len(labels) == 2 and labels[1] == 1:
        said = "0D or 1D target tensor expected, multi-target not supported"
        raise _misfit(scores, labels, said, RuntimeError)


def _alike(scores: Shape, wanted: Shape) -> None:
    if len(scores) != len(wanted) or any(map(differ, scores, wanted)):
        said = (
            f"Using a target size (torch.Size({shown(wanted)})) that is different to the input "
            f"size (torch.Size({shown(scores)}))"
        )
        raise _misfit(scores, wanted, said, ValueError)


def _combined(scores: Shape, wanted: Shape) -> None:
    broadcast(scores, wanted)


def _misfit(scores: Shape, wanted: Shape, said: str, error: type[Exception]) -> Misfit:
    return Misfit(
        said,
        f"The loss is given {shown(scores)} to compare with {shown(wanted)}.",
        "Bring both into the shapes that the loss takes, with squeeze or view.",
        error,
    )


LOSSES: Mapping[str, Callable[[Shape, Shape], None]] = {
    **dict.fromkeys(("CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss"), _of_classes),
    **dict.fromkeys(("BCELoss", "binary_cross_entropy"), _alike),
    **dict.fromkeys(("BCEWithLogitsLoss", "binary_cross_entropy_with_logits"), _alike),
    **dict.fromkeys(("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"), _combined),
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"), _combined),
}
"""What losses refuse, by their names in `torch.nn` and `torch.nn.functional`."""
