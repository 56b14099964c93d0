"""Data sets: what they are like, whether others are like them, and small ones that are.

`profile` learns what a file or folder of data is like. `validate` compares other data with a
profile. `synthesize` makes data that conform to a profile, and corner cases of them. `sample` draws
a small part that keeps the corner cases. A format is a file in ``formats``.
"""

from __future__ import annotations

from epochzero.data.comparison import DataFinding
from epochzero.data.items import Array, profile_items, validate_items
from epochzero.data.model import ColumnProfile, DataTable, Fault, Numbers, Profile, read_profile
from epochzero.data.profiling import profile
from epochzero.data.sampling import Sampled, sample
from epochzero.data.synthesis import CORNERS, REGULAR, synthesize
from epochzero.data.validation import Validated, validate

__all__ = [
    "CORNERS",
    "REGULAR",
    "Array",
    "ColumnProfile",
    "DataFinding",
    "DataTable",
    "Fault",
    "Numbers",
    "Profile",
    "Sampled",
    "Validated",
    "profile",
    "profile_items",
    "read_profile",
    "sample",
    "synthesize",
    "validate",
    "validate_items",
]
