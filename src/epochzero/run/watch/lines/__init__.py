"""Which line of the user's source made a layer or set a value.

Each function begins at a line that was recorded while the job ran, and follows the source from there, as far as
`program` can; else it stays at that line. What was changed since the job started may have other lines.

program    a parsed file, and what was before a value
settings   where the value of a setting was written
options    which option of the command line gave it
training   the loop and its evaluations
loss       the loss
reading    names and orders that contradict each other
direction  whether what is minimized should be
layers     activations, first values, precision, what is frozen
data       inputs and labels, back to where they came from
"""

from __future__ import annotations

from epochzero.run.watch.lines.contracts import (
    CONTRACTS,
    bootstrapped_place,
    reordered,
    uncleared,
    violations,
)
from epochzero.run.watch.lines.data import (
    classes_place,
    drawn_place,
    duplication_place,
    input_place,
    label_place,
    mask_place,
    noise_place,
    order_place,
    preprocessing_place,
    size_place,
    split_place,
    target_place,
)
from epochzero.run.watch.lines.direction import minimized_terms
from epochzero.run.watch.lines.layers import (
    activation_place,
    blending_place,
    call_place,
    copy_place,
    cut_place,
    frozen_place,
    ignores_an_argument,
    initialization_place,
    omission_place,
    output_place,
    precision_place,
    replaced_place,
    wrapping_place,
)
from epochzero.run.watch.lines.loss import (
    difference_place,
    loss_place,
    own_loss_place,
    penalty_place,
)
from epochzero.run.watch.lines.settings import (
    clipping_place,
    decay_place,
    is_stepped,
    place_of,
    schedule_place,
    setting_place,
    warmup_place,
    width_place,
)
from epochzero.run.watch.lines.training import (
    backward_place,
    batch_size_place,
    epochs_place,
    evaluation_place,
    loop_place,
    step_place,
)

__all__ = [
    "CONTRACTS",
    "activation_place",
    "backward_place",
    "batch_size_place",
    "blending_place",
    "bootstrapped_place",
    "call_place",
    "classes_place",
    "clipping_place",
    "copy_place",
    "cut_place",
    "decay_place",
    "difference_place",
    "drawn_place",
    "duplication_place",
    "epochs_place",
    "evaluation_place",
    "frozen_place",
    "ignores_an_argument",
    "initialization_place",
    "input_place",
    "is_stepped",
    "label_place",
    "loop_place",
    "loss_place",
    "mask_place",
    "minimized_terms",
    "noise_place",
    "omission_place",
    "order_place",
    "output_place",
    "own_loss_place",
    "penalty_place",
    "place_of",
    "precision_place",
    "preprocessing_place",
    "reordered",
    "replaced_place",
    "schedule_place",
    "setting_place",
    "size_place",
    "split_place",
    "step_place",
    "target_place",
    "uncleared",
    "violations",
    "warmup_place",
    "width_place",
    "wrapping_place",
]
