"""Whether a failed job is started again: policies as data, budgets, advice for schedulers."""

from epochzero.run.retry.decide import PastAttempt, decide
from epochzero.run.retry.history import EndedAttempt, Precedents, code_of, program_of, remember
from epochzero.run.retry.policy import Policy, load_policy
from epochzero.run.retry.shared_storage import local_files, shared_resource, shared_storage
from epochzero.run.retry.subject import subject
from epochzero.run.retry.there_now import there_now
from epochzero.run.retry.unseeded import unseeded
