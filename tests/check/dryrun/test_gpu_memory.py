"""Whole scripts, run dry as on a GPU: the memory that they take, from the command to the finding."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from epochzero.check import CheckResult, Limits, Target, check
from epochzero.check.target.model import GPU
from epochzero.cli.check import command

pytest.importorskip("torch", reason="the scripts train with torch")
pytestmark = pytest.mark.usefixtures("preloaded")

MIB = 1 << 20
SCRIPT = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=256)
width = parser.parse_args().width
model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(4)))
model.to("cuda")
optimizer = torch.optim.Adam(model.parameters())
for step in range(100):
    x = torch.randn(8, width, device="cuda")
    loss = model(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


KERAS = """\
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
layers = [keras.Input((256,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(4)]
model = keras.Sequential(layers)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = numpy.zeros((640, 256), "float32"), numpy.zeros(640, "int64")
model.fit(x, y, batch_size=64, epochs=30)
model.evaluate(x, y)
"""


def run(folder: Path, target: Target, *arguments: str, script: str = SCRIPT) -> CheckResult:
    (folder / "train.py").write_text(script)
    return check(
        [sys.executable, "train.py", *arguments],
        target,
        folder=folder,
        environment=dict(os.environ),
        select=["dry-run-failed", "dry-run-memory"],
        dry=Limits(seconds=60),
    )


def with_gpu(mebibytes: int) -> Target:
    return Target(name="cluster", gpus=(GPU("a GPU", mebibytes * MIB, (8, 0)),))


def test_the_memory_of_a_job_is_told(tmp_path: Path) -> None:
    found = run(tmp_path, with_gpu(8192))
    assert found.findings == ()
    (dry,) = found.dry
    assert (dry.modes, dry.ended) == (("real", "fake"), "finished")
    assert dry.memory is not None
    assert dry.memory.by_kind["parameter"] == 4 * 256 * 256 * 4
    assert dry.memory.by_kind["optimizer"] == 2 * 4 * 256 * 256 * 4
    assert dry.memory.fit.answer == "fits"
    assert {holder.site.path for holder in dry.memory.holders} == {"train.py"}
    assert found.to_dict()["dry"][0]["memory"]["fit"]["answer"] == "fits"


def test_a_job_that_does_not_fit_is_an_error_at_its_line(tmp_path: Path) -> None:
    found = run(tmp_path, with_gpu(32), "--width", "2048")
    (finding,) = found.findings
    assert (finding.rule, finding.severity) == ("dry-run-memory", "error")
    assert (finding.category, finding.phase) == ("gpu_out_of_memory", "training")
    assert (finding.place.path, finding.place.line) == ("train.py", 8)
    assert "Tried to allocate 16 MiB" in finding.consequence


def test_a_job_on_a_target_without_gpus_takes_no_memory_of_one(tmp_path: Path) -> None:
    found = run(tmp_path, Target(name="cluster", gpus=()))
    assert found.dry[0].memory is None


def test_keras_on_torch_trains_on_a_pretended_gpu(tmp_path: Path) -> None:
    pytest.importorskip("keras", reason="the script trains with Keras")
    found = run(tmp_path, with_gpu(8192), script=KERAS)
    assert (found.findings, found.unknowns) == ((), ())
    (dry,) = found.dry
    assert "optimizer step" in {part.name for part in dry.parts if part.reached}
    assert dry.memory is not None
    parameters = 256 * 256 + 256 + 256 * 4 + 4
    assert dry.memory.by_kind["parameter"] == 4 * parameters
    # Adam's two states for each; the learning rate and the number of steps.
    assert 0 <= dry.memory.by_kind["optimizer"] - 2 * 4 * parameters <= 16


COMPILED = """\
import torch
model = torch.nn.Sequential(
    torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Dropout(), torch.nn.Linear(64, 64)
).cuda()
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters())
for step in range(1000):
    compiled(torch.randn(65536, 64, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
ZERO = """\
{"train_micro_batch_size_per_gpu": 8, "fp16": {"enabled": true}, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000}}
"""
DEEPSPEED = """\
import argparse, deepspeed, torch
parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
parser.add_argument("--local_rank", type=int)
args = parser.parse_args()
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, bias=False) for _ in range(4)))
data = torch.utils.data.TensorDataset(torch.randn(640, 256))
engine, _, loader, _ = deepspeed.initialize(args, model, training_data=data)
for epoch in range(3):
    for (x,) in loader:
        loss = engine(x.to(engine.device).half()).float().pow(2).mean()
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint("checkpoints", client_state={"epoch": epoch})
_, state = engine.load_checkpoint("checkpoints")
assert "epoch" in state
"""
TRAINER = """\
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_embd=64, n_layer=2, n_head=2))
data = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 1000, (64, 32))]
given = TrainingArguments("out", deepspeed="zero.json", fp16=True, report_to=[])
Trainer(model, given, train_dataset=data).train()
"""


def with_zero(folder: Path, script: str, *arguments: str) -> CheckResult:
    (folder / "zero.json").write_text(ZERO)
    (folder / "train.py").write_text(script)
    return check(
        ["deepspeed", "--num_gpus", "8", "train.py", *arguments],
        with_gpu(8192),
        folder=folder,
        environment={**os.environ, "PATH": str(Path(sys.executable).parent)},
        select=["dry-run-failed", "dry-run-memory"],
        dry=Limits(seconds=60),
    )


def test_a_compiled_job_takes_at_most_what_it_takes_as_written(tmp_path: Path) -> None:
    found = run(tmp_path, with_gpu(8192), script=COMPILED)
    plain = run(tmp_path, with_gpu(8192), script=COMPILED.replace("torch.compile(model)", "model"))
    memory, written = found.dry[0].memory, plain.dry[0].memory
    assert memory is not None
    assert written is not None
    assert memory.allocated.high == written.allocated.high
    # What a compiler does between the ends is unknown: the estimate is the middle.
    middle = (memory.allocated.low / 0.97 + memory.allocated.high / 1.03) / 2
    assert memory.allocated.likely == pytest.approx(middle, abs=2)
    # Of 16 MiB each, the input and what the two layers compute; written down, what lies between, too.
    assert memory.allocated.low < 4 * 16 * MIB + 20 * MIB < written.allocated.low
    assert any("torch.compile" in told for told in memory.assumptions)


def test_a_job_with_deepspeed_runs_without_it_and_its_memory_is_reckoned(tmp_path: Path) -> None:
    found = with_zero(tmp_path, DEEPSPEED, "--deepspeed_config", "zero.json")
    assert (found.findings, found.unknowns) == ((), ())
    (dry,) = found.dry
    assert {"backward", "save", "load"} <= {part.name for part in dry.parts if part.reached}
    assert dry.memory is not None
    parameters = 4 * 256 * 256
    assert dry.memory.by_kind["parameter"] == 2 * parameters
    # In single precision, a copy and Adam's two states.
    assert dry.memory.by_kind["optimizer"] == 3 * 4 * parameters // 8
    assert any("ZeRO stage 2 over 8 GPUs" in told for told in dry.memory.assumptions)


def test_only_the_first_rank_writes_a_checkpoint_and_all_wait_for_it(tmp_path: Path) -> None:
    slow = """\
import os, time
import torch
write, read = torch.save, torch.load
def save(saved, path):
    time.sleep(0.5)
    with open(path, "wb") as half:
        half.write(b"PK")
    time.sleep(2)
    write(saved, path)
def load(path, **options):
    time.sleep(1)
    return read(path, **options)
if os.environ["RANK"] == "7":
    torch.save = save
if os.environ["RANK"] == "1":
    torch.load = load
"""
    found = with_zero(
        tmp_path,
        slow + DEEPSPEED.replace("range(3)", "range(1)"),
        "--deepspeed_config",
        "zero.json",
    )
    assert found.findings == ()


def test_what_the_stand_in_for_deepspeed_lacks_is_unknown(tmp_path: Path) -> None:
    script = DEEPSPEED.replace("engine.step()", "engine.train_batch()")
    found = with_zero(tmp_path, script, "--deepspeed_config", "zero.json")
    assert found.findings == ()
    assert any("no module deepspeed" in one.reason for one in found.unknowns)


def test_the_trainer_of_transformers_with_deepspeed(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the script trains with Transformers")
    pytest.importorskip("accelerate", reason="its trainer needs accelerate")
    found = with_zero(tmp_path, TRAINER)
    assert found.findings == ()
    memory = found.dry[0].memory
    assert memory is not None
    assert any("ZeRO stage 2 over 8 GPUs" in told for told in memory.assumptions)
    # Half precision, and an eighth of three copies in single precision.
    ratio = memory.by_kind["optimizer"] / memory.by_kind["parameter"]
    assert ratio == pytest.approx(12 / 8 / 2, abs=0.01)


PREPARED = """\
import torch
from accelerate import Accelerator

accelerator = Accelerator()
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(512, 512, bias=False)
    def forward(self, x):
        return self.fc(x)
model = torch.nn.Sequential(*(Block() for _ in range(8)))
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.DataLoader(torch.randn(64, 512), batch_size=8)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
for x in data:
    accelerator.backward(model(x).square().mean())
    optimizer.step()
    optimizer.zero_grad()
accelerator.save_state("state")
"""
SHARDED = """\
distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 4
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_transformer_layer_cls_to_wrap: Block
  fsdp_state_dict_type: SHARDED_STATE_DICT
"""
DIVIDED = """\
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 1
num_processes: 4
deepspeed_config:
  zero_stage: 3
"""
DUMMIES = """\
import torch
from accelerate import Accelerator, DeepSpeedPlugin
from accelerate.utils import DummyOptim, DummyScheduler

config = {
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000},
    "train_micro_batch_size_per_gpu": "auto", "optimizer": {"type": "AdamW"}, "scheduler": {},
}
plugin = DeepSpeedPlugin(hf_ds_config=config)
accelerator = Accelerator(mixed_precision="fp16", deepspeed_plugin=plugin)
accelerator.state.deepspeed_plugin.deepspeed_config["train_micro_batch_size_per_gpu"] = 8
model = torch.nn.Linear(1024, 1024, bias=False)
optimizer = DummyOptim(model.parameters())
schedule = DummyScheduler(optimizer)
data = torch.utils.data.DataLoader(torch.randn(64, 1024), batch_size=8)
model, optimizer, data, schedule = accelerator.prepare(model, optimizer, data, schedule)
for x in data:
    accelerator.backward(model(x).float().square().mean())
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("script", "config", "parameters", "held", "kept"),
    [
        # Of 8 x 512 x 512 parameters a quarter, in single precision, and Adam's two states.
        (PREPARED, SHARDED, 8 * 512 * 512, 4, 8),
        # In half; the states have a copy beside them.
        (PREPARED, DIVIDED, 8 * 512 * 512, 2, 12),
        # Parameters are whole in the second stage.
        (DUMMIES, "num_machines: 1\nnum_processes: 4\n", 1024 * 1024, 4 * 2, 12),
    ],
    ids=["fsdp", "zero", "plugin"],
)
def test_what_accelerate_is_told_divides_the_memory(
    tmp_path: Path, script: str, config: str, parameters: int, held: int, kept: int
) -> None:
    pytest.importorskip("accelerate", reason="the script trains with Accelerate")
    (tmp_path / "a.yaml").write_text(config)
    (tmp_path / "train.py").write_text(script)
    found = check(
        ["accelerate", "launch", "--config_file", "a.yaml", "train.py"],
        with_gpu(8192),
        folder=tmp_path,
        environment={**os.environ, "PATH": str(Path(sys.executable).parent)},
        select=["dry-run-failed", "dry-run-memory"],
        dry=Limits(seconds=60),
    )
    assert (found.findings, found.unknowns) == ((), ())
    memory = found.dry[0].memory
    assert memory is not None
    assert memory.by_kind["parameter"] == parameters * held // 4
    assert memory.by_kind["optimizer"] == parameters * kept // 4


def test_the_command_tells_and_draws_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    drawn = tmp_path / "memory.svg"
    arguments = ["--target", "T4", "--chdir", str(tmp_path), "--select", "dry-run-memory"]
    arguments += ["--memory-picture", str(drawn), "--", sys.executable, "train.py"]
    ran = CliRunner().invoke(command, arguments)
    assert ran.exit_code == 0
    told = " ".join(ran.output.split())
    assert "fits on Tesla T4 with 15 GiB" in told
    assert "Held by" in told
    assert "train.py:8: parameter" in told
    ElementTree.fromstring(drawn.read_text())


RAGGED = """\
import time
import torch
from torch.utils.data import DataLoader

class Words(torch.utils.data.Dataset):
    def __len__(self):
        return 1200
    def __getitem__(self, number):
        return torch.ones(4096 if number == 250 else 8)

def padded(samples):
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)

model = torch.nn.Linear(1, 256).cuda()
optimizer = torch.optim.Adam(model.parameters())
for batch in DataLoader(Words(), batch_size=4, collate_fn=padded):
    loss = model(batch.cuda().unsqueeze(-1)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.05)
"""


def test_the_memory_is_that_of_the_largest_batch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RAGGED)
    found = check(
        [sys.executable, "train.py"],
        with_gpu(8192),
        folder=tmp_path,
        environment=dict(os.environ),
        select=["dry-run-failed", "dry-run-memory"],
        dry=Limits(seconds=60),
    )
    (dry,) = found.dry
    assert dry.memory is not None
    assert dry.memory.allocated.likely > 4 * 4096 * 256 * 4
    assert any("batch 63 is the largest of 300" in one.what for one in dry.assumptions)


KEEPING = """\
import time
from collections import deque
import torch

model = torch.nn.Linear(1024, 1024).cuda()
loader = torch.utils.data.DataLoader(torch.zeros(4000, 1024), batch_size=1)
def called(x):
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass
    return model(x.cuda().repeat(256, 1))

if {trains}:
    loss = 0
    for x in loader:
        loss = loss + called(x).square().mean()
    loss.backward()
else:
    recent = deque(maxlen=2)
    with torch.no_grad():
        outputs = []
        for x in loader:
            outputs.append(called(x))
            recent.append(x.cuda().repeat(256, 1))
        outputs = torch.cat(outputs)
        recent.clear()
        outputs = torch.cat([called(x) for x in loader])
"""


@pytest.mark.parametrize(
    ("trains", "mebibytes"),
    [
        # For each batch what `square` needs in backward, and the layer.
        (True, 2 * 4000),
        # Outputs of the first loop while those of the second are made, and made one.
        (False, 3 * 4000),
    ],
)
def test_what_each_iteration_keeps_counts_for_those_that_are_left_out(
    tmp_path: Path, trains: bool, mebibytes: int
) -> None:
    found = run(tmp_path, with_gpu(80 * 1024), script=KEEPING.format(trains=trains))
    (dry,) = found.dry
    assert dry.memory is not None
    assert dry.memory.allocated.likely == pytest.approx(mebibytes * MIB, rel=0.02)
    assert any(
        "train.py:11 retains memory in each iteration" in told for told in dry.memory.assumptions
    )
