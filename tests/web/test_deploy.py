"""The files for operators fit the service: metrics, options, paths, extras."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import click
import yaml

from epochzero.cli.serve import command
from epochzero.web.metrics import Metrics
from tests.web.conftest import Served

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
METRICS = {
    "epochzero_request_seconds_bucket", "epochzero_request_seconds_count",
    "epochzero_request_seconds_sum", "epochzero_received_bytes_total",
    "epochzero_diagnosed_jobs_total", "epochzero_taken_records_total",
    "epochzero_intake_failures_total", "epochzero_waiting_journals",
}  # fmt: skip
"""Dashboards and alerts refer to these names: they must not change."""


def metric_names() -> set[str]:
    metrics = Metrics()
    metrics.answered("GET", "/", 200, 0.1)
    metrics.received.labels("log").inc()
    found = re.findall(r"^(epochzero_\w+)[{ ]", metrics.text().decode(), re.MULTILINE)
    return {name for name in found if not name.endswith("_created")}


def test_the_names_of_metrics_are_stable() -> None:
    assert metric_names() == METRICS


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    dashboard = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"epochzero_\w+", target["expr"])
    }
    assert asked <= METRICS
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def _options() -> set[str]:
    return {
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
    }


def test_the_image_starts_the_server_with_options_and_extras_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    entry = re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    extras = re.search(r"epochzero\[([\w,]+)\]", text)
    assert entry is not None
    assert extras is not None
    words = json.loads(entry[1])
    assert words[:2] == ["epochzero", "serve"]
    assert {word for word in words if word.startswith("--")} <= _options()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])


def test_the_pod_asks_for_paths_and_options_that_exist(served: Served) -> None:
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    kinds = {one["kind"]: one for one in yaml.safe_load_all(text)}
    pod = kinds["Deployment"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    assert {word for word in container["args"] if word.startswith("--")} <= _options()
    for probe in ("livenessProbe", "readinessProbe"):
        assert served.client.get(container[probe]["httpGet"]["path"]).status_code == 200
    assert pod["metadata"]["labels"] == kinds["Service"]["spec"]["selector"]
    claim = pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claim == kinds["PersistentVolumeClaim"]["metadata"]["name"]


def test_the_chart_passes_options_that_exist() -> None:
    """`docs/deploy/check_chart.py` renders it with Helm itself, which needs a package of 75 MB."""
    template = (DEPLOY / "chart" / "templates" / "server.yaml").read_text(encoding="utf-8")
    options = re.findall(r"^ +- (--[\w-]+)$", template, re.MULTILINE)
    assert len(options) == 3
    assert set(options) <= _options()
    chart = yaml.safe_load((DEPLOY / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["appVersion"] == project["version"]
