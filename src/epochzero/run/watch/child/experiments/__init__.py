"""Experiments on the running model: one iteration is recorded as operators and computed again with one thing changed.

tape         records the operators of one forward pass and loss, with their lines and layers
worlds       computes them again in several worlds, which differ in inputs, targets or parameters, and compares
dependence   which examples, targets and parameters the output and the loss depend on, and where that begins or ends
repair       whether the loss is lower with a suspected thing of inputs or targets corrected
step         whether the step that was taken lowers the loss of its own batch, and steps of other sizes
laboratory   decides when to experiment, and records the facts

Nothing of the job runs again: only operators of torch do, on copies of what they write to, with its random numbers. A
recording that does not give the loss of the job bit for bit is discarded.
"""
