"""Which line of the user's source made a layer or set a value.

Each function begins at a line that was recorded while the job ran, and follows the source from there, as far as
`program` can; else it stays at that line. What was changed since the job started may have other lines.

program    a parsed file, and what was before a value
settings   where the value of a setting was written
options    which option of the command line gave it
training   the loop and its evaluations
loss       the loss
contracts  what each statement of a training loop must do
direction  whether what is minimized should be
layers     activations, first values, precision, what is frozen
data       inputs and labels, back to where they came from
"""
