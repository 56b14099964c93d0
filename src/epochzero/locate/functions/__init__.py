"""From files to functions: which functions of the ranked files hold the bug.

`table` knows the functions of a corpus; `context` compares them with a report and guesses by weights
set by hand; `features` has named numbers for the likeliest of them; `ranker` weighs these by trees
that were trained to rank. Files are not cut off at some rank: a function that fits very well can win
against the best file. Classes are not ranked; their methods are.
"""

from __future__ import annotations

from epochzero.locate.functions.ranker import Functions
