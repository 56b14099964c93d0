"""Individual discrimination of classifiers of tables: who would be judged otherwise, were only a protected
attribute another?

ADF (Zhang et al., ICSE 2020) finds such inputs along gradients, AEQUITAS (Udeshi, Arora and Chattopadhyay, ASE
2018) by a directed walk, random search by chance; all three run for the same time with the same check.
"""

from __future__ import annotations

from epochzero_models.fairness.domain import Attribute, Domain
from epochzero_models.fairness.measurement import Fairness, measure_fairness
from epochzero_models.fairness.network import train_network
from epochzero_models.fairness.search import Budget
from epochzero_models.fairness.synthetic import Synthetic, synthesize_discrimination
from epochzero_models.fairness.table import PeopleTable, load_people

__all__ = [
    "Attribute",
    "Budget",
    "Domain",
    "Fairness",
    "PeopleTable",
    "Synthetic",
    "load_people",
    "measure_fairness",
    "synthesize_discrimination",
    "train_network",
]
