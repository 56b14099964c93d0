"""The API is what OpenAPI says: Schemathesis asks a service that runs, and a client tries every method."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.conftest import Served
from tests.web.test_serving import Serving

NDJSON = [b'{"log": "KeyError: 1"}\n{"log": "", "name": "x"}', b"{}", b"[]\n\n", b"\xff\x00", b""]


def test_no_request_breaks_the_service_and_each_answer_is_documented(tmp_path: Path) -> None:
    import schemathesis  # takes 0.7 s, and every process of pytest-xdist imports every test file
    from schemathesis.checks import load_all_checks
    from schemathesis.specs.openapi import checks

    load_all_checks()
    expected = [
        checks.status_code_conformance, checks.content_type_conformance,
        checks.response_schema_conformance, schemathesis.checks.not_a_server_error,
    ]  # fmt: skip
    schemathesis.openapi.media_type("application/x-ndjson", st.sampled_from(NDJSON))
    serving = Serving(tmp_path)
    bearer = {"Authorization": f"Bearer {serving.to.token}"}
    schema = schemathesis.openapi.from_url(f"{serving.to.url}/api/v1/openapi.json")
    try:
        for found in schema.get_all_operations():
            operation = found.ok()

            @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy())
            def ask(case: schemathesis.Case) -> None:
                if case.method == "DELETE" and case.path == "/api/v1/tokens/{identity}":
                    # Its own token is the only one with a small number.
                    identity = case.path_parameters.get("identity")
                    case.path_parameters["identity"] = (
                        max(2, identity) if isinstance(identity, int) else 2
                    )
                # The first log waits for signatures.
                answer = case.call(headers=bearer, timeout=60)
                case.validate_response(answer, checks=expected)

            ask()
    finally:
        serving.kill()


def test_a_method_that_is_not_supported_is_answered_with_all_that_are(served: Served) -> None:
    who = served.token()
    for path, methods in (
        ("/api/v1/tokens", "GET, POST"), ("/api/v1/jobs/x", "DELETE, GET"),
        ("/api/v1/fingerprints/x", "GET, PATCH"), ("/login", "GET, POST"), ("/api/v1/audit", "GET"),
    ):  # fmt: skip
        answer = served.client.put(path, headers=who)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)
