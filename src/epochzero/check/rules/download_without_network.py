"""Something is fetched from the network where there is none."""

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
    for one in downloads_of(program, target, world):
        allowed = () if is_offline(program.job) else target.network.hosts
        if one.host in allowed or caught(one.call.at, ConnectionError):
            continue
        cache = cache_folder(program, target, one.fetch.cache)
        # A cache that somebody placed on purpose may have been filled.
        filled = cache is not None and (cache[1] or world.platform.there(cache[0]) is True)
        sure = one.call.at.certain and one.fetch.hard and not filled
        yield _claim(one, "error" if sure else "warning", where)


def _claim(one: Download, severity: str, where: str) -> Claim:
    name = one.call.name.removesuffix(".__init__")
    what = f" {one.what}" if one.what else ""
    hub = one.fetch.cache == "huggingface"
    return Claim(
        severity="error" if severity == "error" else "warning",
        phase=one.call.at.phase,
        place=one.call.at.place,
        message=f"{name} fetches{what} from {one.host}, and {where} has no way to the internet.",
        consequence=f"OSError: cannot connect to {one.host}; it is tried again and again first."
        if one.fetch.hard
        else "The job would wait for the network, and record nothing.",
        fix="Fetch it before, where there is a network, into a cache that the target sees (HF_HOME), "
        "and set HF_HUB_OFFLINE=1; or give the path of a local copy."
        if hub
        else "Fetch it before, where there is a network, and give its path.",
        via=one.call.at.via,
    )


_OFFLINE = "[network]\ninternet = false\n"
_MODEL = (
    "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('bert-base-uncased')\n"
)
_MOUNTED = ("docker", "run", "-v", ".:/job", "-w", "/job")

RULE = Rule(
    title="Something is fetched from a network that the target does not have",
    category="communication_failure",
    why="Compute nodes often have no way to the internet. Models and data that are fetched at the "
    "first use were in the cache of the author's machine.",
    fix="Fetch before, into a place that the target sees.",
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
