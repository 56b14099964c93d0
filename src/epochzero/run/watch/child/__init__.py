"""Runs in the job, in the job's own Python: looks at the training and writes what it sees.

begin      when the job has imported torch or Keras
hooks      stands between the job and torch (keras_hooks: and Keras), and passes to the
observer   what the job does: what is made (made, models), forward calls and the loss (forward),
           backward passes and steps (backward). These ask the
scenes     which iteration or evaluation it is, and leave what they see there: scene for what is called,
           passes and losses for what goes back. Each is recorded at its end, as statistics
           (statistics, batches, structure), in
records    one JSON object a line.
schedule   says whether to look closer, safety whether to look at all: nothing that fails reaches the job

Only the standard library and torch (or Keras) are needed, Python 3.10 or newer. Nothing here draws random numbers,
writes to a tensor of the job, keeps one alive, or raises into the job.
"""
