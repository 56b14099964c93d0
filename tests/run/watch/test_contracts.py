"""Contracts of a training loop: the same lines with and without a fault, read as a file that is never run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from epochzero.run.watch.lines.contracts import CONTRACTS, bootstrapped
from epochzero.run.watch.lines.direction import wrong_terms
from epochzero.run.watch.lines.program import ParsedFile, last_name

_BEGIN = """
import torch
from torch import nn
from torch.nn import functional as F
def mix(pred, target):
    return (pred - target.log()).sum()
criterion = nn.BCELoss()
ranking = nn.MarginRankingLoss()
model = generator = critic = nn.Linear(4, 1)
"""


def _read(lines: str) -> ParsedFile:
    text = _BEGIN + lines + "\n"
    return ParsedFile("train.py", ast.parse(text), tuple(text.splitlines()))


def _broken(program: ParsedFile) -> list[tuple[str, int]]:
    return [
        (contract.fault, program.place(node).line)
        for contract in CONTRACTS
        for _, node in contract.broken(program)
    ]


def _faults(lines: str) -> set[str]:
    found = _broken(_read(lines))
    assert all(line > len(_BEGIN.splitlines()) for _, line in found)
    return {fault for fault, _ in found}


@pytest.mark.parametrize(
    ("wrong", "right", "fault"),
    [
        ("criterion(labels, preds)", "criterion(preds, labels)", "loss_wrong"),
        ("F.kl_div(teacher_log, student)", "F.kl_div(student_log, teacher)", "loss_wrong"),
        ("mix(target, pred)", "mix(pred, target)", "loss_wrong"),
        ("ranking(neg, pos, torch.ones(4))", "ranking(neg, pos, -torch.ones(4))", "loss_wrong"),
        ("F.triplet_margin_loss(a, negative, positive)", "F.triplet_margin_loss(a, positive, negative)", "loss_wrong"),
        ("g_optimizer = torch.optim.Adam(critic.parameters())", "g_optimizer = torch.optim.Adam(generator.parameters())", "parameters_frozen"),
    ],
)  # fmt: skip
def test_names_contradict_what_they_are_given_for(wrong: str, right: str, fault: str) -> None:
    assert _faults(wrong) == {fault}
    assert _faults(right) == set()


_LOOP = "for epoch in range(9):\n    for x, y in loader:\n"
_STEP = "        opt.zero_grad()\n        loss.backward()\n        opt.step()\n"


@pytest.mark.parametrize(
    ("wrong", "right", "fault"),
    [
        (
            "class D:\n    def __getitem__(self, i):\n        rng = np.random.default_rng(1)\n        return self.x[i] + rng.normal()",
            "class D:\n    def __getitem__(self, i):\n        rng = np.random.default_rng(i)\n        return self.x[i] + rng.normal()",
            "augmentation_wrong",
        ),
        (
            "def get(image, mask):\n    image = image.flip(-1)\n    return image, mask",
            "def get(image, mask):\n    image, mask = image.flip(-1), mask.flip(-1)\n    return image, mask",
            "augmentation_wrong",
        ),
        (
            "class D:\n    def __getitem__(self, i):\n        g = torch.Generator().manual_seed(self.cfg.seed)\n        return torch.rand(3, generator=g)",
            "class D:\n    def __getitem__(self, i):\n        g = torch.Generator().manual_seed(self.cfg.seed + i)\n        return torch.rand(3, generator=g)",
            "augmentation_wrong",
        ),
        (
            "train = encode(x_train, fit_codes(x_train))\nval = encode(x_val, fit_codes(x_val))",
            "codes = fit_codes(x_train)\nval = encode(x_val, codes)",
            "preprocessing_mismatch",
        ),
        (
            "scaler.fit_transform(x_train)\nscaler.fit_transform(x_test)",
            "scaler.fit_transform(x_train)\nscaler.transform(x_test)",
            "preprocessing_mismatch",
        ),
        (
            "for r in rewards:\n    g = r + gamma * g\n    gains.append(g)",
            "for r in reversed(rewards):\n    g = r + gamma * g\n    gains.append(g)",
            "loss_wrong",
        ),
        (
            f"{_LOOP}        out = model(x)\n        edge = (out.detach() - 1).pow(2).mean()\n        loss = F.mse_loss(out, y) + 2 * edge\n{_STEP}",
            f"{_LOOP}        out = model(x)\n        edge = (out - y.detach()).pow(2).mean()\n        loss = F.mse_loss(out, y) + 2 * edge\n{_STEP}",
            "loss_wrong",
        ),
        (
            "zero, one = torch.zeros(9), torch.ones(9)\nd = criterion(critic(fake.detach()), zero)\ng = criterion(critic(fake), zero)",
            "zero, one = torch.zeros(9), torch.ones(9)\nd = criterion(critic(fake.detach()), zero)\ng = criterion(critic(fake), one)",
            "loss_wrong",
        ),
        (
            f"{_LOOP}        opt = torch.optim.Adam(model.parameters())\n        loss = F.mse_loss(model(x), y)\n{_STEP}",
            f"opt = torch.optim.Adam(model.parameters())\n{_LOOP}        loss = F.mse_loss(model(x), y)\n{_STEP}",
            "optimizer_wrong",
        ),
    ],
)  # fmt: skip
def test_what_each_statement_of_a_loop_must_do(wrong: str, right: str, fault: str) -> None:
    assert _faults(wrong) == {fault}
    assert _faults(right) == set()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("pos, neg = u @ v, u @ w\nloss = -F.logsigmoid(neg - pos)", "pos, neg = u @ v, u @ w\nloss = -F.logsigmoid(pos - neg)"),
        ("loss = F.softplus(better - worse).mean()", "loss = F.softplus(worse - better).mean()"),
        (
            "d_pos, d_neg = (a - p).norm(), (a - n).norm()\nloss = F.relu(d_neg - d_pos + 0.2).mean()",
            "d_pos, d_neg = (a - p).norm(), (a - n).norm()\nloss = F.relu(d_pos - d_neg + 0.2).mean()",
        ),
        (
            "kl = -0.5 * (1 + v - m.pow(2) - v.exp()).sum()\nloss = F.mse_loss(o, x) - kl",
            "kl = -0.5 * (1 + v - m.pow(2) - v.exp()).sum()\nloss = F.mse_loss(o, x) + kl",
        ),
        (
            "kl = -0.5 * (1 + v - m.pow(2) - v.exp()).sum()\nloss = F.mse_loss(o, x) - kl",
            "kl = 0.5 * (1 + v - m.pow(2) - v.exp()).sum()\nloss = F.mse_loss(o, x) - kl",
        ),
    ],
)  # fmt: skip
def test_the_wrong_one_gains(wrong: str, right: str) -> None:
    assert wrong_terms(*_minimized(wrong))
    assert wrong_terms(*_minimized(right)) == []


def test_an_episode_that_is_over_has_no_next_state() -> None:
    begin = "done, d = memory[3:]\n"
    end = "loss = F.mse_loss(q, target)\nloss.backward()"
    assert _faults(f"{begin}target = r + gamma * q_next\n{end}") == {"loss_wrong"}
    assert not _faults(f"{begin}target = r + gamma * q_next * (1 - done)\n{end}")
    assert not _faults(f"{begin}target = r + gamma * q_next * (1 - d)\n{end}")
    assert _faults(f"{begin}target = r + gamma * q_next * done.float()\n{end}") == {"loss_wrong"}
    assert _faults(f"{begin}target = r + 0.98 * q_next\n{end}") == {"loss_wrong"}
    assert not _faults(f"{begin}target = r + 0.98 * q_next * (1 - d)\n{end}")
    assert not _faults(f"{begin}target = q + 0.98 * q_next\n{end}")
    assert bootstrapped(*_minimized("loss = 2 + accuracy")) is None
    # What is added to itself is a return; beside a mask, what `done` holds is unknown.
    assert not _faults(f"{begin}target = 0\ntarget = r + gamma * target\n{end}")
    kept = "done_mask = 0.0 if d else 1.0\n"
    assert not _faults(f"{begin}{kept}target = r + gamma * q_next * done.float()\n{end}")


def _minimized(lines: str) -> tuple[ParsedFile, ast.expr]:
    program = _read(f"{lines}\nloss.backward()")
    call = next(one for one in program.all_calls if last_name(one.func) == "backward")
    assert isinstance(call.func, ast.Attribute)
    return program, call.func.value


def test_each_program_of_the_lab_that_is_healthy_breaks_no_contract() -> None:
    lab = Path(__file__).parents[3] / "lab" / "watch"
    paths = [
        *lab.glob("base/*.py"),
        *(p for p in lab.glob("*/healthy/*.py") if not p.parts[-3].startswith("blind")),
    ]
    assert len(paths) > 100
    for path in paths[::4]:
        text = path.read_text(encoding="utf-8")
        program = ParsedFile(str(path), ast.parse(text), tuple(text.splitlines()))
        assert _broken(program) == [], path
