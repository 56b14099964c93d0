"""A language model reorders a ranking: what it is sent, and what its answers can do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from epochzero.errors import InputError
from epochzero.locate import Ranking, Report, Reranker, locate
from tests.language_model import LanguageModel

if TYPE_CHECKING:
    from conftest import Made

SECRET = "ghp_" + "A1b2C3d4E5" * 4
REPORT = Report(
    "Network gets a short batch: shards that were cut off are read by train",
    f"GITHUB_TOKEN={SECRET}",
)
TRAIN = "src/train.py"


@pytest.fixture
def model() -> Iterator[LanguageModel]:
    with LanguageModel(answers=['{"ranking": [1]}']) as server:
        yield server


def reranked(project: Made, model: LanguageModel, **options: Any) -> Ranking:
    return locate(REPORT, project.folder, reranker=Reranker(model.url, "tiny", **options))


def places(model: LanguageModel) -> list[dict[str, Any]]:
    """The candidates that the model saw."""
    found: list[dict[str, Any]] = json.loads(model.prompts[0][1]["content"])["candidates"]
    return found


def test_the_order_is_that_of_the_answer(project: Made, model: LanguageModel) -> None:
    before = [item.path for item in locate(REPORT, project.folder).items]
    model.answers = [
        'Sure:\n```json\n{"ranking": [3, "1"], "comments": {"3": "It calls\\nit"}}\n```'
    ]
    found = reranked(project, model)
    assert [item.path for item in found.items] == [before[2], before[0], before[1]]
    assert [(r.kind, r.text) for r in found.items[0].reasons[:1]] == [
        ("model", "tiny: It calls it")
    ]
    assert found.reranking is not None
    assert found.reranking.applied
    assert (found.reranking.prompt_tokens, found.reranking.completion_tokens) == (900, 30)
    assert found.reranking.cost_usd is None
    assert found.items[0].excerpt == ""


def test_the_model_sees_evidence_and_lines_without_secrets(
    project: Made, model: LanguageModel
) -> None:
    project.write(TRAIN, f"def read_shards():\n    return open('shards', {SECRET!r})\n")
    project.commit("Read shards")
    reranked(project, model)
    assert [place["number"] for place in places(model)] == [1, 2, 3]
    (train,) = (place for place in places(model) if place["path"] == TRAIN)
    assert train["reasons"]
    assert "1: def read_shards():\n2:     return open(" in train["excerpt"]
    assert "score" not in train
    assert SECRET not in json.dumps(model.requests)
    assert "Authorization" not in model.requests[0][2]


def test_only_the_first_places_are_sent(made: Made, model: LanguageModel) -> None:
    for number in range(25):
        made.write(f"shards_{number}.py", "def shards():\n    return 'cut off'\n")
    made.commit("Begin")
    model.answers = [json.dumps({"ranking": list(range(20, 0, -1))})]
    reranker = Reranker(model.url, "tiny")
    before = [item.path for item in locate(REPORT, made.folder, top=25).items]
    found = locate(REPORT, made.folder, top=22, reranker=reranker)
    assert len(places(model)) == 20
    assert [item.path for item in found.items] == [*before[19::-1], *before[20:22]]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "The bug is in the second file.",
        '{"ranking": []}',
        '{"ranking": [0, -1, 4, 99, 1.5, true, null, "two", {}]}',
        '{"ranking": {"1": 2}}',
        '{"files": [1, 2]}',
        '<think>{"ranking": [2, 1]}',
        "{" * 100_000,
    ],
)
def test_an_answer_without_places_changes_nothing(
    project: Made, model: LanguageModel, answer: str
) -> None:
    before = locate(REPORT, project.folder)
    model.answers = [answer]
    found = reranked(project, model)
    assert found.items == before.items
    assert any("names no candidate" in note for note in found.notes)
    assert found.reranking is not None
    assert not found.reranking.applied
    # It was asked once more, and both requests are counted.
    assert (found.reranking.requests, found.reranking.prompt_tokens) == (2, 1800)


def test_a_second_answer_is_used(project: Made, model: LanguageModel) -> None:
    model.answers = ["I cannot help.", '{"ranking": [2]}']
    found = reranked(project, model)
    assert found.reranking is not None
    assert (found.reranking.applied, found.reranking.requests) == (True, 2)
    assert [message["role"] for message in model.prompts[1]] == [
        "system", "user", "assistant", "user",
    ]  # fmt: skip


def test_an_answer_can_only_reorder(project: Made, model: LanguageModel) -> None:
    before = locate(REPORT, project.folder)
    control = "\x1b[2J\x07 rm -rf \u202e" + "x" * 5000
    model.answers = [
        json.dumps(
            {"ranking": [2, 2, 77, "../../etc/passwd"], "comments": {"2": control, "77": "?"}}
        )
    ]
    found = reranked(project, model)
    assert sorted(item.path for item in found.items) == sorted(item.path for item in before.items)
    comment = found.items[0].reasons[0].text
    assert comment.isprintable()
    assert len(comment) < 250


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ((500, {}, b"overloaded " + SECRET.encode()), "HTTP 500: overloaded [redacted]"),
        ((302, {"Location": "http://127.0.0.1:9/"}, b""), "HTTP 302"),
        ((200, {}, b"<html>"), "no JSON"),
        ((200, {}, b"[1]"), "not an object"),
        ((200, {}, b'{"choices": [], "usage": [7]}'), "names no candidate"),
        ((200, {}, b'{"choices": [{"message": null}], "usage": {"prompt_tokens": -5}}'), "no candidate"),
        ((200, {"Content-Length": "1000000"}, b'{"choices"'), "no JSON"),
    ],
)  # fmt: skip
def test_a_server_that_fails_leaves_the_ranking(
    project: Made, model: LanguageModel, raw: tuple[int, dict[str, str], bytes], problem: str
) -> None:
    before = locate(REPORT, project.folder)
    model.raw = raw
    found = reranked(project, model)
    assert found.items == before.items
    assert problem in found.notes[-1]
    assert found.reranking is not None
    assert found.reranking.prompt_tokens == 0
    assert SECRET not in json.dumps(found.to_dict())


def test_a_server_that_sends_a_byte_at_a_time_is_given_up(
    project: Made, model: LanguageModel
) -> None:
    model.drips = True
    found = reranked(project, model, timeout=0.3)
    assert "did not answer within 0.3 seconds" in found.notes[-1]


def test_nobody_listens(project: Made) -> None:
    with LanguageModel() as gone:
        pass
    found = locate(REPORT, project.folder, reranker=Reranker(gone.url))
    assert "does not respond" in found.notes[-1]


def test_the_only_model_is_found(project: Made, model: LanguageModel) -> None:
    asked: list[str] = []
    reranker = Reranker(model.url, on_request=asked.append)
    found = locate(REPORT, project.folder, reranker=reranker)
    assert found.reranking is not None
    assert (found.reranking.model, found.reranking.applied) == ("tiny", True)
    assert asked == [found.reranking.server] * 2
    model.models = ["large", "tiny"]
    found = locate(REPORT, project.folder, reranker=Reranker(model.url))
    assert "it lists: large, tiny" in found.notes[-1]


def test_answers_are_stored(project: Made, model: LanguageModel, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    model.answers = ['{"ranking": [3], "comments": {"3": "here"}}']
    first = reranked(project, model, cache=folder, price=(1.0, 10.0))
    again = reranked(project, model, cache=folder, price=(1.0, 10.0))
    assert len(model.prompts) == 1
    assert again.items == first.items
    assert first.reranking is not None
    assert again.reranking is not None
    assert first.reranking.cost_usd == pytest.approx(0.0012)
    assert (again.reranking.requests, again.reranking.cost_usd) == (0, 0.0)
    (stored,) = folder.iterdir()
    for damage in (
        b"{",
        b"[]",
        b'{"order": ["x"], "comments": []}',
        b'{"order": [7], "comments": []}',
    ):
        stored.write_bytes(damage)
        assert reranked(project, model, cache=folder).items == first.items
    assert len(model.prompts) == 5
    # Another model has another answer.
    locate(REPORT, project.folder, reranker=Reranker(model.url, "other", cache=folder))
    assert len(model.prompts) == 6


def test_without_a_place_to_store_answers(
    project: Made, model: LanguageModel, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    found = reranked(project, model, cache=blocked)
    assert found.reranking is not None
    assert found.reranking.applied


def test_a_server_can_state_the_cost(project: Made, model: LanguageModel) -> None:
    model.usage = {"prompt_tokens": 10, "completion_tokens": 1, "cost": 0.25}
    found = reranked(project, model, price=(1.0, 1.0))
    assert found.reranking is not None
    assert found.reranking.cost_usd == 0.25


def test_the_key_goes_only_where_it_is_safe(project: Made, model: LanguageModel) -> None:
    reranked(project, model, key="k3y")
    assert model.requests[0][2]["Authorization"] == "Bearer k3y"
    Reranker("https://api.example.org/v1", key="k3y")
    with pytest.raises(InputError, match=r"unencrypted to api\.example\.org"):
        Reranker("http://api.example.org/v1", key="k3y")
    for broken in ("k3y\nHost: other", "k 3y", "schlüssel"):
        with pytest.raises(InputError, match="not ASCII") as error:
            Reranker("https://api.example.org/v1", key=broken)
        assert broken not in str(error.value)


@pytest.mark.parametrize(
    "url", ["", "file:///etc/passwd", "localhost:8000", "http://", "http://[::1", "ftp://host/v1",
            "http://me:secret@host/v1", "http://host/v1?key=secret", "http://höst/v1"],
)  # fmt: skip
def test_an_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError) as error:
        Reranker(url)
    assert "secret" not in str(error.value)
