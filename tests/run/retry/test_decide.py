"""Decisions: what is retried, how often, where and after what time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero import taxonomy
from epochzero.run.retry import PastAttempt, decide, load_policy
from epochzero.run.retry.policy import EVIDENCE, built_in

AUTO = load_policy("auto")
TRANSIENT = PastAttempt(
    "1:net", "may_succeed", "communication_failure", "infrastructure", confidence=0.9,
    seconds=1800, gpus=8, host="node1",
)  # fmt: skip
DETERMINISTIC = replace(
    TRANSIENT, fingerprint="1:key", retry="fails_again", category="key_not_found"
)

attempts = st.lists(
    st.builds(
        PastAttempt,
        fingerprint=st.sampled_from(("a", "b", "")),
        retry=st.sampled_from(list(taxonomy.retries())),
        category=st.sampled_from(list(taxonomy.categories())),
        phase=st.sampled_from(list(taxonomy.phases())),
        confidence=st.floats(0, 1),
        ended_by=st.sampled_from(("", "user", "scheduler", "stall")),
        progressed=st.booleans(),
        checkpoint=st.booleans(),
        evidence=st.frozensets(st.sampled_from(sorted(EVIDENCE))),
        seconds=st.floats(0, 1e6),
        gpus=st.integers(0, 512),
        host=st.sampled_from(("", "node1", "node2")),
    ),
    min_size=1,
    max_size=30,
)


def test_a_deterministic_failure_stops_at_once_and_its_saved_hours_are_counted() -> None:
    decision = decide(AUTO, [DETERMINISTIC])
    assert (decision.action, decision.saved_gpu_hours) == ("stop", 3 * 8 * 0.5)
    assert "deterministic" in decision.reason


def test_what_was_missed_and_is_there_now_is_tried_once_more() -> None:
    back = replace(DETERMINISTIC, category="path_not_found", evidence=frozenset(["there_now"]))
    assert decide(AUTO, [back]).action == "retry"
    assert "One retry of this failure did not help." in decide(AUTO, [back, back]).reason
    assert decide(AUTO, [replace(back, ended_by="user")]).action == "stop"


def test_what_nothing_seeds_is_tried_once_more() -> None:
    drawn = replace(DETERMINISTIC, category="illegal_index", evidence=frozenset(["unseeded"]))
    assert decide(AUTO, [drawn]).action == "retry"
    assert decide(AUTO, [drawn, drawn]).action == "stop"
    assert decide(AUTO, [replace(drawn, ended_by="user")]).action == "stop"


def test_a_transient_failure_has_a_budget_and_each_retry_waits_longer() -> None:
    history = [TRANSIENT]
    waits = []
    while (decision := decide(AUTO, history)).action != "stop":
        waits.append(decision.after)
        history.append(TRANSIENT)
    assert len(waits) == 3
    assert waits == sorted(waits)
    assert waits[0] > 0
    assert "did not help" in decision.reason
    assert decision.saved_gpu_hours == 0


def test_the_same_fault_twice_goes_to_another_node_and_names_the_one_to_avoid() -> None:
    decision = decide(AUTO, [TRANSIENT, TRANSIENT])
    assert (decision.action, decision.avoid) == ("retry_elsewhere", ("node1",))


def test_progress_between_attempts_gives_the_budget_back() -> None:
    exhausted = [TRANSIENT] * 4
    assert decide(AUTO, exhausted).action == "stop"
    assert decide(AUTO, [*exhausted[:-1], replace(TRANSIENT, progressed=True)]).action != "stop"
    since = [*exhausted, replace(TRANSIENT, progressed=True), TRANSIENT]
    assert decide(AUTO, since).action != "stop"


def test_another_failure_has_a_budget_of_its_own() -> None:
    other = replace(TRANSIENT, fingerprint="1:disk", category="storage_full")
    assert decide(AUTO, [*[TRANSIENT] * 3, other]).action == "retry"


def test_attempts_that_ended_without_a_message_are_neither_told_apart_nor_taken_for_one() -> None:
    silent = [replace(TRANSIENT, fingerprint=f"2w:{n}", category="internal_error") for n in "abcd"]
    assert decide(AUTO, silent).action == "stop", "each counts against the budget"
    fault = [replace(TRANSIENT, fingerprint="2w:same", host=host) for host in ("node1", "node2")]
    assert decide(AUTO, fault).action == "retry", "not the same fault twice"
    told = replace(TRANSIENT, fingerprint="2:same")
    assert decide(AUTO, [told, told]).action == "retry_elsewhere"


def test_progress_alone_does_not_retry_for_ever() -> None:
    history = [replace(TRANSIENT, progressed=True)] * (AUTO.most + 1)
    assert decide(AUTO, history).action == "stop"


@pytest.mark.parametrize(
    ("attempt", "action"),
    [
        (PastAttempt("x", "may_succeed", ended_by="user"), "stop"),
        (
            PastAttempt("x", "unknown", "interrupted", ended_by="scheduler", checkpoint=True),
            "retry",
        ),
        (PastAttempt("x", "unknown", "timeout", ended_by="scheduler"), "stop"),
        (PastAttempt("x", "unknown", "gpu_fault"), "retry_elsewhere"),
        (PastAttempt("x", "fails_again", "gpu_out_of_memory"), "stop"),
        (PastAttempt("x", "unknown", "internal_error"), "retry"),
        (PastAttempt("x", "fails_again", "timeout"), "stop"),
        (PastAttempt("x", "fails_again", "timeout", checkpoint=True), "retry"),
        (PastAttempt("x", "unknown", "cpu_out_of_memory", basis="signature"), "retry_elsewhere"),
    ],
)
def test_what_ours_does_first(attempt: PastAttempt, action: str) -> None:
    assert decide(AUTO, [attempt]).action == action


def test_a_limit_that_a_checkpoint_did_not_help_against_is_not_met_for_ever() -> None:
    limit = PastAttempt("x", "fails_again", "timeout", checkpoint=True)
    assert decide(AUTO, [limit] * 4).action == "stop"
    assert decide(AUTO, [*[limit] * 9, replace(limit, progressed=True)]).action == "retry"


def test_a_kill_that_says_nothing_of_memory_is_tried_as_often_as_what_is_not_known() -> None:
    guessed = PastAttempt("x", "unknown", "cpu_out_of_memory", basis="exit")
    assert decide(AUTO, [guessed] * 2).action == "retry"
    assert decide(AUTO, [replace(guessed, basis="signature")] * 2).action == "stop"


def test_a_long_attempt_is_not_risked_for_a_small_chance_and_a_short_one_is() -> None:
    missing = replace(
        DETERMINISTIC, category="path_not_found", evidence=frozenset(["completed_before"])
    )
    assert decide(AUTO, [replace(missing, seconds=20)]).action == "retry"
    long = decide(AUTO, [replace(missing, seconds=7200)])
    assert long.action == "stop"
    assert "saves 2.9 GPU hours of waiting for a person and wastes 13." in long.reason, (
        "8 GPUs, odds of 4 * 0.05 / 0.95"
    )
    saved = replace(missing, seconds=7200, since_checkpoint=60)
    assert decide(AUTO, [saved]).action == "retry", "only what follows the last checkpoint is lost"


def test_a_short_failure_about_files_has_one_retry_unless_only_this_node_can_change_them() -> None:
    missing = replace(DETERMINISTIC, category="path_not_found", seconds=20)
    assert decide(AUTO, [missing]).action == "retry", "20 s and a wait against 5 % of three hours"
    assert decide(AUTO, [missing, missing]).action == "stop"
    assert decide(AUTO, [replace(missing, seconds=1800)]).action == "stop"
    local = replace(missing, evidence=frozenset(["local_files"]))
    assert decide(AUTO, [local]).action == "stop"
    codes = [replace(DETERMINISTIC, fingerprint=f"1:{n}", seconds=0.1) for n in range(20)]
    assert {decide(AUTO, [code]).action for code in codes} == {"stop"}, "whatever their jitter"


def test_each_retry_that_failed_lowers_the_chance() -> None:
    other = replace(TRANSIENT, retry="unknown", category="internal_error", seconds=900)
    assert decide(AUTO, [other]).action == "retry"
    assert decide(AUTO, [other, other]).action == "stop"


def test_the_subject_of_the_message_changes_the_chance_of_an_unknown_failure() -> None:
    lost = replace(TRANSIENT, retry="unknown", category="communication_failure", seconds=30_000)
    assert decide(AUTO, [lost]).action == "stop"
    assert decide(AUTO, [replace(lost, evidence=frozenset(["environment"]))]).action == "retry"


def test_a_rule_that_asks_for_a_fact_contains_it_in_its_chance() -> None:
    subject = replace(DETERMINISTIC, evidence=frozenset(["environment"]), seconds=60)
    assert "has a 56% chance" in decide(AUTO, [subject]).reason, "0.8 * 0.7"


def test_attempts_that_a_scheduler_started_count() -> None:
    assert decide(AUTO, [replace(TRANSIENT, earlier=2)]).action != "stop"
    assert decide(AUTO, [replace(TRANSIENT, earlier=3)]).action == "stop"
    assert decide(AUTO, [replace(TRANSIENT, earlier=3, progressed=True)]).action != "stop"


def test_a_failure_of_code_has_a_retry_where_one_has_passed_before() -> None:
    code = replace(DETERMINISTIC, seconds=120)
    assert decide(AUTO, [code]).action == "stop"
    assert decide(AUTO, [replace(code, evidence=frozenset(["passed_before"]))]).action == "retry"


def test_other_jobs_that_failed_on_the_node_lead_to_another_node() -> None:
    attempt = replace(
        DETERMINISTIC,
        category="path_not_found",
        seconds=20,
        evidence=frozenset(["neighbours_failed"]),
    )
    assert decide(AUTO, [attempt]).action == "retry_elsewhere"
    of_storage = replace(attempt, evidence=attempt.evidence | {"shared_storage"})
    assert decide(AUTO, [of_storage]).action == "retry", "each node has the same storage"


def test_a_decision_names_what_changed_its_chance() -> None:
    facts = frozenset(["neighbours_failed", "local_files", "environment"])
    missing = replace(DETERMINISTIC, category="path_not_found", seconds=20)
    decision = decide(AUTO, [replace(missing, evidence=facts - {"environment"})])
    assert decision.evidence == {"neighbours_failed": 4, "local_files": 0.2}
    assert (
        "to succeed (more likely because another program failed because of the same resource at the same time;"
        " less likely because its files are on a local file system): on average" in decision.reason
    )
    by_rule = decide(AUTO, [replace(missing, evidence=facts)])
    assert "environment" not in by_rule.evidence, "the chance of its rule contains it"
    assert decide(AUTO, [missing]).evidence == {}
    assert "to succeed: on average" in decide(AUTO, [missing]).reason


def test_always_three_retries_whatever_failed() -> None:
    policy = load_policy("always-3")
    assert [decide(policy, [DETERMINISTIC] * n).action for n in (1, 2, 3, 4)] == [
        "retry", "retry", "retry", "stop",
    ]  # fmt: skip


@given(st.sampled_from(built_in()), attempts)
def test_every_decision_is_bounded_and_says_why(name: str, history: list[PastAttempt]) -> None:
    policy = load_policy(name)
    decision = decide(policy, history)
    assert decision.reason
    assert 0 <= decision.after <= 1.1 * max(rule.longest for rule in policy.rules)
    assert decision.saved_gpu_hours >= 0
    if decision.action == "stop":
        assert decision.after == 0
    else:
        assert len(history) <= policy.most
        assert decision.saved_gpu_hours == 0


@given(attempts)
def test_the_same_history_gives_the_same_decision(history: list[PastAttempt]) -> None:
    assert decide(AUTO, history) == decide(AUTO, history)
