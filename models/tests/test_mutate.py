"""Mutants of training programs: one fault in one place, the same for the same seed."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochzero import taxonomy
from epochzero.errors import InputError
from epochzero_models.mutate import NoPlaceError, injectable, mutate
from epochzero_models.mutate.operators import operators
from lab.watch.cases import WATCH, held_out_bases

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F

WIDTH = 32

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.1)
        self.rnn = nn.LSTM(4, WIDTH, batch_first=True)
        self.pool = nn.AvgPool2d(2)
        self.hidden = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(3)])
        self.head = nn.Linear(WIDTH, 2)
        self.last = nn.Softmax(dim=1)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        x = F.softmax(self.head(x.flatten(1).squeeze(0)), dim=1)
        return self.last(x)
"""
TRAINING = """
from PIL import Image
image = Image.open("a.png").convert("L")
images = (torch.rand(90, 1, 8, 8, dtype=torch.float32).unsqueeze(1) - 0.5) / 2
order = torch.randperm(90)
train_set = Data(images[order[:60]], train=True)
val_set = Data(images[order[60:]], train=False)
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
val_loader = DataLoader(val_set, batch_size=8)
device = torch.device("cuda")
model = Net().to(device)
model = nn.DataParallel(model)
model.load_state_dict(torch.load("net.pt"))
criterion = nn.CrossEntropyLoss(ignore_index=0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
for epoch in range(5):
    total = 0.0
    for x, y in train_loader:
        x = x.to(device)
        y = y.to(device)
        optimizer.zero_grad()
        scores = model(x)
        loss = criterion(scores, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    for x, y in val_loader:
        hits = (model(x).argmax(1).cpu() == y).sum().item()
"""
PROGRAM = HEAD + TRAINING


def test_each_leaf_has_an_operator_or_a_reason() -> None:
    for name, leaf in taxonomy.leaves().items():
        assert (name in operators()) is not bool(leaf.not_injected), name
    assert set(injectable()) == set(operators())


@pytest.mark.parametrize("leaf", injectable())
def test_a_mutant_parses_and_differs_in_one_place(leaf: str) -> None:
    mutant = mutate(PROGRAM, leaf)
    assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(PROGRAM))
    old, new = PROGRAM.split("\n"), mutant.text.split("\n")
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    assert len([kind for kind, *_ in changes if kind != "equal"]) == 1
    before, after = old[: mutant.line - 1], old[mutant.line - 1 + len(_lines(mutant.old)) :]
    assert [*before, *_lines(mutant.new), *after] == new


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


@pytest.mark.parametrize(
    ("leaf", "new"),
    [
        ("wrong_type_of_activation_function", "x = F.max_pool2d(F.sigmoid(self.norm(self.conv(x))), 2)"),
        ("missing_normalization_layer", "self.norm = nn.Identity()"),
        ("suboptimal_number_of_neurons_in_a_layer", "WIDTH = 1"),
        ("redundant_softmax_layer", "loss = criterion(scores.softmax(dim=1), y)"),
        ("wrong_model_initialization", ""),
        ("wrong_input_format_for_rnn", "self.rnn = nn.LSTM(4, WIDTH, batch_first=False)"),
        ("suboptimal_number_of_epochs", "for epoch in range(1):"),
        ("wrong_loss_function_calculation", "(-loss).backward()"),
        ("missing_loss_function", "loss = scores.mean()"),
        ("incorrect_train_test_split", "val_set = Data(images[order[0:]], train=False)"),
        ("epsilon_for_adam_too_low", "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4, eps=1e-38)"),
        ("wrong_management_of_memory_resources", "total += loss"),
        ("wrong_tensor_transfer_to_gpu", "x.to(device)|y.to(device)"),
        ("deprecated_api", "total += loss.data[0]|hits = (model(x).argmax(1).cpu() == y).sum().data[0]"),
    ],
)  # fmt: skip
def test_what_an_operator_makes(leaf: str, new: str) -> None:
    assert mutate(PROGRAM, leaf).new.strip() in new.split("|")


def test_a_line_that_is_taken_away_leaves_no_trace() -> None:
    texts = {mutate(PROGRAM, "missing_api_call", seed=seed).text for seed in range(20)}
    assert PROGRAM.replace("        optimizer.zero_grad()\n", "") in texts
    alone = "import torch\ndef clear(optimizer):\n    optimizer.zero_grad()\n"
    assert mutate(alone, "missing_api_call").new == "    pass"


def test_the_seed_chooses_the_place() -> None:
    assert mutate(PROGRAM, "missing_api_call", seed=3) == mutate(
        PROGRAM, "missing_api_call", seed=3
    )
    assert len({mutate(PROGRAM, "missing_api_call", seed=seed).line for seed in range(20)}) > 1


def test_other_letters_and_line_ends_stay_as_they_are() -> None:
    program = "# ü\r\nloss = f('äöü'); loss.backward()  # ß\r\nx = 1\r\n"
    mutant = mutate(program, "wrong_loss_function_calculation")
    assert mutant.text == program.replace("loss.backward", "(-loss).backward")
    assert mutant.line == 2


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(InputError, match="only graphs of TensorFlow 1"):
        mutate(PROGRAM, "missing_argument_scoping")
    with pytest.raises(InputError, match="did you mean missing_dropout_layer"):
        mutate(PROGRAM, "missing_dropout_layers")
    with pytest.raises(
        NoPlaceError,
        match=r"not applicable to a\.py\. It would change: A dropout layer is removed\.",
    ):
        mutate("x = 1\n", "missing_dropout_layer", name="a.py")
    with pytest.raises(InputError, match=r"a\.py, line 1 cannot be parsed"):
        mutate("x = (\n", "missing_dropout_layer", name="a.py")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(PROGRAM.splitlines(keepends=True)), max_size=12).map("".join),
    st.sampled_from(injectable()),
)
def test_no_program_breaks_an_operator(program: str, leaf: str) -> None:
    try:
        mutant = mutate(program, leaf)
    except InputError:
        return
    ast.parse(mutant.text)


def test_most_leaves_have_a_place_in_programs_that_people_write() -> None:
    bases = [path for path in sorted((WATCH / "base").glob("*.py")) if path.stem not in held_out_bases()]  # fmt: skip
    placed = {leaf for leaf in injectable() if any(_has_place(path, leaf) for path in bases[:5])}
    assert len(placed) >= 55


def _has_place(path: Path, leaf: str) -> bool:
    try:
        mutate(path.read_text(encoding="utf-8"), leaf)
    except NoPlaceError:
        return False
    return True


@pytest.mark.parametrize(
    ("leaf", "line"),
    [
        # Evaluating in larger batches is no fault, and a bias in front of a batch normalization has no effect.
        ("suboptimal_batch_size", "train_loader = DataLoader(train_set, batch_size=128, shuffle=True)"),
        ("data_batching_required", "train_loader = DataLoader(train_set, batch_size=len(train_set), shuffle=True)"),
        ("bias_needed_in_a_layer", "self.head = nn.Linear(WIDTH, 2, bias=False)"),
    ],
)  # fmt: skip
def test_a_mutant_is_a_fault_whatever_the_seed(leaf: str, line: str) -> None:
    only_one_linear = PROGRAM.replace("nn.Linear(WIDTH, WIDTH)", "Block()")
    for seed in range(8):
        assert line in mutate(only_one_linear, leaf, seed=seed).text
