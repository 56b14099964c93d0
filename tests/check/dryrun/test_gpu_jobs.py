"""Jobs that use a GPU, on a machine without: true values on the CPU, and a pretended GPU beside it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from epochzero.check import CheckResult, Limits, Target, check
from epochzero.check.dryrun.attempt import DryRunPlan, attempt
from epochzero.check.dryrun.effects import effects_of
from epochzero.check.launch import read_job
from epochzero.check.target.model import GPU

pytest.importorskip("torch", reason="the scripts train with torch")
pytestmark = pytest.mark.usefixtures("preloaded")

A100 = GPU("NVIDIA A100", 80 << 30, (8, 0))
CLUSTER = Target(name="cluster", gpus=(A100,) * 4)


def dry(folder: Path, script: str, *command: str) -> CheckResult:
    """Checks a script dry alone; the prelude has 3 lines."""
    prelude = "import argparse, os, torch\nfrom torch import nn\nF = nn.functional\n"
    (folder / "train.py").write_text(prelude + dedent(script))
    return check(
        [*(command or (sys.executable,)), "train.py"],
        CLUSTER,
        folder=folder,
        environment=dict(os.environ),
        select=["dry-run-failed", "dry-run-crashed", "dry-run-nan"],
        dry=Limits(seconds=60),
    )


TRAIN = """
for step in range(100):
    x, y = batch()
    loss = F.cross_entropy(model(x.cuda()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def training(model: str, batch: str) -> str:
    """A script that trains a model on batches, all on the GPU."""
    return f"""
model = {model}.cuda()
optimizer = torch.optim.AdamW(model.parameters())
def batch():
    return {batch}
{TRAIN}"""


def test_one_answer_for_a_layer_that_does_not_fit(tmp_path: Path) -> None:
    script = training(
        "nn.Sequential(nn.Linear(8, 16), nn.Linear(12, 4))",
        "torch.randn(5, 8), torch.randint(0, 4, (5,)).cuda()",
    )
    found = dry(tmp_path, script)
    (finding,) = found.findings
    (run,) = found.dry
    assert run.modes == ("real", "fake")
    assert (finding.severity, finding.category) == ("error", "tensor_mismatch")
    assert "Layer 1, Linear(in_features=12, out_features=4, bias=True)" in finding.message
    assert "[5, 16]" in finding.message
    assert finding.fix == "Use in_features=16 at train.py:5."
    assert finding.via[-1].line == 5


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ("torch.randn(5, 8), torch.randint(0, 4, (5,))", "found at least two devices"),
        ("torch.randn(5, 8), torch.tensor([0, 1, 2, 3, 9]).cuda()", "out of bounds"),
        ("torch.randn(5, 8).log(), torch.randint(0, 4, (5,)).cuda()", "becomes NaN"),
    ],
    ids=["device", "label", "nan"],
)
def test_what_only_one_of_both_sees(tmp_path: Path, batch: str, said: str) -> None:
    (finding,) = dry(tmp_path, training("nn.Linear(8, 4)", batch)).findings
    assert said in finding.consequence


def test_a_good_job_of_four_processes(tmp_path: Path) -> None:
    script = """
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(nn.Linear(8, 4).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        x = torch.randn(5, 8, device=rank)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())
        if rank == 0:
            torch.save(model.module.state_dict(), "model.pt")
    # The state of a GPU's generator, as torch's DTensor reads it.
    assert torch.cuda.get_rng_state()[8:].view(torch.int64).numel() == 1
    dist.destroy_process_group()
    """
    torchrun = str(Path(sys.executable).parent / "torchrun")
    found = dry(tmp_path, script, torchrun, "--nproc_per_node", "4")
    assert (found.findings, found.unknowns) == ((), ())
    (run,) = found.dry
    assert run.ended == "finished"
    assert [one.place for one in run.effects.written] == ["model.pt"]
    assert not (tmp_path / "model.pt").exists()
    assert any("other 3 of 4" in one.what for one in run.assumptions)


def test_data_parallel_computes_the_share_of_the_first_gpu(tmp_path: Path) -> None:
    script = """
    model = nn.DataParallel(nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        out = model(torch.randn(10, 8).cuda())
        loss = F.cross_entropy(out, torch.randint(4, (10,)).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.ones(3, 2).cuda() @ out
    """
    found = dry(tmp_path, script)
    (finding,) = found.findings
    assert (finding.place.line, finding.category) == (13, "tensor_mismatch")
    assert "10x4" in finding.consequence
    assert not found.unknowns
    assert found.dry[0].memory is not None


def test_an_export_that_needs_values_is_no_failure(tmp_path: Path) -> None:
    script = """
    torch.save(nn.Linear(2, 2).cuda().state_dict(), "model.pt")
    model = nn.Linear(2, 2)
    model.load_state_dict(torch.load("model.pt", map_location="cpu"))
    torch.jit.script(model).save("model.ts")
    """
    assert not dry(tmp_path, script).findings


RESUMED = """
parser = argparse.ArgumentParser()
parser.add_argument("--resume-from")
arguments = parser.parse_args()
model = nn.Linear(8, 4)
if arguments.resume_from:
    model.load_state_dict(torch.load(arguments.resume_from)["{key}"])
torch.save({{"model": model.state_dict()}}, "checkpoint.pt")
"""


def test_what_was_saved_is_resumed(tmp_path: Path) -> None:
    found = dry(tmp_path, RESUMED.format(key="model"))
    assert not found.findings
    assert "load" in [part.name for part in found.dry[0].parts if part.reached]


def test_a_checkpoint_from_which_the_job_cannot_go_on(tmp_path: Path) -> None:
    (finding,) = dry(tmp_path, RESUMED.format(key="state_dict")).findings
    assert finding.severity == "warning"
    assert "state_dict" in finding.consequence
    assert "--resume-from" in finding.message
    assert finding.place.line == 10


ENDINGS = {
    "known arguments": """
parser = argparse.ArgumentParser()
parser.add_argument("--ckpt-path")
resumed = parser.parse_known_args()[0].ckpt_path
go_on(resumed)
""",
    "click": """
import click
@click.command()
@click.option("--resume", type=click.Path())
def main(resume):
    go_on(resume)
main()
""",
    "variable": """
go_on(os.environ.get("RESUME_FROM"))
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_goes_on_by_an_option_of_any_parser_or_a_variable(
    tmp_path: Path, ending: str
) -> None:
    script = """
def go_on(path):
    model = nn.Linear(8, 4)
    if path:
        model.load_state_dict(torch.load(path)["state_dict"])
    with open("checkpoint.pt", "wb") as file:
        torch.save({"model": model.state_dict()}, file)
"""
    (finding,) = dry(tmp_path, script + ENDINGS[ending]).findings
    assert (finding.severity, finding.place.line) == ("warning", 8)
    assert "state_dict" in finding.consequence
    assert "checkpoint.pt" in finding.message


def test_a_tensor_is_kept_for_a_stream(tmp_path: Path) -> None:
    script = """
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        batch = torch.zeros(4).to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream)
    batch.record_stream(torch.cuda.current_stream())
    print(batch + 1)
    """
    assert not dry(tmp_path, dedent(script)).findings


def test_a_checkpoint_is_as_large_as_its_tensors_would_be(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nmodel = torch.nn.Linear(1024, 1024, bias=False).cuda()\n"
        "with open('model.pt', 'wb') as file:\n"
        "    torch.save({'model': model.state_dict(), 'again': model.weight}, f=file)\n"
    )
    (job,) = read_job((sys.executable, "train.py"), tmp_path, {}).jobs
    plan = DryRunPlan("fake", (A100,))
    run = attempt(job, plan, Limits(seconds=60), dict(os.environ), lambda _: None)
    assert sum(change.size for change in run.ended.changes) < 1 << 20
    (written,) = effects_of([run.ended], run.records, job, [plan]).written
    assert (written.place, written.size) == ("model.pt", 4 << 20)
