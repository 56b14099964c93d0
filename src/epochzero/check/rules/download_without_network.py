"""The job downloads something, but the target has no network."""

from epochzero.check.findings import Severity
from epochzero.check.launch.containers import is_offline
from epochzero.check.paths.downloads import Download, cache_folder, downloads_of
from epochzero.check.rule import Claim, Claims, JobView, Rule, claim_at, guarded


def _check(view: JobView) -> Claims:
    if view.target.network.internet is not False and not is_offline(view.job):
        return
    where = "the container" if is_offline(view.job) else view.target.name or "the target"
    paths = view.paths
    for download in downloads_of(view.program, view.target, paths):
        allowed = () if is_offline(view.job) else view.target.network.hosts
        if download.host in allowed or guarded(download.call.at, ConnectionError):
            continue
        cache = cache_folder(view.program, view.target, download.fetch.cache)
        # A cache that is configured explicitly may be filled already.
        filled = cache is not None and (cache[1] or paths.platform.there(cache[0]) is True)
        sure = download.call.at.certain and download.fetch.hard and not filled
        yield _claim(download, "error" if sure else "warning", where)


def _claim(download: Download, severity: Severity, where: str) -> Claim:
    name = download.call.name.removesuffix(".__init__")
    what = f" {download.what}" if download.what else ""
    hub = download.fetch.cache == "huggingface"
    return claim_at(
        download.call.at,
        severity=severity,
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
    )


RULE = Rule(
    category="communication_failure",
    why="Compute nodes often have no internet access. Libraries download models and data at first "
    "use. On the author's machine, the cache often already contains these files.",
    fix="Download the files in advance to a location that the target can read.",
    source="transformers documentation, offline mode; huggingface/transformers #9147",
    check=_check,
    examples="""
        from transformers import AutoModel
        model = AutoModel.from_pretrained('bert-base-uncased')  # <-
        ==> target.toml <==
        [network]
        internet = false
        ---- ignored if

        +[environment]
        +HF_HUB_OFFLINE = "1"
        +
        ---- ignored if
         internet = false
        +hosts = ["huggingface.co"]
        ---- caught if
        -from transformers import AutoModel
        -model = AutoModel.from_pretrained('bert-base-uncased')  # <-
        +from torchvision import datasets
        +data = datasets.CIFAR10('data', download=True)  # <-
        ---- caught if
        -from transformers import AutoModel
        -model = AutoModel.from_pretrained('bert-base-uncased')  # <-
        +from torchvision.models import resnet50, ResNet50_Weights
        +net = resnet50(weights=ResNet50_Weights.DEFAULT)  # <-
        ---- caught if
        -from transformers import AutoModel
        -model = AutoModel.from_pretrained('bert-base-uncased')  # <-
        +from datasets import load_dataset
        +data = load_dataset('squad')  # <-
        ---- caught if
        -from transformers import AutoModel
        -model = AutoModel.from_pretrained('bert-base-uncased')  # <-
        +import urllib.request
        +urllib.request.urlretrieve('https://example.org/a.zip', 'a.zip')  # <-
        ---- caught if
        -from transformers import AutoModel
        -model = AutoModel.from_pretrained('bert-base-uncased')  # <-
        +import timm
        +net = timm.create_model('vit_base', pretrained=True)  # <-
        ---- ignored if
        -model = AutoModel.from_pretrained('bert-base-uncased')
        +model = AutoModel.from_pretrained('./bert')
        +==> bert/config.json <==
        +{}
        ---- ignored if
        -from transformers import AutoModel
        -model = AutoModel.from_pretrained('bert-base-uncased')
        +from torchvision.models import resnet50
        +net = resnet50()
        ----
        $ docker run -v .:/job -w /job --network none image python train.py
        from transformers import AutoModel
        model = AutoModel.from_pretrained('bert-base-uncased')  # <-
        ---- ignored if
        -$ docker run -v .:/job -w /job --network none image python train.py
        ----
        import requests
        requests.get('http://localhost:8080/ready')
        ==> target.toml <==
        [network]
        internet = false
        ---- ignored if
        -requests.get('http://localhost:8080/ready')
        +try:
        +    requests.get('https://example.org/ping')
        +except Exception:
        +    pass
    """,
)
