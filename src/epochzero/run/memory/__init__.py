"""A training step that survives out-of-memory errors. Runs in the job; public names are in `epochzero.memory`.

oom_recovery             tries a step and decides what to do when memory runs out
plan                     the order of measures
batches                  split a batch into micro-batches
coupling                 check that splitting changes nothing
checkpointing, offload   save memory
before                   undo a failed try
ranks                    keep the processes of a job in step
plan_store               the plan for the next run
limit                    make a CPU run out of memory as a GPU does
"""
