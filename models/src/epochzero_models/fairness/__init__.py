"""Individual discrimination by classifiers of tables: inputs whose class changes if only a protected attribute
changes.

The guided search joins ideas of ADF (Zhang et al., ICSE 2020) and AEQUITAS (Udeshi, Arora and Chattopadhyay, ASE 2018).
Random search has the same budget and the same check.
"""

from __future__ import annotations

from epochzero_models.fairness.domain import Attribute, Domain
from epochzero_models.fairness.measurement import Fairness, measure_fairness
from epochzero_models.fairness.network import train_network
from epochzero_models.fairness.search import SearchBudget
from epochzero_models.fairness.table import PeopleTable, load_people
