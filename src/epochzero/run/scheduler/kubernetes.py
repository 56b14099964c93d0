"""Kubernetes, asked through its API by the pod's own account: why the pod ends, of a Job or a TrainJob.

The account needs the right to read pods and jobs (``docs/run.md``); without it nothing is known. Sources: Kubernetes
documentation, Pod conditions (DisruptionTarget), Jobs (activeDeadlineSeconds, suspend, FailureTarget, SuccessCriteriaMet,
indexed Jobs), field selectors; Kubeflow Trainer, TrainJob.
"""

from __future__ import annotations

import platform
import socket
import ssl
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from epochzero.http_client import request
from epochzero.run.scheduler import SchedulerAllocation

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 5.0
_MOST_BYTES = 4 << 20
# Reasons of the condition DisruptionTarget, and of status.reason -> states in the words of Slurm.
_STATES = {
    "PreemptionByScheduler": "PREEMPTED", "Preempting": "PREEMPTED", "EvictionByEvictionAPI": "PREEMPTED",
    "DeletionByTaintManager": "NODE_FAIL", "DeletionByPodGC": "NODE_FAIL", "NodeLost": "NODE_FAIL",
    "TerminationByKubelet": "PREEMPTED", "Evicted": "NODE_FAIL", "DeadlineExceeded": "TIMEOUT",
    "NodeShutdown": "NODE_FAIL", "Terminated": "NODE_FAIL",
    # Of a Job that ends its other pods since one of them failed.
    "BackoffLimitExceeded": "FAILED", "PodFailurePolicy": "FAILED", "FailedIndexes": "FAILED",
    "MaxFailedIndexesExceeded": "FAILED",
    # Of a Job with a success policy, which ends the others.
    "SuccessPolicy": "COMPLETED", "CompletionsReached": "COMPLETED",
}  # fmt: skip
_JOB_CONDITIONS = ("Failed", "FailureTarget", "SuccessCriteriaMet")
"""The last two are set before the pods are terminated."""


def allocation(variables: Mapping[str, str]) -> SchedulerAllocation | None:
    """See `epochzero.run.scheduler.allocation_of`."""
    namespace = _text("namespace")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = _get(variables, f"{pods}/{platform.node()}")
    if not pod:
        # The host name of a pod of an indexed Job, such as a TrainJob's, lacks the end of the pod's name.
        found = _get(variables, f"{pods}?fieldSelector=status.podIP%3D{_own_address(variables)}")
        own = [
            pod
            for pod in found.get("items") or ()
            if pod["spec"].get("hostname") == platform.node()
        ]
        pod = own[0] if own else {}
    if not pod:
        return None
    owners = pod.get("metadata", {}).get("ownerReferences") or []
    name = next((owner["name"] for owner in owners if owner.get("kind") == "Job"), "")
    job = _get(variables, f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}") if name else {}
    return parse_pod(pod, job, datetime.now(UTC))


def parse_pod(pod: Mapping[str, Any], job: Mapping[str, Any], now: datetime) -> SchedulerAllocation:
    """The allocation that a pod has.

    Args:
        pod: in its JSON form.
        job: the Job that owns it, which a TrainJob or a JobSet has made; empty for none.
        now: time in UTC.
    """
    metadata, status = pod.get("metadata", {}), pod.get("status", {})
    ends = bool(metadata.get("deletionTimestamp")) or status.get("phase") in ("Failed", "Succeeded")
    reasons = [status.get("reason", "")]
    reasons += [c.get("reason", "") for c in _conditions(status, "DisruptionTarget")]
    of_job = job.get("status", {})
    reasons += [c.get("reason", "") for kind in _JOB_CONDITIONS for c in _conditions(of_job, kind)]
    state = next((_STATES[reason] for reason in reasons if reason in _STATES), "")
    if "memory" in status.get("message", "") and state == "NODE_FAIL":
        state = "OUT_OF_MEMORY"
    left = _seconds_left(job, now)
    if not state and not ends:
        return SchedulerAllocation("RUNNING", True, False, left)
    if not state and left is not None and left <= 0:
        state = "TIMEOUT"
    # A Job that is suspended deletes its pods and makes others when it continues: a queue such as Kueue does that.
    if not state and job.get("spec", {}).get("suspend"):
        state = "REQUEUED"
    state = state or "CANCELLED"
    return SchedulerAllocation(state, False, state == "CANCELLED", left)


def _conditions(status: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    found = status.get("conditions") or []
    return [c for c in found if c.get("type") == kind and c.get("status") == "True"]


def _seconds_left(job: Mapping[str, Any], now: datetime) -> float | None:
    limit = job.get("spec", {}).get("activeDeadlineSeconds")
    with suppress(ValueError, KeyError, TypeError):
        started = datetime.fromisoformat(job["status"]["startTime"].replace("Z", "+00:00"))
        return float(limit) - (now - started).total_seconds() if limit is not None else None
    return None


def _get(variables: Mapping[str, str], path: str) -> Mapping[str, Any]:
    """An object of the API; empty if the account may not read it, or the API does not answer."""
    token = _text("token")
    host, port = (
        variables["KUBERNETES_SERVICE_HOST"],
        variables.get("KUBERNETES_SERVICE_PORT", "443"),
    )
    address = f"[{host}]" if ":" in host else host
    if not token:
        return {}
    with suppress(OSError, ValueError):
        context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        response = request(
            "GET",
            f"https://{address}:{port}{path}",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=_SECONDS,
            most=_MOST_BYTES,
            handlers=(urllib.request.HTTPSHandler(context=context),),
        )
        found = response.json() if response.succeeded else {}
        return found if isinstance(found, dict) else {}
    return {}


def _own_address(variables: Mapping[str, str]) -> str:
    """The address of this pod, from which it reaches the API; empty if it reaches nothing. Nothing is sent."""
    with suppress(OSError):
        host = variables["KUBERNETES_SERVICE_HOST"]
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 443))
            return str(probe.getsockname()[0])
    return ""


def _text(name: str) -> str:
    with suppress(OSError):
        return (_ACCOUNT / name).read_text("utf-8").strip()
    return ""
