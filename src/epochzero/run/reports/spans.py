"""OpenTelemetry spans of a job and of its attempts.

The span of an attempt is the parent of the job's own spans: its context is in TRACEPARENT (W3C Trace Context). A
TRACEPARENT of the environment is the parent of the job's span. Attributes follow the semantic conventions of
OpenTelemetry where there are any, and else begin with ``epochzero.``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.run.records.model import Decision, End, Start

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Span, Tracer

    from epochzero.diagnose import Diagnosis

_log = logging.getLogger("epochzero")
_TIMEOUTS = {"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"}
_TIMEOUT_S = 2.0
"""In place of 10 s, the default of the exporter: the exit of the job waits for it."""


class JobSpans:
    """The spans of one job.

    The global tracer provider is used if the program has set one; otherwise spans are sent over OTLP as the variables
    OTEL_EXPORTER_OTLP_* say.

    Raises:
        InputError: the extra ``opentelemetry`` is not installed.
    """

    def __init__(self, started: Start, environment: Mapping[str, str]) -> None:
        try:
            from opentelemetry.trace.propagation import tracecontext

            self._tracer = _tracer(environment)
        except ImportError as error:
            raise InputError(
                f"OpenTelemetry is not installed ({error.name}): pip install 'epochzero[opentelemetry]'"
            ) from error
        self._propagator = tracecontext.TraceContextTextMapPropagator()
        parent = {name.lower(): text for name, text in environment.items() if _is_context(name)}
        self._job: Span = self._tracer.start_span(
            f"job {started.name}",
            context=self._propagator.extract(parent),
            attributes=_attributes(started),
        )
        self._attempt: Span = self._job

    def start(self, started: Start) -> Mapping[str, str]:
        """Start the span of an attempt; returns the variables with its context."""
        from opentelemetry.trace import set_span_in_context

        attributes = {**_attributes(started), "epochzero.attempt": started.attempt}
        self._attempt = self._tracer.start_span(
            f"attempt {started.attempt}",
            context=set_span_in_context(self._job),
            attributes=attributes,
        )
        context: dict[str, str] = {}
        self._propagator.inject(context, set_span_in_context(self._attempt))
        return {name.upper(): text for name, text in context.items()}

    def end(self, ended: End, diagnosis: Diagnosis | None, decision: Decision | None) -> None:
        """End the span of an attempt with its diagnosis and the decision about a retry."""
        _end(self._attempt, ended, diagnosis, decision)

    def close(self, ended: End, diagnosis: Diagnosis | None, decision: Decision | None) -> None:
        """End the span of the job, which failed if its last attempt did."""
        _end(self._job, ended, diagnosis, decision)


def _tracer(environment: Mapping[str, str]) -> Tracer:
    from opentelemetry import trace

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return trace.get_tracer("epochzero")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

    class Exporter(OTLPSpanExporter):
        """Reports a collector that does not answer once, and does not wait for it again."""

        failed = False

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            if self.failed:
                return SpanExportResult.FAILURE
            result = super().export(spans)
            if result is not SpanExportResult.SUCCESS:
                self.failed = True
                _log.warning("epochzero: OpenTelemetry spans could not be exported")
            return result

    logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)
    timeout = None if _TIMEOUTS & environment.keys() else _TIMEOUT_S
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have precedence.
    defaults = Resource({"service.name": "epochzero"})
    provider = TracerProvider(resource=defaults.merge(Resource.create()))
    # Without a thread: the supervisor forks, and a job has few spans.
    provider.add_span_processor(SimpleSpanProcessor(Exporter(timeout=timeout)))
    return provider.get_tracer("epochzero")


def _is_context(name: str) -> bool:
    return name in ("TRACEPARENT", "TRACESTATE")


def _attributes(started: Start) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "epochzero.job": started.job,
        "process.command": started.command[0] if started.command else "",
        "process.working_directory": started.folder,
        "host.name": started.host,
        "epochzero.gpus": started.gpus,
    }
    if started.rank is not None:
        attributes["epochzero.rank"] = started.rank
    return attributes


def _end(span: Span, ended: End, diagnosis: Diagnosis | None, decision: Decision | None) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("process.exit.code", ended.exit_code)
    if ended.exit_code:
        title = (diagnosis.title or diagnosis.category) if diagnosis is not None else ended.why
        span.set_status(Status(StatusCode.ERROR, title))
    if diagnosis is not None:
        span.set_attribute("error.type", diagnosis.category)
        span.set_attribute("epochzero.fingerprint", diagnosis.fingerprint)
    if decision is not None:
        span.set_attribute("epochzero.retry", decision.action)
    span.end()
