"""What is true of every page: it answers, it is safe, it can be read without eyes and without a mouse."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from tests.web.pages.conftest import opened

PAGES = (
    "/admin",
    "/", "/?days=365", "/?since=2020-01-01&until=2020-02-01", "/jobs", "/jobs?state=failed&sort=costliest",
    "/jobs?q=nothing-is-called-so", "/jobs/key0", "/jobs/ranks", "/jobs/hostile", "/jobs/again?attempt=1",
    "/jobs/runs", "/jobs/good", "/failures", "/failures?new=1&days=1", "/failures/1:abc",
    "/failures/1:%22%3E%3Cscript%3E", "/compare", "/compare?days=30", "/targets",
    "/targets?left=job:key0&right=job:hostile", "/jobs/key0/attempts/1/ranks/1/logs/output?line=803",
    "/report", "/jobs?name=%3Cscript%3E&user=%22%3E&host='&target=%3Cb%3E",
)  # fmt: skip
WRONG = {
    "/jobs/nothing": 404, "/jobs/key0?attempt=9": 404, "/failures/1:none": 404,
    "/jobs?sort=<b>": 422, "/jobs?after=zz": 422, "/jobs?since=yesterday": 422, "/?days=0": 422,
    "/?since=2026-02-01&until=2026-01-01": 422, "/targets?left=job:nothing&right=job:key0": 422,
    "/targets?left=nonsense&right=job:key0": 422, "/jobs/key0/attempts/1/ranks/1/logs/none": 404,
    "/jobs/key0/attempts/2/ranks/99/logs/output": 404, "/jobs/key0/attempts/x/ranks/1/logs/output": 422,
}  # fmt: skip
EVERY = (*PAGES, *WRONG)
VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """What the checks need of a page; its tags must be closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.labelled: list[bool] = []
        self.text: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("input", "select", "textarea") and dict(attrs).get("type") != "hidden":
            self.labelled.append("label" in self.open or self._has_label(dict(attrs).get("id")))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append((self.open[-1] if self.open else "", data))

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]

    def _has_label(self, identity: str | None) -> bool:
        return any(one.get("for") == identity for one in self.all("label"))


@pytest.fixture(scope="module")
def client(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Of one service for all tests of this module: none of them changes its store."""
    folder = tmp_path_factory.mktemp("pages")
    yield from opened(Path(shutil.copy(made, folder / "store.db")))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Of one service to which no job was sent."""
    yield from opened(tmp_path_factory.mktemp("pages") / "empty.db")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_answers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert "What to do now" in answer.text


@pytest.mark.parametrize(("path", "status"), WRONG.items())
def test_a_wrong_address_is_answered_by_a_page_that_leads_on(
    client: TestClient, path: str, status: int
) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert 'role="alert"' in answer.text
    assert "What to do now" in answer.text


@pytest.mark.parametrize("path", EVERY)
def test_a_page_needs_nothing_that_its_policy_forbids(client: TestClient, path: str) -> None:
    is_allowed(client.get(path))


def is_allowed(answer: httpx.Response) -> None:
    """Fails for a page that its own policy forbids a part of."""
    page = Page(answer.text)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert page.all("script") == [{"src": "/static/pages.js", "defer": None}]
    assert page.all("style") == []
    for tag, attributes in page.tags:
        assert not any(name == "style" or name.startswith("on") for name in attributes), tag
        for name in ("href", "src", "action"):
            assert (attributes.get(name) or "/").startswith(("/", "?", "#", "data:,")), tag
            assert not (attributes.get(name) or "").startswith("//"), tag


@pytest.mark.parametrize("path", EVERY)
def test_a_page_can_be_read_without_eyes(client: TestClient, path: str) -> None:
    is_read_without_eyes(client.get(path).text)


def is_read_without_eyes(text: str) -> None:
    """Fails for a page of which a screen reader cannot tell all."""
    page = Page(text)
    assert page.all("html")[0]["lang"] == "en"
    for landmark in ("main", "header", "footer", "h1"):
        assert len(page.all(landmark)) == 1, landmark
    assert all(page.labelled)
    assert all(one.get("aria-label") for one in page.all("nav"))
    assert all(one.get("aria-label") for one in page.all("svg"))
    assert all(one.get("scope") for one in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    names = [str(attributes["id"]) for _, attributes in page.tags if attributes.get("id")]
    assert len(names) == len(set(names))
    assert {str(one["aria-labelledby"]) for _, one in page.tags if "aria-labelledby" in one} <= {
        *names
    }
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    steps = pairwise(levels)
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in steps)


@pytest.mark.parametrize("path", EVERY)
def test_what_a_job_writes_does_nothing(client: TestClient, path: str) -> None:
    does_nothing(client.get(path).text)


def does_nothing(text: str) -> None:
    """Fails for a page on which the words of a job are more than words."""
    assert "<script>alert" not in text
    assert '"><script>' not in text
    for hidden in ("\x1b", "\u202e", "\x00"):
        assert hidden not in text


@pytest.mark.parametrize(
    ("path", "told"),
    [("/", "epochzero run --send"), ("/jobs", "epochzero run --send"), ("/failures", "No failure"),
     ("/compare", "Nothing failed"), ("/targets", "epochzero target capture")],
)  # fmt: skip
def test_an_empty_store_teaches(empty: TestClient, path: str, told: str) -> None:
    answer = empty.get(path)
    assert answer.status_code == 200
    assert told in answer.text


def test_the_page_that_is_shown_is_marked_in_the_navigation(client: TestClient) -> None:
    assert '<a href="/jobs" aria-current="page">' in client.get("/jobs").text
    assert '<a href="/jobs" aria-current="true">' in client.get("/jobs/key0").text


def test_text_stands_out_from_its_ground() -> None:
    """WCAG 2.2, success criteria 1.4.3 and 1.4.11: 4.5 : 1 for text, 3 : 1 for pictures."""
    style = Path(__file__).parents[3] / "src/epochzero/web/static/style.css"
    light, dark = re.findall(r":root \{(.*?)\}", style.read_text(encoding="utf-8"), re.DOTALL)[:2]
    for scheme in (light, dark):
        colors = dict(re.findall(r"--(\w+): (#\w+)", scheme))
        for ground in ("back", "card"):
            for ink in ("ink", "soft", "link", "bad", "good", "warn"):
                assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
            for picture in ("c0", "c1", "c2", "c3", "c4", "c5"):
                assert contrast(colors[picture], colors[ground]) >= 3, (picture, ground)
        assert contrast(colors["ink"], colors["mark"]) >= 4.5
        assert contrast(colors["bad"], colors["mark"]) >= 4.5


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    """The relative luminance of ``#rgb`` or ``#rrggbb``."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
