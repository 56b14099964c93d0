"""In which phase the names on a stack place a failure."""

from __future__ import annotations

import pytest

from epochzero.diagnose.phase import phase_of, ruled_phase
from epochzero.logs.traceback import Frame


def own(file: str, function: str, code: str = "") -> Frame:
    return Frame(f"/job/{file}", 1, function, code)


FORWARD = own("net.py", "forward", "return self.head(x)")


@pytest.mark.parametrize(
    ("stack", "phase"),
    [
        ([own("main.py", "evaluate"), FORWARD], "evaluation"),
        ([own("test.py", "<module>"), FORWARD], "evaluation"),
        ([own("main.py", "train_one_epoch"), FORWARD], "training"),
        ([own("main.py", "<module>"), FORWARD], "training"),
        ([own("main.py", "train", "state = torch.load(path)")], "initialization"),
        ([own("main.py", "fit_all", "trainer = Trainer(accelerator='gpu')")], "initialization"),
        ([own("main.py", "train", "Trainer(model=model).train()")], "training"),
        ([own("main.py", "evaluate", "model.load_state_dict(torch.load(best))")], "evaluation"),
        ([own("shards.py", "read_shard")], "preprocessing"),
    ],
)
def test_the_names_on_a_stack_decide(stack: list[Frame], phase: str) -> None:
    assert ruled_phase(stack, "illegal_argument", trained=True) == phase


@pytest.mark.parametrize(
    ("function", "phase"),
    [("load_shard", "preprocessing"), ("read_samples", "preprocessing"), ("load_checkpoint", "initialization")],
)  # fmt: skip
def test_the_name_of_a_function_says_what_it_loads(function: str, phase: str) -> None:
    stack = [
        own("train.py", "<module>", "main()"),
        own("train.py", function, "x = torch.load(path)"),
    ]
    assert phase_of(stack, "path_not_found", kind="FileNotFoundError", trained=False) == phase
