"""In which phase the names on a stack place a failure."""

from __future__ import annotations

import pytest

from epochzero.diagnose import Diagnoser
from epochzero.diagnose.phase import phase_of, ruled_phase
from epochzero.logs.source import Log
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


READS = [
    own("main.py", "train_stage", "w = data.weights()"),
    own("set.py", "__getitem__"),
    own("set.py", "_crop"),
]
BATCH = Frame("/env/site-packages/transformers/tokenization_utils_base.py", 9, "__getitem__")
VALIDATES = [
    own("main.py", "train"),
    own("main.py", "_train_epoch"),
    own("eval.py", "eval"),
    own("g.py", "infer"),
]


@pytest.mark.parametrize(
    ("stack", "phase"),
    [
        (READS, "preprocessing"),
        ([own("main.py", "train"), own("main.py", "step", "loss = net(batch)"), BATCH], "training"),
        ([own("main.py", "train", "trainer.test(net)"), own("net.py", "test_step")], "evaluation"),
        (VALIDATES, "training"),
        ([own("run_infer_wrap.py", "<module>"), FORWARD], "evaluation"),
    ],
)
def test_who_called_whom_decides_by_the_definitions(stack: list[Frame], phase: str) -> None:
    assert phase_of(stack, "type_mismatch", work=frozenset()) == phase


@pytest.mark.parametrize(
    ("function", "phase"),
    [("load_shard", "preprocessing"), ("read_samples", "preprocessing"), ("load_checkpoint", "initialization")],
)  # fmt: skip
def test_the_name_of_a_function_says_what_it_loads(function: str, phase: str) -> None:
    stack = [
        own("train.py", "<module>", "main()"),
        own("train.py", function, "x = torch.load(path)"),
    ]
    assert phase_of(stack, "path_not_found", kind="FileNotFoundError", work=frozenset()) == phase


def bars(label: str) -> str:
    return "".join(
        f"{label}: {n}%|{'#' * (n // 10)}| {n}/100 [00:0{n // 20}<00:01, 9.1it/s]\n" for n in range(9, 99, 9)
    )  # fmt: skip


DIED = "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT 2026-05-01T12:00:00 ***\n"


@pytest.mark.parametrize(
    ("before", "work"),
    [
        (bars("Loading checkpoint shards"), set()),
        (bars("Generating train split"), set()),
        (bars("Epoch 3"), {"training"}),
        ("".join(f"step {n} | loss 2.5{n}\n" for n in range(9)), {"training"}),
        ('INFO: 127.0.0.1:4000 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 9, {"serving"}),
    ],
)
def test_what_a_job_did_before_its_failure(before: str, work: set[str]) -> None:
    (event, *_) = Diagnoser().read(Log("train.log", text=(before + DIED).encode())).events
    assert event.work == work


@pytest.mark.parametrize(("work", "phase"), [(set(), "preprocessing"), ({"training"}, "training")])
def test_a_signal_while_data_are_read_belongs_to_training_once_the_loop_has_begun(
    work: set[str], phase: str
) -> None:
    library = "/x/site-packages/torchtext/data/"
    stack = [
        own("main.py", "<module>", "run_toy_transformer_config(args)"),
        own("train_toy.py", "run_toy_transformer_config", "train, test = IMDB.splits(TEXT)"),
        Frame(f"{library}dataset.py", 81, "splits", "test_data = cls("),
        Frame(f"{library}field.py", 211, "preprocess", "x = Pipeline(str.lower)(x)"),
    ]
    found = phase_of(stack, "interrupted", kind="KeyboardInterrupt", work=frozenset(work))
    assert found == phase


@pytest.mark.parametrize(("work", "phase"), [("training", "training"), ("", "initialization")])
def test_after_a_step_a_message_of_the_start_is_none_of_the_start(work: str, phase: str) -> None:
    stack = [own("train.py", "<module>"), own("train.py", "train", "loss = model(x)"), FORWARD]
    done = frozenset(filter(None, [work]))
    assert phase_of(stack, "gpu_fault", work=done, stated="initialization") == phase


@pytest.mark.parametrize(
    ("announced", "stack", "work", "phase"),
    [
        ("evaluation", [own("main.py", "<module>"), own("main.py", "work")], set(), "evaluation"),
        ("training", [], set(), "training"),
        ("evaluation", [own("main.py", "load_checkpoint")], set(), "initialization"),
        ("evaluation", [], {"training"}, "training"),
    ],
)
def test_an_announced_phase_counts_where_neither_stack_nor_steps_show_one(
    announced: str, stack: list[Frame], work: set[str], phase: str
) -> None:
    found = phase_of(stack, "internal_error", work=frozenset(work), announced=announced)
    assert found == phase
