"""What the service counts of itself, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0, 3.0, 10.0)


class Metrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "epochzero_request_seconds",
            "How long requests took.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.received = Counter(
            "epochzero_received_bytes",
            "What jobs sent, without compression.",
            ("what",),
            registry=self._registry,
        )
        self.diagnosed = Counter(
            "epochzero_diagnosed_jobs", "Logs that were diagnosed here.", registry=self._registry
        )
        self.taken = Counter(
            "epochzero_taken_records",
            "Records that were taken into the store.",
            registry=self._registry,
        )
        self.failures = Counter(
            "epochzero_intake_failures",
            "Times that what was received could not be taken into the store.",
            registry=self._registry,
        )
        self.waiting = Gauge(
            "epochzero_waiting_journals",
            "Journals with something that is not in the store yet.",
            registry=self._registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered; paths that are none of ours are counted together."""
        self._seconds.labels(method, route or "other", f"{status // 100}xx").observe(seconds)

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)
