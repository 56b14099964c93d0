"""A library cannot write its cache."""

from epochzero.check.paths.analysis import PathAnalysis
from epochzero.check.paths.downloads import cache_folder, downloads_of
from epochzero.check.rule import Claims, JobView, Rule, claim_at, guarded

_SAID_BY = {
    "huggingface": "HF_HOME",
    "torch": "TORCH_HOME",
    "nltk": "NLTK_DATA",
    "keras": "KERAS_HOME",
}


def _check(view: JobView) -> Claims:
    if view.target.network.internet is False:
        return
    paths, reported = view.paths, set()
    for download in downloads_of(view.program, view.target, paths):
        place = cache_folder(view.program, view.target, download.fetch.cache)
        own = {"cache_dir", "local_dir", "model_dir"} & download.call.keywords.keys()
        if (
            place is None
            or own
            or place[0] in reported
            or guarded(download.call.at, PermissionError)
        ):
            continue
        reason = _refusal(paths, place[0])
        if reason:
            reported.add(place[0])
            variable = _SAID_BY.get(download.fetch.cache, "its cache variable")
            yield claim_at(
                download.call.at,
                message=f"{download.call.name} stores its downloads in {place[0]}, but {reason}.",
                consequence=f"PermissionError: [Errno 13] Permission denied: '{place[0]}'",
                fix=f"Set {variable} to a directory that is writable on the target.",
            )


def _refusal(paths: PathAnalysis, folder: str) -> str:
    """Why the cache cannot be created or written; empty if nothing is known to prevent it."""
    platform, user = paths.platform, paths.platform.target.user
    refused = platform.refusal(folder)
    if refused:
        return refused
    home = user.home if user else ""
    if home and folder.startswith(home) and platform.there(home) is False:
        return f"the home directory {home} does not exist"
    return ""


RULE = Rule(
    category="permission_denied",
    why="Libraries store models and data in the home directory. In a container or on a compute "
    "node, this directory is often read-only or missing.",
    fix="Set HF_HOME, TORCH_HOME or the corresponding variable to a writable directory on the "
    "target.",
    source="huggingface_hub documentation: environment variables",
    check=_check,
    examples="""
        from transformers import AutoModel
        AutoModel.from_pretrained('bert-base-uncased')  # <-
        ==> target.toml <==
        [user]
        name = "mara"
        uid = 1000
        home = "/home/mara"

        [[mounts]]
        path = "/home"
        writable = false

        [[mounts]]
        path = "/scratch"
        ---- caught if
        -from transformers import AutoModel
        -AutoModel.from_pretrained('bert-base-uncased')  # <-
        +from torchvision.models import resnet18
        +net = resnet18(weights='DEFAULT')  # <-
        ---- caught if
        -from transformers import AutoModel
        -AutoModel.from_pretrained('bert-base-uncased')  # <-
        +import nltk
        +nltk.download('punkt')  # <-
        ---- ignored if
         path = "/scratch"

        +[environment]
        +HF_HOME = "/scratch/hf"
        +
        ---- ignored if
        -AutoModel.from_pretrained('bert-base-uncased')
        +AutoModel.from_pretrained('bert-base-uncased', cache_dir='/scratch/hf')
        ---- ignored if
        -from transformers import AutoModel
        -AutoModel.from_pretrained('bert-base-uncased')
        +import torch
        +model = torch.nn.Linear(2, 2)
        ----
        from transformers import AutoModel
        AutoModel.from_pretrained('bert-base-uncased')  # <-
        ==> target.toml <==
        [user]
        name = "mara"
        uid = 1000
        home = "/home/mara"

        [files]
        "/home/mara" = false
        ---- ignored if
        -[files]
        -"/home/mara" = false
        ----
        from transformers import AutoModel
        AutoModel.from_pretrained('bert-base-uncased')
    """,
)
