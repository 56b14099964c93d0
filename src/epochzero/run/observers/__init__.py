"""What observes an attempt while it runs, one module for each question; none depends on another's state.

Modules in `child` run in the job's own process.
"""
