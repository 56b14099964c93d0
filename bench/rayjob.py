"""The RayJob manifest of the guide, checked against the schema that KubeRay publishes.

A Kubernetes API server adds the schema's defaults before it validates, as here, and drops fields that the schema does
not have, which are listed here. The schema is read from a clone
and is not part of the repository.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from common import REPOSITORY, save

CRD = "ray-operator/config/crd/bases/ray.io_rayjobs.yaml"
KNOWN = {"apiVersion", "kind", "metadata"}
"""These fields have their own schema, which every Kubernetes object shares."""


def main() -> None:
    """Checks, prints, and saves the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kuberay", type=Path, help="a clone of ray-project/kuberay, with or without a work tree"
    )
    clone = parser.parse_args().kuberay
    commit = _git(clone, "rev-parse", "HEAD").strip()
    versions = yaml.load(_git(clone, "show", f"HEAD:{CRD}"), yaml.CSafeLoader)["spec"]["versions"]
    schemas = {each["name"]: each["schema"]["openAPIV3Schema"] for each in versions}
    guide = (REPOSITORY / "docs" / "scale.md").read_text(encoding="utf-8")
    (manifest,) = (
        yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    )
    schema = schemas[manifest["apiVersion"].partition("/")[2]]
    errors = [
        f"{error.json_path}: {error.message}"
        for error in jsonschema.Draft202012Validator(schema).iter_errors(
            _with_defaults(manifest, schema)
        )
    ]
    fields = {path: known for path, known in _fields(manifest, schema, "") if path[1:] not in KNOWN}
    unknown = [path for path, known in fields.items() if not known]
    numbers = {
        "fields": len(fields),
        "unknown_fields": len(unknown),
        "errors": len(errors),
        "messages": [*unknown, *errors],
    }
    print(numbers)
    save("rayjob", numbers, rivals={"kuberay": commit})


def _git(clone: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(clone), *words], check=True, capture_output=True, text=True
    ).stdout


def _fields(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, bool]]:
    """Each field below a value, and whether the schema has it."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _fields(item, schema.get("items", {}), f"{path}[{number}]")
    elif isinstance(value, dict):
        rest = schema.get("additionalProperties")
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, rest)
            yield f"{path}.{name}", inner is not None
            if inner is not None and path + name not in KNOWN:
                yield from _fields(item, inner, f"{path}.{name}")


def _with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_with_defaults(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    added = {name: inner["default"] for name, inner in known.items() if "default" in inner}
    return added | {name: _with_defaults(item, known.get(name, {})) for name, item in value.items()}


if __name__ == "__main__":
    main()
