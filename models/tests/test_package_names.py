"""The public names of the package, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys


def test_a_module_that_shares_its_name_with_a_function_gives_the_function() -> None:
    code = """
import epochzero_models.dissect.validity, epochzero_models
from epochzero_models import dissect, evaluate
assert callable(dissect) and callable(evaluate)
assert epochzero_models.dissect is dissect
assert dir(epochzero_models.mutate)
"""
    subprocess.run([sys.executable, "-c", f"import epochzero_models.mutate\n{code}"], check=True)


def test_mutants_need_no_torch() -> None:
    code = (
        "import epochzero_models.mutate, epochzero_models.cli, sys; print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
