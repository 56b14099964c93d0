"""What a reader objects to: the same lines with and without a fault, read as a file that is never run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from epochzero.run.watch.lines.direction import wrong_terms
from epochzero.run.watch.lines.program import ParsedFile, last_name
from epochzero.run.watch.lines.reading import bootstrapped, objections_to, unended

_BEGIN = """
import torch
from torch import nn
from torch.nn import functional as F
def mix(pred, target):
    return (pred - target.log()).sum()
def encode(x):
    mean, log_variance = x, x
    return mean, log_variance
criterion = nn.BCELoss()
ranking = nn.MarginRankingLoss()
model = generator = critic = nn.Linear(4, 1)
"""


def _read(lines: str) -> ParsedFile:
    text = _BEGIN + lines + "\n"
    return ParsedFile("train.py", ast.parse(text), tuple(text.splitlines()))


def _objects(lines: str) -> set[str]:
    found = list(objections_to(_read(lines)))
    assert all(one.place.line > len(_BEGIN.splitlines()) for one in found)
    return {one.fault for one in found}


@pytest.mark.parametrize(
    ("wrong", "right", "fault"),
    [
        ("criterion(labels, preds)", "criterion(preds, labels)", "loss_wrong"),
        ("F.kl_div(teacher_log, student)", "F.kl_div(student_log, teacher)", "loss_wrong"),
        ("mix(target, pred)", "mix(pred, target)", "loss_wrong"),
        ("log_variance, mean = encode(x)", "mean, log_variance = encode(x)", "loss_wrong"),
        ("ranking(neg, pos, torch.ones(4))", "ranking(neg, pos, -torch.ones(4))", "loss_wrong"),
        ("F.triplet_margin_loss(a, negative, positive)", "F.triplet_margin_loss(a, positive, negative)", "loss_wrong"),
        ("((1 - gap) * error).sum() / gap.sum()", "(gap * error).sum() / gap.sum()", "loss_wrong"),
        ("(error * ~mask).sum() / mask.sum().clamp(min=1)", "(error * mask).sum() / mask.sum().clamp(min=1)", "loss_wrong"),
        ("tau = 0.1\nF.cross_entropy(similarity * tau, y)", "tau = 0.1\nF.cross_entropy(similarity / tau, y)", "loss_wrong"),
        ("x, y = x[torch.randperm(9)], y[torch.randperm(9)]", "order = torch.randperm(9)\nx, y = x[order], y[order]", "labels_wrong"),
        ("g_optimizer = torch.optim.Adam(critic.parameters())", "g_optimizer = torch.optim.Adam(generator.parameters())", "parameters_frozen"),
        (
            "plan = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max')\nplan.step(valid_loss)",
            "plan = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max')\nplan.step(accuracy)",
            "schedule_wrong",
        ),
    ],
)  # fmt: skip
def test_objections(wrong: str, right: str, fault: str) -> None:
    assert _objects(wrong) == {fault}
    assert _objects(right) == set()


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
    begin = "done = memory[3]\n"
    loss = "loss = F.mse_loss(q, target)"
    assert unended(*_minimized(f"{begin}target = r + gamma * q_next\n{loss}"))
    assert not unended(*_minimized(f"{begin}target = r + gamma * q_next * (1 - done)\n{loss}"))
    assert bootstrapped(*_minimized("loss = 2 + accuracy")) is None


def _minimized(lines: str) -> tuple[ParsedFile, ast.expr]:
    program = _read(f"{lines}\nloss.backward()")
    call = next(one for one in program.all_calls if last_name(one.func) == "backward")
    assert isinstance(call.func, ast.Attribute)
    return program, call.func.value


def test_each_program_of_the_lab_that_is_healthy_is_read_without_objection() -> None:
    lab = Path(__file__).parents[3] / "lab" / "watch"
    paths = [
        *lab.glob("base/*.py"),
        *(p for p in lab.glob("*/healthy/*.py") if "blind" not in p.parts),
    ]
    assert len(paths) > 100
    for path in paths[::4]:
        text = path.read_text(encoding="utf-8")
        program = ParsedFile(str(path), ast.parse(text), tuple(text.splitlines()))
        assert list(objections_to(program)) == [], path
