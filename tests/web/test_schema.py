"""Any request that OpenAPI allows is answered: Schemathesis asks them of a service that runs."""

from __future__ import annotations

from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, given, settings

from tests.web.test_serving import Serving


def test_no_request_breaks_the_service(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    bearer = {"Authorization": f"Bearer {serving.to.token}"}
    schema = schemathesis.openapi.from_url(f"{serving.to.url}/api/v1/openapi.json").exclude(
        path_regex="bulk$"
    )
    try:
        for found in schema.get_all_operations():
            operation = found.ok()

            @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy())
            def ask(case: schemathesis.Case) -> None:
                answer = case.call(headers=bearer)
                assert answer.status_code < 500, f"{case.method} {case.path}: {answer.text}"

            ask()
    finally:
        serving.kill()
