"""What a report tells of its environment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.locate.environment import Environment, library_name, read_environment
from epochzero.locate.report import Report


def read(text: str) -> Environment:
    return read_environment(Report("It fails", text))


@pytest.mark.parametrize(
    ("line", "name", "version"),
    [
        ("torch==1.4.0", "torch", "1.4.0"),
        ("- some-plugin==0.3", "some-plugin", "0.3"),
        ("I ran pip install some-plugin==0.3.1 first", "some-plugin", "0.3.1"),
        ("[pip3] torchvision==0.6.1+cu101", "torchvision", "0.6.1+cu101"),
        ("numpy                     1.18.1           py37h4f9e942_0", "numpy", "1.18.1"),
        ("  - python-dateutil=2.8.1=py_0", "python-dateutil", "2.8.1"),
        ("tensorflow-gpu     1.13.1", "tensorflow", "1.13.1"),
        ("PyTorch Version: 1.3.1", "torch", "1.3.1"),
        ("PyTorch Version (e.g., 1.0): 1.5.0", "torch", "1.5.0"),
        ("- pyTorch_version:   1.5.0", "torch", "1.5.0"),
        ("**TensorFlow version** (use command below): v2.1.0", "tensorflow", "2.1.0"),
        ("Widgets version: 4.2", "widgets", "4.2"),
        ("It happens with TensorFlow 2.1.0 only", "tensorflow", "2.1.0"),
        ("We moved to TF2 last week", "tensorflow", "2"),
        ("needs scipy >= 1.1.0", "scipy", "1.1.0"),
    ],
)
def test_a_library_has_its_version_however_it_is_written(
    line: str, name: str, version: str
) -> None:
    environment = read(f"Some words.\n{line}\nMore words.")
    assert environment.version(name) == version
    assert line.strip() in [mention.line for mention in environment.of("library")]


@pytest.mark.parametrize(
    ("line", "kind", "name", "version"),
    [
        ("Python version: 3.7.4 (default, Jul 9 2019)", "python", "python", "3.7.4"),
        ("fails on Python3.8", "python", "python", "3.8"),
        ("CUDA/cuDNN version: 10.1 / 7.6", "cuda", "cuda", "10.1"),
        ("CUDA/cuDNN version: 10.1 / 7.6", "cudnn", "cudnn", "7.6"),
        ("Cuda compilation tools, release 9.0, V9.0.176", "cuda", "cuda", "9.0"),
        ("torch 1.6.0+cu101", "cuda", "cuda", "10.1"),
        ("| NVIDIA-SMI 384.90   Driver Version: 384.90 |", "driver", "driver", "384.90"),
        ("GPU models and configuration: GTX 1080 Ti", "gpu", "GTX 1080 Ti", ""),
        ("- Tesla V100-SXM2-16GB", "gpu", "Tesla V100-SXM2-16GB", ""),
        ("OS: Ubuntu 18.04", "operating_system", "Ubuntu", "18.04"),
        ("OS: macOS 10.15.2", "operating_system", "macOS", "10.15.2"),
        ("only on Windows 10", "operating_system", "Windows", "10"),
        ("I use nvcr.io/nvidia/pytorch here", "container", "nvcr.io/nvidia/pytorch", ""),
    ],
)
def test_machine_and_system_are_read(line: str, kind: str, name: str, version: str) -> None:
    told = {(m.kind, m.name, m.version) for m in read(line).mentions}
    assert (kind, name, version) in told


def test_a_section_of_a_diagnosing_script_names_what_its_version_is_of() -> None:
    environment = read(
        "----------Python Info----------\nVersion      : 3.6.5\n"
        "----------MXNet Info-----------\nVersion      : 1.2.0\n"
    )
    assert [m.version for m in environment.of("python")] == ["3.6.5"]
    assert environment.version("mxnet") == "1.2.0"


@pytest.mark.parametrize(
    "line",
    [
        "OS Platform and Distribution (e.g., Linux Ubuntu 16.04):",
        "<!-- say which version: torch 1.4.0 on Windows 10 -->",
        'File "/usr/lib/python3.6/site-packages/torch/nn/module.py", line 5, in forward',
        "running in docker?: no",
        "if rank==0.5: stop",
        "the loss is 1.25 after epoch 3.0",
    ],
)
def test_what_nobody_told_is_not_read(line: str) -> None:
    assert read(line).mentions == ()


def test_the_first_version_counts_and_each_is_kept_once() -> None:
    environment = read("numpy==1.18.1\nnumpy==1.18.1\nworks with numpy 1.17.0")
    assert environment.version("numpy") == "1.18.1"
    assert [m.version for m in environment.of("library")] == ["1.18.1", "1.17.0"]


@pytest.mark.parametrize("name", ["PyTorch", "torch", "pytorch"])
def test_one_name_for_a_library(name: str) -> None:
    assert library_name(name) == "torch"


@given(st.text(), st.text(alphabet="torchcudapython =.:-/()[]0123456789\n"))
def test_any_text_is_read_and_every_line_is_one_of_the_report(title: str, text: str) -> None:
    lines = {line.strip() for line in f"{title}\n{text}".split("\n")}
    assert all(mention.line in lines for mention in read_environment(Report(title, text)).mentions)
