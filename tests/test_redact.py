"""Secrets are hidden, everything else stays as it was."""

from __future__ import annotations

import base64
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.made_secrets import made_secrets
from epochzero.redact import HIDDEN, redact, redact_all, redact_command, redact_log
from tests.waiting import bounded_work

# Made up; put together here so that nothing takes this file for a leak.
LETTERS = "AbCdEfGh1234567890IjKlMnOpQrStUvWxYz0987654321"
HEX = "0123456789abcdef0123456789abcdef01234567"

SECRETS = [
    ("aws s3 cp with {} failed", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("aws_access_key_id = {}", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("aws_secret_access_key={}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AWS_SECRET_ACCESS_KEY='{}'", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ('{{"SecretAccessKey": "{}"}}', "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("Invalid user token {}", "hf_" + LETTERS[:34]),
    ("HF_TOKEN={} python train.py", "hf_" + LETTERS[:34]),
    ("WANDB_API_KEY={}", HEX),
    ("wandb: login with key: {}", HEX),
    ("wandb login {}", HEX),
    ("OPENAI_API_KEY: {}", "sk-" + LETTERS[:40]),
    ("Incorrect API key provided: {}", "sk-proj-" + LETTERS[:40]),
    ("git clone https://{}@github.com/a/b", "ghp_" + LETTERS[:36]),
    ("remote: {} is wrong", "github_pat_" + LETTERS[:40]),
    ("GITLAB {}", "glpat-" + LETTERS[:20]),
    ("slack {}", "xoxb-" + "123456789012-abcdefghij"),
    ("maps {}", "AIza" + LETTERS[:35]),
    ("jwt {}", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + LETTERS[:30]),
    ("postgresql://mlflow:{}@db:5432/runs", "pa55w.rd"),
    ("redis://:{}@cache:6379", "pa55w.rd"),
    ("https://user:{}@registry.example.com/v2", "pa55w.rd"),
    ("GET https://b.s3.amazonaws.com/k?X-Amz-Signature={}&x=1", HEX),
    ("https://x.blob.core.windows.net/c/f?sv=2020&sig={}", "abc%2Fdef%3D"),
    ("https://storage.googleapis.com/b/o?X-Goog-Signature={}", HEX),
    ("https://api.example.com/v1?api_key={}", "abcdef123456"),
    ("https://api.example.com/v1?user=1&access_token={}", "abcdef123456"),
    ("Authorization: Bearer {}", LETTERS[:30]),
    ("authorization: basic {}", "dXNlcjpwYXNzd29yZA=="),
    ("'Authorization': 'token {}'", LETTERS[:30]),
    ("headers Bearer {} rejected", LETTERS[:30]),
    ("login with password={} failed", "hunter2x"),
    ("--password {}", "hunter2x"),
    ("train.py --api-key={}", "abcdef123456"),
    ("train.py --token {}", "abcdef123456"),
    ('config: {{"db_password": "{}"}}', "s3cr3t-p4ss"),
    ("passwd: {}", "s3cr3t-p4ss"),
    ("client_secret = {}", "Zx9~abcdEFGH"),
    ("MY_SERVICE_TOKEN={}", "abc123def456"),
    ("NEPTUNE_API_TOKEN={}", LETTERS[:40]),
    ("token: {}", LETTERS[:30]),
    ("private_key={}", LETTERS[:30]),
    ("-----BEGIN RSA PRIVATE KEY-----{}-----END RSA PRIVATE KEY-----", LETTERS),
    ("-----BEGIN PRIVATE KEY-----\n{}", LETTERS),
]

ORDINARY = [
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "KeyError: 'password'",
    'Missing key(s) in state_dict: "encoder.layer.0.weight", "key_proj.bias"',
    'RuntimeError: size mismatch for query_key_value.weight: copying a param with shape [3, 4]',
    "eos_token_id=50256",
    "Setting `pad_token_id` to `eos_token_id`:50256 for open-end generation.",
    "tokenizer.pad_token = tokenizer.eos_token",
    "{'bos_token': '<s>', 'unk_token': 'unknown', 'pad_token': '[PAD]'}",
    "max_new_tokens=2048, num_tokens: 1234567, tokens=100000",
    "image_token_index: 32000",
    "Token indices sequence length is longer than the specified maximum (1024 > 512)",
    "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
    "DefaultCredentialsError: Could not automatically determine credentials.",
    "An error occurred (InvalidAccessKeyId) when calling the GetObject operation",
    "InvalidAccessKeyId: The AWS Access Key Id you provided does not exist in our records.",
    "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
    "fatal: could not read Password: No such device or address",
    "SecretNotFound: secret trainer in namespace ml was not found",
    "password: None, api_key: null, secret=True",
    "https://huggingface.co/bert-base-uncased/resolve/main/config.json?download=true",
    "FileNotFoundError: [Errno 2] No such file or directory: 'https://x/y@z'",
    "ssh git@github.com:user/repo.git",
    f"checked out {HEX}, submodule at {HEX[:12]}",
    "wandb: 🚀 View run at https://wandb.ai/team/project/runs/3kx0v9ab",
    "wandb: Syncing run dashing-pine-42 (run-20240501_120000-3kx0v9ab)",
    f"/root/.cache/huggingface/hub/models--bert-base-uncased/snapshots/{HEX}/config.json",
    "/scratch/sk-learn-experiments/task-4242-npm_cache/pip-7xk2/hf_home/token_counts.npy",
    "tensor([[-0.0213,  0.1544, -1.2e-05],\n        [ 0.3321, nan, 4.5000]], device='cuda:0')",
    f"data:image/png;base64,{base64.b64encode(random.Random(5).randbytes(6000)).decode()}",
    f"md5 {HEX[:32]}, uuid 123e4567-e89b-12d3-a456-426614174000, digest sha256:{HEX}{HEX[:24]}",
    "error: the following arguments are required: --password, --token, --api-key",
    "python train.py --tokenizer gpt2 --max-tokens 2048 --eos-token </s> --token-dropout 0.1",
    "XDG_SESSION_ID=42 OLDPWD=/home/anna PATH=/usr/bin LD_PATH=/x",
    "auth: failed for user anna; cookie jar is empty; machine gpu-04 login failed",
    "SKIPPED: hook dapi_client.step, fw_attention_forward_with_a_rather_long_name_here()",
    "multi-head attention: num_heads=16, key_size=64, query=1",
    "keys: ['a', 'b']; author: Anna; passes: 12; bypass: none; compass=north",
    "lr=0.001 seed=1234567890 sha=0123456789abcdef0123456789abcdef01234567",
    "task-key: sk-learn pipeline; risk-free",
    "[rank3]:   File \"/opt/token/secret.py\", line 3, in password",
    "Epoch 3: 100%|##########| 9/9 [00:01<00:00, 8.1it/s, passed=12]",
]  # fmt: skip


@pytest.mark.parametrize(("template", "secret"), SECRETS)
def test_secrets_are_hidden(template: str, secret: str) -> None:
    shown = redact(template.format(secret))
    assert secret not in shown
    assert HIDDEN in shown
    assert all(secret[n : n + 9] not in shown for n in range(len(secret) - 8))


@pytest.mark.parametrize("kind", [made.kind for made in made_secrets()])
def test_secrets_of_many_kinds_are_hidden(kind: str) -> None:
    for seed in range(20):
        (made,) = (made for made in made_secrets(seed) if made.kind == kind)
        shown = redact(made.line)
        assert not any(made.secret[n : n + 9] in shown for n in range(len(made.secret) - 8))
        assert redact_log(b"a\n" + made.line.encode() + b"\nb\n").decode() == f"a\n{shown}\nb\n"
        assert redact(shown) == shown


@pytest.mark.parametrize(("template", "secret"), SECRETS)
def test_secrets_in_a_log_are_hidden_and_other_lines_keep_their_bytes(
    template: str, secret: str
) -> None:
    line = template.format(secret)
    before, after = b"step 1\xff\r\nkey: 12\n", b"step 2\nToken indices\n"
    shown = redact_log(before + line.encode() + b"\n" + after)
    assert shown.startswith(before + redact(line).encode())
    if "BEGIN" not in line:  # A key ends with its last line.
        assert shown == before + redact(line).encode() + b"\n" + after


def test_an_assignment_over_two_lines_of_a_log_is_hidden() -> None:
    data = b"a\npassword\n = hunter2x\nb\npassword=\n"
    assert redact_log(data) == b"a\npassword\n = [redacted]\nb\npassword=\n"


def test_a_redacted_key_hides_nothing_after_it() -> None:
    key = b"-----BEGIN PRIVATE KEY-----\nMIIEpA\n-----END PRIVATE KEY-----\n"
    redacted = redact_log(key + b"step 1\n")
    assert redacted == b"-----BEGIN PRIVATE KEY-----[redacted]\nstep 1\n"
    assert redact_log(redacted) == redacted


def test_a_log_is_redacted_by_several_threads_at_once() -> None:
    lines = [b"step %d\n" % n if n % 9 else b"password=hunter2x\n" for n in range(2000)]
    wanted = redact_log(b"".join(lines))
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(redact_log, [b"".join(lines)] * 20)) == {wanted}


def test_what_kind_of_secret_it_was_stays_readable() -> None:
    shown = redact("login to postgresql://mlflow:pa55w.rd@db:5432/runs with password=hunter2x")
    assert shown == f"login to postgresql://mlflow:{HIDDEN}@db:5432/runs with password={HIDDEN}"


def test_several_secrets_in_one_line() -> None:
    text = f"WANDB_API_KEY={HEX} HF_TOKEN=hf_{LETTERS[:34]} python train.py --lr 0.1"
    assert redact(text) == f"WANDB_API_KEY={HIDDEN} HF_TOKEN={HIDDEN} python train.py --lr 0.1"


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(("template", "secret"), SECRETS)
def test_redacting_again_changes_nothing(template: str, secret: str) -> None:
    once = redact(template.format(secret))
    assert redact(once) == once


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("train.py --password hunter2x --lr 0.1", f"train.py --password {HIDDEN} --lr 0.1"),
        ("train.py --db-password=hunter2x", f"train.py --db-password={HIDDEN}"),
        ("env WANDB_API_KEY=0123abcd train.py", f"env WANDB_API_KEY={HIDDEN} train.py"),
        ("train.py --api-token hunter2x --lr 0.1", f"train.py --api-token {HIDDEN} --lr 0.1"),
        ("train.py --hub_token hunter2x --lr 0.1", f"train.py --hub_token {HIDDEN} --lr 0.1"),
        ("train.py --max-tokens 2048 --eos-token </s> --key id", None),
        ("train.py --password", None),
    ],
)
def test_a_secret_after_its_option(command: str, shown: str | None) -> None:
    assert " ".join(redact_command(command.split())) == (shown or command)


def test_nested_values() -> None:
    value = {"a": ["password=hunter2x", ("password=hunter2x", 3)], "b": None}
    hidden = f"password={HIDDEN}"
    assert redact_all(value) == {"a": [hidden, (hidden, 3)], "b": None}


@pytest.mark.parametrize(
    "text",
    ["a_" * 20_000 + "password", "key" * 20_000, "://" + "a" * 50_000, "?" * 50_000 + "key=",
     "token" * 10_000 + "=", "-----BEGIN " + "A" * 50_000 + " PRIVATE KEY-----", "eyJ" + "a" * 50_000, "-" * 50_000 + "token",
     "sk-" + "ab1-" * 12_000, "curl -u " * 6_000, "machine a login b " * 3_000, "cookie: a" * 6_000,
     "hooks.slack.com/services" * 2_000, "xoxb-" + "a" * 50_000, "--a_" * 12_000 + "password"],
)  # fmt: skip
def test_long_lines_take_no_long_time(text: str) -> None:
    # Quadratic time would be minutes.
    with bounded_work():
        redact(text)


PARTS = st.sampled_from(
    [
        "password",
        "=",
        ": ",
        "token",
        "://",
        "@",
        "key",
        "&",
        "?",
        "hf_",
        "sk-",
        "eyJ",
        "Bearer ",
        "'",
    ]
)


@given(st.lists(PARTS | st.text(max_size=12), max_size=20).map("".join))
def test_any_text_can_be_redacted(text: str) -> None:
    assert isinstance(redact(text), str)


def test_lines_that_count_tokens_are_not_searched_for_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def search(data: bytes) -> bytes:
        raise AssertionError(data)

    # Language models print these in each step: a search of every line would take minutes.
    log = b"step 100 loss 1.23 tokens_per_sec=12345 num_tokens: 99\ntoken_count=5 eos_token_id=50256\n"
    monkeypatch.setattr("epochzero.redact._redact_bytes", search)
    assert redact_log(log * 100) == log * 100
