"""Prometheus metrics of the service."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0, 3.0, 10.0)


class Metrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "epochzero_request_seconds",
            "Duration of requests in seconds.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.received = Counter(
            "epochzero_received_bytes",
            "Uncompressed bytes received from jobs.",
            ("what",),
            registry=self._registry,
        )
        self.diagnosed = Counter(
            "epochzero_diagnosed_jobs", "Logs diagnosed by this service.", registry=self._registry
        )
        self.taken = Counter(
            "epochzero_taken_records",
            "Records written to the store.",
            registry=self._registry,
        )
        self.failures = Counter(
            "epochzero_intake_failures",
            "Failed imports of received data into the store.",
            registry=self._registry,
        )
        self.waiting = Gauge(
            "epochzero_waiting_journals",
            "Journals with records that are not in the store yet.",
            registry=self._registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts a response; unknown paths are counted together."""
        self._seconds.labels(method, route or "other", f"{status // 100}xx").observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
