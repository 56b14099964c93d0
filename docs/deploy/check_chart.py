"""Checks the Helm chart and writes what it makes with its default values to ``kubernetes.yaml``.

Run it after a change of the chart, with Python 3.12:

    pip install helm-python-sdk kubernetes-validate pyyaml
    python docs/deploy/check_chart.py [--unchanged]

With ``--unchanged`` a file that is out of date is an error. The packages contain Helm itself and the schemas of
Kubernetes, so that no cluster and no network is needed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml
from helm_python.chart import Chart, lint

DEPLOY = Path(__file__).parent
CHART = DEPLOY / "chart"
WRITTEN = DEPLOY / "kubernetes.yaml"
HEAD = "# Written by check_chart.py from the Helm chart, for those who use no Helm.\n"
VALUES: list[dict[str, Any]] = [
    {},
    {
        "storeSecret": "database",
        "accountsSecret": "accounts",
        "options": ["--private-webhooks"],
        "storageClass": "fast",
        "host": "epochzero.example.org",
        "ingressClass": "nginx",
        "tlsSecret": "certificate",
        "trustedProxies": [],
        "resources": {"limits": {"memory": "8Gi"}},
    },
    {"host": "epochzero.example.org", "trustedProxies": []},
]


def main() -> None:
    """Checks the chart with each set of values."""
    for values in VALUES:
        report = lint(CHART, values, strict=True)
        problems = [one for one in report["messages"] or [] if one["severity"] > 1]
        if report["errors"] or problems:
            sys.exit(f"{values}: {report}")
        for document in yaml.safe_load_all(rendered(values)):
            kubernetes_validate.validate(document, "1.30", strict=True)
    text = HEAD + rendered({})
    if "--unchanged" in sys.argv and WRITTEN.read_text("utf-8") != text:
        sys.exit(f"{WRITTEN} is out of date: run {Path(__file__).name}")
    WRITTEN.write_text(text, "utf-8")


def rendered(values: dict[str, Any]) -> str:
    """The manifests, in the order of their files."""
    made = Chart.load(CHART).render(values, name="epochzero", namespace="default")
    texts = (text.strip() for name, text in sorted(made.items()) if name.endswith(".yaml"))
    return "\n---\n".join(text for text in texts if text) + "\n"


if __name__ == "__main__":
    main()
