"""Whether a failed job is started again: policies as data, budgets, advice for schedulers."""

from epochzero.run.retry.decide import PastAttempt, decide
from epochzero.run.retry.policy import Policy, load_policy
from epochzero.run.retry.there_now import there_now
from epochzero.run.retry.unseeded import unseeded

__all__ = ["PastAttempt", "Policy", "decide", "load_policy", "there_now", "unseeded"]
