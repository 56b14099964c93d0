"""The environment that a report describes: libraries, Python, CUDA, GPU, system, container, versions.

Deterministic, line by line: pins and freezes (``torch==1.4``, ``conda list``), fields of issue
templates (``PyTorch Version: 1.3``), sections (``---Python Info---``) and prose ("on Ubuntu 18.04").
Examples in a template are ignored. Jahan et al. (EMSE 2025, Section 7) request exactly
this: to capture the environment of a report, since extrinsic bugs hide in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from epochzero.locate.report import Report

Kind = Literal[
    "library", "python", "cuda", "cudnn", "driver", "gpu", "operating_system", "container"
]

LONGEST_LINE = 300
"""Longer lines are data or listings, and nobody writes a version at their end."""

_LIBRARIES = """
allennlp bazel caffe catboost chainer clang clojure cmake coremltools cupy cython dali dask detectron2
django dm-sonnet fairseq fastai flask flax gcc gensim gluon-nlp gluonnlp gpflow grpcio gunicorn gym
h5py horovod huggingface-hub ipython jax jaxlib java jupyter keras keras-applications
keras-preprocessing kfserving kubernetes lightgbm llvm matplotlib mkl mkl-dnn mkldnn mpi4py msvc
mxnet nccl networkx ninja nltk node nodejs npm numba numpy nvcc onednn onnx onnx-tf onnxruntime
openblas opencv opencv-python openmp openmpi openvino pandas pillow pip protobuf pyarrow pydantic
pyro pyspark pytest pytorch-ignite pytorch-lightning pyyaml ray requests scala scikit-image
scikit-learn scipy seaborn sentencepiece setuptools sonnet spacy spark statsmodels tensorboard
tensorboardx tensorflow tensorflow-addons tensorflow-gpu tensorflow-hub tensorflow-io
tensorflow-probability tensorflowjs tensorrt tfjs thinc tokenizers torch torchaudio torchtext
torchvision tornado tqdm transformers tvm typescript urllib3 wandb werkzeug xgboost yarn
"""
_ALIASES = {
    "caffe2": "torch",
    "cv2": "opencv",
    "mkl-dnn": "mkldnn",
    "nodejs": "node",
    "onednn": "mkldnn",
    "opencv-contrib-python": "opencv",
    "opencv-python": "opencv",
    "opencv-python-headless": "opencv",
    "pil": "pillow",
    "pytorch": "torch",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "tensorflow-core": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tf": "tensorflow",
    "tf-nightly": "tensorflow",
    "yaml": "pyyaml",
}
_KNOWN = frozenset(_LIBRARIES.split()) | _ALIASES.keys()
_NO_NAMES = "cuda cudnn driver framework gpu os package platform system the this"
_NOT_LIBRARIES = frozenset(_NO_NAMES.split())

_VERSION = r"(?P<version>\d+(?:\.\w+)+(?:[+-][\w.]+)?)"
_EXAMPLE = re.compile(
    r"[(\[](?:e\.?g\.?|if |for example|use |please)[^()\[\]\n]*[)\]]|\[(?:GCC|MSC|Clang) [^\]\n]*\]?",
    re.IGNORECASE,
)
"""What a template proposes, and the compiler in Python's own banner."""
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FRAME = re.compile(r'File "|(?:site|dist)-packages|^\s*at \S|^\s*\[bt\]|^\s*#\d+ ')
_SECTION = re.compile(r"^\W{3,}\s*(?P<name>[A-Za-z]+) Info\b")
_SECTION_VERSION = re.compile(r"^\W{0,3}Version\W{1,12}(?P<version>\d+(?:\.\w+)+)")

_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,40})"
_PIN = re.compile(rf"(?<![\w./-]){_NAME}(?:\[[\w,-]+\])?==v?(?P<version>\d[\w.+!-]*)")
_CONDA = re.compile(
    rf"^(?:\[conda\]\s*|-\s*)?{_NAME}(?:=|\s+){_VERSION}(?:=|\s+)\w*(?:py\w*\d|h[0-9a-f]{{6}}|_\d|pypi)"
)
_LISTED = re.compile(rf"^{_NAME}\s{{2,}}{_VERSION}$")
_FIELD = re.compile(
    rf"^\W{{0,6}}(?:\[pip3?\]\s*)?{_NAME}(?P<is_version>[ _-]+version|\.(?:__version__|VERSION))?"
    rf"[\s*`]{{0,12}}(?:[:=]|\s-\s|\sis\s)[\s*`'\"]{{0,12}}(?:{_NAME.replace('name', 'again')}[ =:]+)?"
    rf"(?:version )?v?{_VERSION}",
    re.IGNORECASE,
)
_PROSE = re.compile(
    rf"(?<![\w./\\-])(?P<name>{'|'.join(sorted(map(re.escape, _KNOWN), key=len, reverse=True))})"
    rf"(?:[ =@:*`-]{{1,3}}|[ (]*version[ :=]{{1,3}}|[ ]?[<>=~]=?[ ]?)?v?{_VERSION}(?![\w/\\])",
    re.IGNORECASE,
)
_MAJOR = re.compile(
    r"(?<![\w./\\-])(?P<name>TF|tensorflow|keras)(?: v?|-|)(?P<version>[123])(?![\w./\\]|-\w)",
    re.IGNORECASE,
)

_GPUS = (
    r"(?:geforce |nvidia |quadro )*(?:rtx|gtx|titan|quadro|tesla)[ -]?(?:[a-z]{0,3}\d{2,4}\w{0,2}|rtx|xp?|v|black|z)"
    r"(?: ?(?:ti|super|max-q))?(?:-[a-z]+\d?-\d+gb)?\b|\b(?:nvidia )?[akpvhl]\d{2,3}(?= gpus?\b)"
    r"|\b(?:nvidia|aws|gcp|colab)[ -](?:t4|k80|a100|v100|p100|h100|m60)\b|\bjetson(?:[ -](?:nano|tx[12]|xavier|agx|orin))?"
    r"|\b(?:radeon|amd gpu|rx ?\d{3,4})\w*"
)
_SYSTEMS = (
    r"(?:windows|win)(?: server)?[ -]?(?:xp|7|8(?:\.1)?|10|11|20\d\d)(?![\d.])"
    r"|(?:mac ?os(?: ?x)?|os ?x|darwin)(?:[ -](?:high sierra|sierra|mojave|catalina|big sur|monterey))?[ -]?v?(?:1[0-9](?:\.\d+)*)?"
    r"|(?:ubuntu|debian|centos|fedora|rhel|red ?hat\w*|amazon linux|suse|alpine|arch ?linux|manjaro|mint)(?: linux)?(?:[ -]server)?[ -]*v?(?:\d+(?:\.\d+)*)?"
    r"|\b(?:windows|android|ios|raspbian|raspberry ?pi|freebsd|wsl2?|linux)\b"
)
_DEVICE_TEXTS: tuple[tuple[Kind, str], ...] = (
    (
        "python",
        rf"(?<![\w/\\.-])python(?:[ _-]?version)?(?:[ :=`*]{{1,10}}(?:python )?|)v?{_VERSION}(?![\w/\\]|-\w)",
    ),
    (
        "cudnn",
        r"(?<![\w/\\.-])cudnn(?: library)?(?:[ _-]?version)?[ :=_v]{1,5}(?P<version>\d(?:\.\d+)*)(?![\w/\\])",
    ),
    ("cudnn", r"\bcuda ?/ ?cudnn version\s*:?[^/\n]{1,30}/\s*(?P<version>\d(?:\.\d+)+)"),
    (
        "cuda",
        r"(?<![\w/\\.])cuda(?: ?/ ?cudnn)?(?: toolkit| runtime)?(?:[ _-]?version)?[ :=_v-]{0,5}(?:cuda )?"
        r"(?P<version>\d{1,2}(?:\.\d+)+|[789](?![\w.]))(?![\w/\\])",
    ),
    ("cuda", r"\brelease (?P<version>\d{1,2}\.\d), V\d"),
    ("cuda", r"(?<=[+-])cu(?P<version>(?:9|1[0-3])\d{1,2})\b"),
    ("driver", r"\bdriver(?:s)?(?: version)?[ :=v]{1,4}(?P<version>\d{3}\.\d+(?:\.\d+)?)"),
    ("gpu", rf"(?<![\w/])(?P<name>{_GPUS})"),
    ("operating_system", rf"(?<![\w/.-])(?P<name>{_SYSTEMS})(?![\w/])"),
    ("container", r"(?<![\w/.-])(?P<name>nvcr\.io/[\w/.-]+|docker|singularity|podman)\b"),
)
_DEVICES = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _DEVICE_TEXTS)
_FIELD_VERSION = re.compile(r"(?:^|[_.-]+)version_*$", re.IGNORECASE)
_DENIED = re.compile(r"[:?=]\s*(?:no|none|false|n/a)\W*$", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)*$")


@dataclass(frozen=True, slots=True)
class EnvironmentMention:
    """Something of the environment that a report names.

    Attributes:
        kind: type of the component.
        name: of a library in lower case with ``-`` (`library_name`); of a GPU, system or container
            as written; otherwise the kind.
        version: as written; empty if there is none.
        line: the line that contains it.
    """

    kind: Kind
    name: str
    version: str
    line: str


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment that a report describes.

    Attributes:
        mentions: in the order of the text, each kind, name and version once.
    """

    mentions: tuple[EnvironmentMention, ...]

    def of(self, kind: Kind) -> tuple[EnvironmentMention, ...]:
        """The mentions of one kind."""
        return tuple(mention for mention in self.mentions if mention.kind == kind)

    def version(self, library: str) -> str:
        """The first version of a library in the report; empty if there is none."""
        wanted = library_name(library)
        return next((m.version for m in self.of("library") if m.name == wanted), "")


def library_name(name: str) -> str:
    """One name for all ways of writing a library: ``PyTorch`` and ``torch``, ``tf`` and ``tensorflow_gpu``.

    >>> library_name("TensorFlow_GPU")
    'tensorflow'
    """
    plain = name.lower().replace("_", "-").strip("-.")
    return _ALIASES.get(plain, plain)


def is_library(name: str) -> bool:
    """Whether a name is that of a library, compiler or tool that reports often name."""
    return library_name(name) in _KNOWN


def read_environment(report: Report) -> Environment:
    """Extract the environment that a report describes."""
    found: dict[tuple[Kind, str, str], EnvironmentMention] = {}
    text = _HIDDEN.sub("", f"{report.title}\n{report.text}")
    section = ""
    for raw in text.split("\n"):
        line = raw.strip()
        if not line or len(line) > LONGEST_LINE or _FRAME.search(line):
            continue
        if header := _SECTION.match(line):
            section = header["name"]
        for mention in (*_in_section(section, line), *_in_line(line)):
            found.setdefault((mention.kind, mention.name.lower(), mention.version), mention)
    return Environment(tuple(found.values()))


def _in_section(section: str, line: str) -> Iterator[EnvironmentMention]:
    """The version below a heading in the output of a diagnostic script."""
    if section and (version := _SECTION_VERSION.match(line)):
        if section.lower() == "python":
            yield EnvironmentMention("python", "python", version["version"], line)
        elif library_name(section) in _KNOWN:
            yield EnvironmentMention("library", library_name(section), version["version"], line)


def _in_line(line: str) -> Iterator[EnvironmentMention]:
    text = _EXAMPLE.sub("", line)
    if _DENIED.search(text):
        return
    for name, version in _libraries(text):
        if library_name(name) == "python":
            yield EnvironmentMention("python", "python", version, line)
        else:
            yield EnvironmentMention("library", library_name(name), version, line)
    for kind, pattern in _DEVICES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            name, version = (parts.get("name") or kind).strip(), parts.get("version") or ""
            if kind == "cuda" and version.isdigit() and len(version) > 2:
                version = f"{version[:-1]}.{version[-1]}"  # as wheels write it: cu101
            if kind == "operating_system" and (number := _NUMBER.search(name)):
                name, version = name[: number.start()].strip(" -v"), number[0]
            yield EnvironmentMention(kind, name, version, line)


def _libraries(text: str) -> Iterator[tuple[str, str]]:
    """Names and versions of libraries in a line, the surest way of writing first."""
    whole = _CONDA.match(text) or _LISTED.match(text)
    if whole and (whole["version"].count(".") > 1 or is_library(whole["name"])):
        yield whole["name"], whole["version"]
        return
    if (field := _FIELD.match(text)) and _names_library(field):
        yield _FIELD_VERSION.sub("", field["name"]), field["version"]
    for pin in _PIN.finditer(text):
        # ``==`` is also a comparison: an unknown name must be alone in its line or be installed.
        if is_library(pin["name"]) or pin[0] == text.strip("-*` []") or "install" in text:
            yield pin["name"], pin["version"].rstrip(".-")
    for pattern in (_PROSE, _MAJOR):
        for match in pattern.finditer(text):
            yield match["name"], match["version"].rstrip(".-")


def _names_library(field: re.Match[str]) -> bool:
    bare = _FIELD_VERSION.sub("", field["name"])
    name = library_name(bare)
    if not name or name in _NOT_LIBRARIES:
        return False
    return name in _KNOWN or name == "python" or bare != field["name"] or bool(field["is_version"])
