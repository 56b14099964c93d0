"""Individual discrimination by classifiers of tables: inputs whose class changes if only a protected attribute
changes.

ADF (Zhang et al., ICSE 2020) searches for such inputs along gradients, AEQUITAS (Udeshi, Arora and Chattopadhyay, ASE
2018) by a directed walk, random search at random; all three use the same budget and the same check.
"""

from __future__ import annotations

from epochzero_models.fairness.domain import Attribute, Domain
from epochzero_models.fairness.measurement import Fairness, measure_fairness
from epochzero_models.fairness.network import train_network
from epochzero_models.fairness.search import SearchBudget
from epochzero_models.fairness.table import PeopleTable, load_people
