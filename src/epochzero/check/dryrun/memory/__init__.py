"""How much GPU memory a job takes, from the allocations of its dry run.

`trace` reads what the child process wrote, `allocator` is torch's caching allocator, `replay` runs the
one in the other, `estimate` says what it means for a GPU, `fit` answers the inverse questions, and
`picture` draws it.
"""
