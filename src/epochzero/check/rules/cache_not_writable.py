"""A library cannot write to its cache directory."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.check.paths.downloads import cache_folder, downloads_of
from epochzero.check.paths.world import World, caught, world_of
from epochzero.check.rules.base import Case, Claim, Program, Rule, Target, claim_at

_SAID_BY = {
    "huggingface": "HF_HOME",
    "torch": "TORCH_HOME",
    "nltk": "NLTK_DATA",
    "keras": "KERAS_HOME",
}


def _check(program: Program, target: Target) -> Iterator[Claim]:
    if target.network.internet is False:
        return
    world, reported = world_of(program, target), set()
    for download in downloads_of(program, target, world):
        place = cache_folder(program, target, download.fetch.cache)
        own = {"cache_dir", "local_dir", "model_dir"} & download.call.keywords.keys()
        if (
            place is None
            or own
            or place[0] in reported
            or caught(download.call.at, PermissionError)
        ):
            continue
        reason = _refusal(world, place[0])
        if reason:
            reported.add(place[0])
            variable = _SAID_BY.get(download.fetch.cache, "its cache variable")
            yield claim_at(
                download.call.at,
                message=f"{download.call.name} stores its downloads in {place[0]}, but {reason}.",
                consequence=f"PermissionError: [Errno 13] Permission denied: '{place[0]}'",
                fix=f"Set {variable} to a directory that is writable on the target.",
            )


def _refusal(world: World, folder: str) -> str:
    """Why the cache cannot be created or written; empty if nothing is known to prevent it."""
    platform, user = world.platform, world.platform.target.user
    refused = platform.refusal(folder)
    if refused:
        return refused
    home = user.home if user else ""
    if home and folder.startswith(home) and platform.there(home) is False:
        return f"the home directory {home} does not exist"
    return ""


_USER = '[user]\nname = "mara"\nuid = 1000\nhome = "/home/mara"\n\n'
_READ_ONLY = (
    f'{_USER}[[mounts]]\npath = "/home"\nwritable = false\n\n[[mounts]]\npath = "/scratch"\n'
)
_MODEL = "from transformers import AutoModel\nAutoModel.from_pretrained('bert-base-uncased')\n"
_NET = "from torchvision.models import resnet18\nnet = resnet18(weights='DEFAULT')\n"

RULE = Rule(
    title="A library cannot write its cache",
    category="permission_denied",
    why="Libraries store models and data in the home directory, which is often read-only or "
    "missing in a container or on a compute node.",
    fix="Set HF_HOME, TORCH_HOME or the corresponding variable to a directory that is writable "
    "on the target.",
    source="huggingface_hub documentation: environment variables",
    check=_check,
    catches=(
        Case({"train.py": _MODEL}, target=_READ_ONLY, line=2),
        Case({"train.py": _NET}, target=_READ_ONLY, line=2),
        Case({"train.py": _MODEL}, target=f'{_USER}[files]\n"/home/mara" = false\n', line=2),
        Case(
            {"train.py": "import nltk\nnltk.download('punkt')\n"},
            target=_READ_ONLY,
            line=2,
        ),
        Case(
            {"train.py": _MODEL},
            target=f'{_READ_ONLY}\n[environment]\nHF_HOME = "/home/shared/models"\n',
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": _MODEL}, target=_USER),
        Case({"train.py": _MODEL}),
        Case(
            {"train.py": _MODEL}, target=f'{_READ_ONLY}\n[environment]\nHF_HOME = "/scratch/hf"\n'
        ),
        Case(
            {
                "train.py": "from transformers import AutoModel\n"
                "AutoModel.from_pretrained('bert-base-uncased', cache_dir='/scratch/hf')\n"
            },
            target=_READ_ONLY,
        ),
        Case({"train.py": "import torch\nmodel = torch.nn.Linear(2, 2)\n"}, target=_READ_ONLY),
    ),
)
