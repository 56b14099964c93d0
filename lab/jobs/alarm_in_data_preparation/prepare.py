"""Deduplicate the corpus; gives up after a few seconds, because the queue charges by the hour."""
import random
import signal


class TimeLimit:
    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        signal.signal(signal.SIGALRM, self.expired)
        signal.alarm(self.seconds)

    def __exit__(self, *_):
        signal.alarm(0)

    def expired(self, signum, frame):
        raise TimeoutError(f"data preparation took more than {self.seconds} seconds")


def similarity(a, b):
    return len(a & b) / len(a | b)


def deduplicate(documents):
    kept = []
    for i, document in enumerate(documents):
        if all(similarity(document, other) < 0.9 for other in kept):
            kept.append(document)
        if i % 1000 == 0:
            print(f"{i}/{len(documents)} documents, {len(kept)} kept", flush=True)
    return kept


random.seed(0)
documents = [frozenset(random.choices(range(5000), k=30)) for _ in range(20000)]
with TimeLimit(4):
    print(len(deduplicate(documents)), "documents left")
