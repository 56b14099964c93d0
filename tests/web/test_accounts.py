"""Sign-in with accounts of a real OpenID Connect provider."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import authlib.deprecate  # noqa: F401 - it shows its warnings from the first import on
import httpx2
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from epochzero.errors import InputError
from epochzero.store.audit import acts
from epochzero.store.teams import add_team, revoke_token, tokens
from epochzero.web.app import create_app
from epochzero.web.provider import read_provider
from epochzero.web.settings import Settings
from tests.web.conftest import Served

# The provider, not the service, uses what authlib has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from oidc_provider_mock import User, run_server_in_thread

PEOPLE = [
    User(sub="1", claims={"email": "ann@example.org", "groups": ["ml", "other"]}),
    User(sub="2", claims={"email": "bob@example.org", "groups": ["ml", "hpc"]}),
    User(sub="3", claims={"email": "eve@example.org", "groups": ["sales"]}),
    User(sub="4", claims={"email": "ann@example.org", "email_verified": False, "groups": ["ml"]}),
]
SETTINGS = """
issuer = "{issuer}"
client_id = "epochzero"
client_secret_file = "secret"
url = "http://localhost"
[[member]]
group = "hpc"
team = "platform"
role = "admin"
[[member]]
group = "ml"
team = "vision"
role = "writer"
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """A provider that runs on this machine."""
    with run_server_in_thread(user_claims=PEOPLE, require_nonce=True) as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def settings(tmp_path: Path, issuer: str) -> Path:
    (tmp_path / "secret").write_text("s3cret\n")
    file = tmp_path / "accounts.toml"
    file.write_text(SETTINGS.format(issuer=issuer))
    return file


@pytest.fixture
def served(tmp_path: Path, settings: Path) -> Iterator[Served]:
    """A service whose people sign in with accounts."""
    app = create_app(
        Settings(
            f"sqlite:///{tmp_path}/store.db", tmp_path / "spool", provider=read_provider(settings)
        )
    )
    for team in ("platform", "vision"):
        add_team(app.state.service.database, team)
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as browser:
        yield Served(browser, app.state.service)


@pytest.fixture
def client(served: Served) -> TestClient:
    """A browser at it."""
    return served.client


def _to_provider(client: TestClient, **query: str) -> str:
    answer = client.get("/login/account", params=query)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def _consent(address: str, person: str) -> str:
    """Where the provider redirects to when the person consents there."""
    answer = httpx2.post(address, data={"sub": person})
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def _sign_in(client: TestClient, person: str, **query: str) -> Response:
    return client.get(_consent(_to_provider(client, **query), person))


def test_a_member_of_a_group_sees_its_team(served: Served, client: TestClient) -> None:
    assert 'href="/login/account?next=%2Fjobs"' in client.get("/login?next=/jobs").text

    answer = _sign_in(client, "1", next="/jobs")

    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert client.get("/jobs").status_code == 200
    assert client.get("/admin").status_code == 403
    database = served.service.database
    (entry,) = acts(database, "vision", limit=5)
    assert (entry.who, entry.action) == ("ann@example.org", "signed in")


def test_who_is_in_two_teams_chooses_one_and_has_its_role(client: TestClient) -> None:
    choice = _sign_in(client, "2").text
    assert "platform</a> (admin)" in choice
    assert "vision</a> (writer)" in choice

    assert _sign_in(client, "2", team="platform").status_code == 303
    assert client.get("/admin").status_code == 200
    assert _sign_in(client, "1", team="platform").status_code == 403


def test_who_is_in_no_group_is_told_so_and_gets_no_session(client: TestClient) -> None:
    answer = _sign_in(client, "3")
    assert answer.status_code == 403
    assert "eve@example.org is in no group" in answer.text
    assert client.get("/api/v1/jobs").status_code == 401


def test_an_address_that_is_not_verified_is_no_name(served: Served, client: TestClient) -> None:
    assert _sign_in(client, "1").status_code == _sign_in(client, "4").status_code == 303
    names = sorted(token.name for token in tokens(served.service.database))
    assert names == ["4", "ann@example.org"]


def test_a_response_that_was_not_asked_for_starts_no_session(client: TestClient) -> None:
    """Of another browser (login CSRF), used twice, with a code of another sign-in, or without one."""
    stolen = _consent(_to_provider(client), "1")
    client.cookies.clear()
    assert client.get(stolen).status_code == 403
    used = _consent(_to_provider(client), "1")
    assert client.get(used).status_code == 303
    assert client.get(used).status_code == 403
    client.cookies.clear()
    begun = parse_qs(urlsplit(_to_provider(client)).query)
    state, code = begun["state"][0], parse_qs(urlsplit(stolen).query)["code"][0]
    for query in (
        f"state={state}&code={code}",
        f"state={state}",
        "error=access_denied",
        "",
        "state=%00",
    ):
        assert client.get(f"/login/account/callback?{query}").status_code == 403, query
    assert client.get("/api/v1/jobs").status_code == 401


def test_a_request_to_the_provider_is_protected(client: TestClient) -> None:
    asked = parse_qs(urlsplit(_to_provider(client)).query)
    assert asked["redirect_uri"] == ["http://localhost/login/account/callback"]
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["response_type"] == ["code"]
    for name in ("nonce", "state", "code_challenge"):
        assert len(asked[name][0]) >= 20, name


def test_the_row_of_an_account_is_no_token_and_can_be_ended(
    served: Served, client: TestClient
) -> None:
    _sign_in(client, "1")
    service = served.service
    with service.database.read() as session:
        (digest,) = session.connection().exec_driver_sql("SELECT digest FROM tokens").scalars()
    for text in (digest, digest.removeprefix("account:"), 'vision ["x", "1"]'):
        headers = {"Authorization": f"Bearer {text}"}
        assert client.get("/api/v1/jobs", headers=headers).status_code == 401
    (account,) = tokens(service.database)
    client.cookies.delete("epochzero_account")
    assert client.get("/jobs").status_code == 200
    revoke_token(service.database, account.id)
    assert client.get("/api/v1/jobs").status_code == 401
    assert _sign_in(client, "1").status_code == 303


def test_a_provider_that_is_away_is_named(tmp_path: Path, settings: Path, issuer: str) -> None:
    text = settings.read_text()
    (tmp_path / "other.toml").write_text(text.replace(issuer, "http://localhost:9"))
    provider = read_provider(tmp_path / "other.toml")
    made = Settings(f"sqlite:///{tmp_path}/s.db", tmp_path / "spool", provider=provider)
    with TestClient(create_app(made), base_url="http://localhost") as client:
        answer = client.get("/login/account")
        assert answer.status_code == 502
        assert "sign-in with localhost failed" in answer.text
        assert client.get("/login").status_code == 200


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('client_id = "epochzero"', "", "client_id is missing"),
        ('client_id = "epochzero"', "client_id = 3", "client_id is missing"),
        ('url = "http://localhost"', 'url = "http://example.org"', "must be an https:// address"),
        ('url = "http://localhost"', 'url = "https://["', "is not an address"),
        ('"secret"', '"nothing"', "nothing cannot be read: No such file"),
        ('"secret"', '"empty"', "is empty"),
        ('role = "admin"', 'role = "root"', "the roles are reader, writer, admin, operator"),
        ('role = "admin"', "", "exactly group, team and role"),
        ('group = "hpc"', "group = []", "must be strings"),
        ("[[member]]", "[[members]]", "unknown setting 'members'"),
        ("url =", "scope = 3\nurl =", "scope must be a string"),
        ("[[member]]", "[member", "is not TOML"),
    ],
)
def test_a_wrong_setting_is_named(settings: Path, old: str, new: str, problem: str) -> None:
    (settings.parent / "empty").write_text("")
    settings.write_text(settings.read_text().replace(old, new))
    with pytest.raises(InputError, match=problem) as raised:
        read_provider(settings)
    assert str(settings) in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml cannot be read: No such file"):
        read_provider(tmp_path / "none.toml")


def test_without_members_nobody_could_sign_in(settings: Path) -> None:
    settings.write_text(settings.read_text().partition("[[member]]")[0])
    with pytest.raises(InputError, match="no group may sign in"):
        read_provider(settings)


def test_groups_may_lie_deeper_and_be_one_text(settings: Path) -> None:
    extra = 'groups_claim = "realm_access.roles"\nurl ='
    settings.write_text(settings.read_text().replace("url =", extra))
    provider = read_provider(settings)
    vision: list[dict[str, Any]] = [
        {"realm_access": {"roles": ["ml"]}},
        {"realm_access.roles": "ml"},
    ]
    for claims in vision:
        assert [member.team for member in provider.memberships(claims)] == ["vision"]
    nothing: list[dict[str, Any]] = [
        {},
        {"realm_access": 3},
        {"realm_access": {"roles": {"ml": 1}}},
    ]
    for claims in nothing:
        assert provider.memberships(claims) == []


def test_tokens_alone_import_no_part_of_it() -> None:
    program = "import sys, epochzero.web.app; print([n for n in sys.modules if n.startswith(('authlib', 'itsdangerous'))])"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "[]\n"
