"""A training step that survives out-of-memory. Runs in the job; the public names are in `epochzero.memory`.

`surviving` tries a step and knows what to do when it runs out: `plan` says in which order, `batches`
splits, `coupling` checks that splitting changes nothing, `checkpointing` and `moving` save memory,
`before` undoes a failed try, `ranks` keeps processes together, `remembered` is for the next run, and
`limit` makes a CPU run out as a GPU does.
"""
