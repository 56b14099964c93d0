"""Made-up secrets of many kinds, as they stand in logs.

They are put together when they are asked for, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Made", "made_secrets"]

_LETTERS = string.ascii_letters + string.digits
_WORD = _LETTERS + "_-"
_HEX = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Made:
    """A line of a log with a secret.

    Attributes:
        kind: whose secret it is, and where it stands.
        line: the line.
        secret: what must not be shown.
    """

    kind: str
    line: str
    secret: str


def made_secrets(seed: int = 1) -> Iterator[Made]:
    """One line of each kind; other secrets for another seed."""
    draw = random.Random(seed)

    def some(alphabet: str, count: int) -> str:
        return "".join(draw.choices(alphabet, k=count))

    def encoded(count: int) -> str:
        return base64.b64encode(draw.randbytes(count)).decode()

    for kind, line, secret in (
        ("aws access key", "aws s3 cp with {} failed", "AKIA" + some(string.ascii_uppercase, 16)),
        ("aws secret key", "AWS_SECRET_ACCESS_KEY={}", encoded(30)),
        ("aws session token", "aws_session_token = {}", "IQoJ" + encoded(90)),
        ("azure storage", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};", encoded(64)),
        ("azure client secret", "AADSTS7000215 {} invalid", some(_LETTERS, 3) + "8Q~" + some(_LETTERS, 34)),
        ("azure service bus", "Endpoint=sb://x;SharedAccessKey={}", encoded(32)),
        ("google api key", "maps {}", "AI" + "za" + some(_WORD, 35)),
        ("google oauth", "refreshing {}", "ya29" + "." + some(_WORD, 60)),
        ("google client secret", "secret was {}", "GOC" + "SPX-" + some(_WORD, 28)),
        ("slack bot", "slack: {} revoked", "xox" + f"b-{some(string.digits, 12)}-{some(_LETTERS, 24)}"),
        ("slack app", "slack: {} revoked", "xap" + f"p-1-A{some(_LETTERS, 10)}-{some(_HEX, 64)}"),
        ("slack webhook", "POST https://hooks.slack.com/services/{} 404",
         f"T{some(_LETTERS, 8)}/B{some(_LETTERS, 8)}/{some(_LETTERS, 24)}"),
        ("discord webhook", "https://discord.com/api/webhooks/{}", f"{some(string.digits, 18)}/{some(_WORD, 68)}"),
        ("teams webhook", "https://x.webhook.office.com/webhookb2/{}", f"{uuid.UUID(int=draw.getrandbits(128))}@a/b"),
        ("telegram bot", "https://api.telegram.org/bot{}/sendMessage", f"{some(string.digits, 9)}:AA{some(_WORD, 33)}"),
        ("telegram token", "bot {} conflicts", f"{some(string.digits, 9)}:AA{some(_LETTERS, 33)}"),
        ("openai", "Incorrect API key provided: {}.", "s" + "k-" + some(_LETTERS, 48)),
        ("openai project", "with {} failed", "s" + "k-proj-" + some(_WORD, 60) + "T3Blbk" + "FJ" + some(_LETTERS, 20)),
        ("anthropic", "x: {} is invalid", "s" + "k-ant-api03-" + some(_WORD, 92) + "AA"),
        ("openrouter", "x: {} is invalid", "s" + "k-or-v1-" + some(_HEX, 64)),
        ("hugging face", "Invalid user token {}", "h" + "f_" + some(_LETTERS, 34)),
        ("replicate", "token {} rejected", "r" + "8_" + some(_LETTERS, 37)),
        ("groq", "token {} rejected", "g" + "sk_" + some(_LETTERS, 52)),
        ("nvidia", "NGC {} rejected", "nv" + "api-" + some(_WORD, 64)),
        ("pinecone", "index: {} rejected", "pc" + "sk_" + some(_LETTERS, 60)),
        ("langsmith", "tracing with {}", "ls" + f"v2_pt_{some(_HEX, 32)}_{some(_HEX, 10)}"),
        ("wandb", "wandb: login with key: {}", some(_HEX, 40)),
        ("wandb variable", "WANDB_API_KEY={} python train.py", some(_HEX, 40)),
        ("wandb new", "wandb: {} is invalid", "wan" + "db_v1_" + some(_LETTERS, 70)),
        ("neptune", "NEPTUNE_API_TOKEN={}", encoded(60)),
        ("comet", "COMET_API_KEY={}", some(_LETTERS, 25)),
        ("kaggle file", '{{"username": "me", "key": "{}"}}', some(_HEX, 32)),
        ("kaggle variable", "export KAGGLE_KEY={}", some(_HEX, 32)),
        ("github", "git clone https://{}@github.com/a/b", "gh" + "p_" + some(_LETTERS, 36)),
        ("github fine", "remote: {} is wrong", "github" + f"_pat_{some(_LETTERS, 22)}_{some(_LETTERS, 59)}"),
        ("github variable", "GITHUB_PAT={}", some(_LETTERS, 40)),
        ("gitlab", "CI {} expired", "gl" + "pat-" + some(_WORD, 20)),
        ("npm", "npm ERR! with {}", "np" + "m_" + some(_LETTERS, 36)),
        (".npmrc", "//registry.npmjs.org/:_authToken={}", str(uuid.UUID(int=draw.getrandbits(128)))),
        ("pypi", "twine: {} rejected", "py" + "pi-AgEIcHlwaS5vcmc" + some(_WORD, 120)),
        ("docker config", '"https://index.docker.io/v1/": {{"auth": "{}"}}', encoded(24)),
        ("docker token", "denied: {}", "dck" + "r_pat_" + some(_WORD, 27)),
        ("docker login", "+ docker login -u me -p {} registry", some(_LETTERS, 16)),
        ("databricks", "workspace {} forbidden", "da" + "pi" + some(_HEX, 32)),
        ("sendgrid", "mail: {}", "S" + f"G.{some(_WORD, 22)}.{some(_WORD, 43)}"),
        ("mailchimp", "mail: {}", some(_HEX, 32) + "-us12"),
        ("twilio", "sms: {}", "S" + "K" + some(_HEX, 32)),
        ("stripe", "pay: {}", "s" + "k_live_" + some(_LETTERS, 24)),
        ("square", "pay: {}", "sq" + "0csp-" + some(_WORD, 43)),
        ("shopify", "shop: {}", "sh" + "pat_" + some(_HEX, 32)),
        ("vault", "vault: {} expired", "hv" + "s." + some(_LETTERS, 24)),
        ("terraform", "tf: {}", some(_LETTERS, 14) + ".atlas" + "v1." + some(_LETTERS, 67)),
        ("jwt", "kubelet: {} expired", f"eyJ{some(_LETTERS, 20)}.eyJ{some(_LETTERS, 40)}.{some(_WORD, 43)}"),
        ("private key", "-----BEGIN RSA PRIVATE" + " KEY-----\\n{}\\n-----END RSA PRIVATE" + " KEY-----", encoded(60)),
        ("age key", "sops: {}", "AGE-SECRET" + "-KEY-1" + some(string.ascii_uppercase, 58)),
        ("bearer", "Authorization: Bearer {}", some(_WORD, 40)),
        ("basic", "authorization: Basic {}", encoded(24)),
        ("cookie", "Cookie: session={}", some(_LETTERS, 32)),
        ("set-cookie", "'Set-Cookie': 'sid={}; Path=/'", some(_LETTERS, 32)),
        ("x-api-key", "X-Api-Key: {}", some(_LETTERS, 32)),
        ("url password", "postgresql://mlflow:{}@db:5432/runs", some(_LETTERS, 12)),
        ("url signature", "https://b.s3.amazonaws.com/k?X-Amz-Signature={}&x=1", some(_HEX, 64)),
        ("option", "python train.py --api-token {} --lr 1", some(_LETTERS, 12)),
        ("option equals", "python train.py --hub_token={} --lr 1", some(_LETTERS, 12)),
        ("option list", "args: {}", some(_LETTERS, 12)),
        ("password", "login with password={} failed", some(_LETTERS, 12)),
        ("json password", '{{"db_password": "{}"}}', some(_LETTERS, 12)),
        (".netrc", "machine api.wandb.ai login user password {}", some(_HEX, 40)),
        ("curl", "+ curl -s -u me:{} https://host/x", some(_LETTERS, 12)),
        ("webhook secret", "whook: {}", "wh" + "sec_" + some(_LETTERS, 32)),
    ):  # fmt: skip
        shown = json.dumps(["--api-token", secret]) if kind == "option list" else secret
        yield Made(kind, line.format(shown), secret)
