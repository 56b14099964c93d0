"""The job downloads something, but the target has no network."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.check.job.containers import is_offline
from epochzero.check.paths.downloads import Download, cache_folder, downloads_of
from epochzero.check.paths.world import caught, world_of
from epochzero.check.rules.base import Case, Claim, Program, Rule, Target


def _check(program: Program, target: Target) -> Iterator[Claim]:
    if target.network.internet is not False and not is_offline(program.job):
        return
    where = "the container" if is_offline(program.job) else target.name or "the target"
    world = world_of(program, target)
    for download in downloads_of(program, target, world):
        allowed = () if is_offline(program.job) else target.network.hosts
        if download.host in allowed or caught(download.call.at, ConnectionError):
            continue
        cache = cache_folder(program, target, download.fetch.cache)
        # A cache that is configured explicitly may be filled already.
        filled = cache is not None and (cache[1] or world.platform.there(cache[0]) is True)
        sure = download.call.at.certain and download.fetch.hard and not filled
        yield _claim(download, "error" if sure else "warning", where)


def _claim(download: Download, severity: str, where: str) -> Claim:
    name = download.call.name.removesuffix(".__init__")
    what = f" {download.what}" if download.what else ""
    hub = download.fetch.cache == "huggingface"
    return Claim(
        severity="error" if severity == "error" else "warning",
        phase=download.call.at.phase,
        place=download.call.at.place,
        message=f"{name} downloads{what} from {download.host}, but {where} has no internet access.",
        consequence=f"OSError: cannot connect to {download.host}, after several retries."
        if download.fetch.hard
        else "The job would wait for the network, and record nothing.",
        fix=(
            "Download it in advance, on a machine with internet access, into a cache that the "
            "target can read (HF_HOME), and set HF_HUB_OFFLINE=1. Or pass the path of a local "
            "copy."
        )
        if hub
        else "Download it in advance, on a machine with internet access, and pass its path.",
        via=download.call.at.via,
    )


_OFFLINE = "[network]\ninternet = false\n"
_MODEL = (
    "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('bert-base-uncased')\n"
)
_MOUNTED = ("docker", "run", "-v", ".:/job", "-w", "/job")

RULE = Rule(
    title="The job downloads something, but the target has no network",
    category="communication_failure",
    why="Compute nodes often have no internet access. On the author's machine, models and data "
    "that are downloaded at first use were already in the cache.",
    fix="Download in advance, to a location that the target can read.",
    source="transformers documentation, offline mode; huggingface/transformers #9147",
    check=_check,
    catches=(
        Case({"train.py": _MODEL}, target=_OFFLINE, line=2),
        Case(
            {"train.py": _MODEL},
            command=(*_MOUNTED, "--network", "none", "image", "python", "train.py"),
            line=2,
        ),
        Case(
            {
                "train.py": "from torchvision import datasets\n"
                "data = datasets.CIFAR10('data', download=True)\n"
            },
            target=_OFFLINE,
            line=2,
        ),
        Case(
            {
                "train.py": "from torchvision.models import resnet50, ResNet50_Weights\n"
                "net = resnet50(weights=ResNet50_Weights.DEFAULT)\n"
            },
            target=_OFFLINE,
            line=2,
        ),
        Case(
            {"train.py": "from datasets import load_dataset\ndata = load_dataset('squad')\n"},
            target=_OFFLINE,
            line=2,
        ),
        Case(
            {
                "train.py": "import urllib.request\n"
                "urllib.request.urlretrieve('https://example.org/a.zip', 'a.zip')\n"
            },
            target=_OFFLINE,
            line=2,
        ),
        Case(
            {"train.py": "import timm\nnet = timm.create_model('vit_base', pretrained=True)\n"},
            target=_OFFLINE,
            line=2,
        ),
        Case(
            {
                "train.py": "import torchaudio\n"
                "model = torchaudio.pipelines.WAV2VEC2_BASE.get_model()\n"
            },
            target=_OFFLINE,
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": _MODEL}),
        Case(
            {"train.py": _MODEL},
            command=(*_MOUNTED, "--network", "host", "image", "python", "train.py"),
        ),
        Case({"train.py": _MODEL}, target=f'{_OFFLINE}\n[environment]\nHF_HUB_OFFLINE = "1"\n'),
        Case(
            {
                "train.py": "from transformers import AutoModel\n"
                "model = AutoModel.from_pretrained('./bert')\n",
                "bert/config.json": "{}",
            },
            target=_OFFLINE,
        ),
        Case(
            {"train.py": "from torchvision.models import resnet50\nnet = resnet50()\n"},
            target=_OFFLINE,
        ),
        Case(
            {
                "train.py": "from torchvision import datasets\n"
                "data = datasets.MNIST('data', download=True)\n",
                "data/MNIST/raw/x": "x",
            },
            target=_OFFLINE,
        ),
        Case(
            {"train.py": _MODEL}, target='[network]\ninternet = false\nhosts = ["huggingface.co"]\n'
        ),
        Case(
            {
                "train.py": "import requests\ntry:\n"
                "    requests.get('https://example.org/ping')\nexcept Exception:\n    pass\n"
            },
            target=_OFFLINE,
        ),
        Case(
            {"train.py": "import requests\nrequests.get('http://localhost:8080/ready')\n"},
            target=_OFFLINE,
        ),
    ),
)
