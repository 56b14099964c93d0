from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix
from torch import Tensor, nn

from bench import synthetic_people
from bench.rivals.fairness_searches import clustered
from epochzero.errors import InputError
from epochzero.reports.page import to_html
from epochzero_models import Classifier, load_people, measure_fairness
from epochzero_models.bootstrap import estimate_of_kinds, mean
from epochzero_models.classifier import as_classifier
from epochzero_models.fairness import (
    Attribute,
    Domain,
    PeopleTable,
    SearchBudget,
    groups,
    network,
    train_network,
)
from epochzero_models.fairness.domain import attribute_of
from epochzero_models.fairness.groups import measure_groups, reweighing
from epochzero_models.fairness.guided import SEEK, GuidedSearch
from epochzero_models.fairness.report import fairness_report, write_instances, write_weights
from epochzero_models.fairness.search import Archive
from epochzero_models.fairness.search_plan import why_not_all
from epochzero_models.fairness.subject import Subject

INPUTS = SearchBudget(inputs=6000)


class Rule(nn.Module):
    """Accepts whose income is above a threshold, which is higher for one sex; a slope leads to it."""

    def __init__(self, shift: float = 3.0) -> None:
        super().__init__()
        self.shift = shift

    def forward(self, x: Tensor) -> Tensor:
        score = x[:, 1] - 70.5 - self.shift * x[:, 0]
        return torch.stack((-score, score), dim=1)


def numbers(name: str, count: int) -> Attribute:
    return Attribute(name, tuple(float(index) for index in range(count)))


@pytest.fixture
def people() -> PeopleTable:
    """Sex, income and a column that nothing depends on."""
    domain = Domain((numbers("sex", 2), numbers("income", 100), numbers("shoe", 300)), (0,))
    levels = domain.drawn(300, torch.Generator().manual_seed(0))
    labels = Rule(0.0)(domain.inputs(levels)).argmax(dim=1)
    return PeopleTable("people", domain, levels, labels)


def test_what_discriminates_is_as_computed(people: PeopleTable) -> None:
    judged = Subject(as_classifier(Rule()), people.domain).judge(people.levels)
    income = people.levels[:, 1]
    assert judged.discriminates.tolist() == ((income > 70) & (income <= 73)).tolist()
    assert torch.equal(judged.partner[:, 1:], people.levels[:, 1:])
    assert (judged.partner[:, 0] != people.levels[:, 0]).all()
    differ = judged.output != judged.other
    assert torch.equal(differ, judged.discriminates)


def guided(people: PeopleTable, lanes: list[list[int]]) -> GuidedSearch:
    """Return a guided search whose first lanes walk from these inputs."""
    archive = Archive("guided", Subject(as_classifier(Rule()), people.domain), INPUTS)
    search = GuidedSearch(archive, people.levels, torch.Generator().manual_seed(0))
    count = len(lanes)
    search.idle[:count] = 0
    search.levels[:count] = torch.tensor(lanes)
    search.gentle[:count] = people.domain.free.float()
    return search


def test_a_lane_seeks_along_gradients_to_the_boundary(people: PeopleTable) -> None:
    # Within ten steps of the three incomes that are discriminated, and beyond their reach.
    search = guided(people, [[0, 64, 1], [1, 79, 2], [0, 72, 3], [0, 20, 4]])
    for _ in range(SEEK):
        search._seek((~search.walking[:4]).nonzero()[:, 0])
    assert search.walking[:4].tolist() == [True, True, True, False]
    assert set(search.levels[:3, 1].tolist()) <= {71, 72, 73}
    assert (search.levels[:3, 0] != search.partners[:3, 0]).all()


def test_walks_begin_with_the_first_instances(people: PeopleTable) -> None:
    # The global phases that ADF runs before its first walk would take more than this budget.
    subject = Subject(as_classifier(Rule()), people.domain)
    archive = Archive("guided", subject, SearchBudget(inputs=3000))
    search = GuidedSearch(archive, people.levels, torch.Generator().manual_seed(0))
    search.run()
    # Random search would find 90 instances.
    assert len(archive) > 300


def test_seeds_come_from_all_clusters_in_turn(people: PeopleTable) -> None:
    rounds = clustered(people.levels, people.domain, 40, torch.Generator().manual_seed(0))
    first, second = next(rounds), next(rounds)
    assert len(first) == len(second) == 40
    assert not torch.equal(first, second)
    few = clustered(people.levels[:2], people.domain, 5, torch.Generator().manual_seed(0))
    assert len(next(few)) == 5


def test_walks_prefer_steps_that_lead_to_new_instances(people: PeopleTable) -> None:
    search = guided(people, [[0, 71, 150]] * 30)
    lanes, width = torch.arange(30), 3
    search.partners[:30] = search.archive.check(search.levels[:30]).partner
    search._weigh(lanes, search._gradients(lanes))
    # The output does not depend on the shoe size, so walks prefer this attribute.
    assert search.gentle[0, 2] > 10 * search.gentle[0, 1]
    assert not search.gentle[0, 0]
    shoes = torch.tensor([2, width + 2, 2 * width + 2]).repeat(10)
    for _ in range(100):
        search._learn(shoes, torch.zeros(30).bool())
        search._learn(shoes - 1, torch.ones(30).bool())
    share = search.found / search.taken
    assert (share[:, 2] < 0.1).all()
    assert (share[:, 1] > 0.9).all()


def test_the_search_finds_what_chance_finds_rarely_and_the_seed_decides(
    people: PeopleTable,
) -> None:
    first, again = (measure_fairness(Rule(), people, budget=INPUTS, seed=3) for _ in range(2))
    found = {search.search: search.found for search in first.searches}
    # Three incomes by three hundred sizes of shoes are all there is.
    assert all(0 < count <= 900 for count in found.values())
    for name, candidate in first.instances.items():
        assert torch.equal(candidate.levels, again.instances[name].levels)
        assert len(torch.unique(candidate.levels[:, 1:], dim=0)) == len(candidate)
        assert ((candidate.levels[:, 1] > 70) & (candidate.levels[:, 1] <= 73)).all()
    assert first.drivers == again.drivers
    by_name = {driver.attribute: driver.share.value or 0 for driver in first.drivers}
    assert by_name["sex"] == 1.0
    assert by_name["income"] > 0.9
    assert by_name["shoe"] == 0.0


def test_a_budget_of_instances_is_kept_and_one_is_needed(people: PeopleTable) -> None:
    few = measure_fairness(Rule(), people, budget=SearchBudget(inputs=6000, instances=7))
    assert [search.found for search in few.searches] == [7, 7]
    with pytest.raises(InputError, match="seconds or inputs"):
        SearchBudget(instances=7)


def test_a_fair_model_has_no_instances(people: PeopleTable) -> None:
    found = measure_fairness(Rule(0.0), people, budget=SearchBudget(inputs=3000), retrain=True)
    assert [search.found for search in found.searches] == [0, 0]
    assert found.discriminated.value == 0
    assert (found.drivers, found.examples) == ((), ())
    assert found.left_out["retraining"] == "nothing was found"


def test_without_gradients_the_search_is_guided_by_what_it_learns(people: PeopleTable) -> None:
    blind = Classifier("blind", Rule(), torch.device("cpu"), None, "it has no gradients")
    found = measure_fairness(blind, people, budget=INPUTS, retrain=True)
    assert [search.search for search in found.searches] == ["guided", "random"]
    assert (
        found.left_out["gradients"] == found.left_out["retraining"] == "blind: it has no gradients"
    )


class Detached(Rule):
    """As one that ends in numpy."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).detach()


def test_outputs_without_gradients_are_noticed(people: PeopleTable) -> None:
    found = measure_fairness(Detached(), people, budget=INPUTS)
    assert [search.search for search in found.searches] == ["guided", "random"]
    assert "have no gradients with respect to its inputs" in found.left_out["gradients"]


def test_what_has_no_weights_is_not_retrained(people: PeopleTable) -> None:
    found = measure_fairness(Rule(), people, budget=INPUTS, retrain=True)
    assert (found.retrained, found.left_out["retraining"]) == (None, "Rule has no weights")


# What is asked of the model


class Counting(Rule):
    """Counts the inputs that it is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def forward(self, x: Tensor) -> Tensor:
        self.asked += len(x)
        return super().forward(x)


def test_all_inputs_are_checked_where_the_budget_suffices(people: PeopleTable) -> None:
    found = measure_fairness(Rule(), people, budget=SearchBudget(inputs=30_000))
    (search,) = found.searches
    assert (search.search, search.found, search.checked) == ("exhaustive", 900, 30_000)
    assert found.inputs == 30_000
    assert "exhaustive search" not in found.left_out
    assert "all there is" in to_html(fairness_report(found))
    less = measure_fairness(Rule(), people, budget=SearchBudget(inputs=29_999))
    assert less.left_out["exhaustive search"] == "there are 30,000 inputs, more than the budget"


@pytest.mark.parametrize(
    ("size", "budget", "reason"),
    [
        (10**6, SearchBudget(seconds=100), ""),
        (10**6, SearchBudget(seconds=99), "all 1,000,000 inputs would take about 100 s"),
        (10**6, SearchBudget(seconds=100, inputs=10), "more than the budget"),
        (10**6, SearchBudget(seconds=100, instances=10), "would not end at some number"),
        (10**10, SearchBudget(seconds=10**9), "there are 10,000,000,000 inputs"),
    ],
)
def test_why_not_all_are_checked(size: int, budget: SearchBudget, reason: str) -> None:
    told = why_not_all(size, budget, seconds=1e-4)
    assert reason in told
    assert bool(reason) is bool(told)


def test_each_input_has_one_number() -> None:
    domain = Domain((numbers("a", 3), numbers("sex", 2), numbers("b", 4)), (1,))
    every = torch.cat((domain.numbered(0, 5), domain.numbered(5, domain.size)))
    assert len(torch.unique(every, dim=0)) == len(every) == 12
    assert (every[:, 1] == 0).all()


def test_a_likely_variant_changes_the_cost_alone() -> None:
    domain = Domain((numbers("sex", 6), numbers("income", 100)), (0,))
    levels = domain.drawn(500, torch.Generator().manual_seed(0))
    model = Counting()
    subject = Subject(as_classifier(model), domain)
    full = subject.judge(levels)
    cost, model.asked = model.asked, 0
    likely = subject.judge(levels, full.partner)
    assert torch.equal(likely.discriminates, full.discriminates)
    assert torch.equal(likely.output != likely.other, full.discriminates)
    assert cost == 3000
    hits = int(full.discriminates.sum())
    assert model.asked == 1000 + 6 * (500 - hits)


def test_what_is_known_is_not_asked_again(people: PeopleTable) -> None:
    model = Counting()
    archive = Archive("guided", Subject(as_classifier(model), people.domain), INPUTS)
    levels = torch.tensor([[0, 71, 5], [0, 20, 5]])
    first = archive.follow(levels, people.domain.with_variant(levels, torch.tensor(1)))
    assert (first.discriminates.tolist(), first.new.tolist()) == ([True, False], [True, False])
    asked = model.asked
    again = archive.follow(levels[:1], first.partner[:1])
    assert (again.discriminates.tolist(), again.new.tolist()) == ([True], [False])
    assert torch.equal(again.partner, first.partner[:1])
    assert (model.asked, archive.checked, len(archive)) == (asked, 3, 1)


def test_gradients_have_a_sign_where_the_model_is_sure() -> None:
    domain = Domain((numbers("sex", 2), numbers("income", 100)), (0,))
    # Scores so far apart that the loss of the predicted class is 0 in 32 bits.
    subject = Subject(as_classifier(Rule()), domain)
    gradients = subject.gradients(torch.tensor([[0, 99], [0, 0]]))
    assert gradients[:, 1].tolist() == [-2.0, 2.0]


class Broken(nn.Module):
    """NaN for the rich."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x[:, 1:2] > 90, torch.nan, x[:, :2])


def test_a_model_that_gives_nan_is_told_of_with_the_input(people: PeopleTable) -> None:
    with pytest.raises(InputError, match=r"Broken: returns NaN or infinity for sex=\d, income=9"):
        measure_fairness(Broken(), people, budget=INPUTS)


def test_retraining_makes_a_network_fairer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "UPDATES", 500)
    made = synthetic_people.synthesize_discrimination("everywhere")
    people = made.people
    train, _ = people.parts(0)
    net = train_network(people.examples.take(train))
    weights = [parameter.clone() for parameter in net.parameters()]
    found = measure_fairness(net, people, budget=SearchBudget(inputs=20_000), retrain=True)
    after = found.retrained
    assert after is not None
    assert (after.discriminated.value or 0) < (found.discriminated.value or 0)
    assert (after.accuracy.value or 0) > 0.8
    # The model itself is as it was.
    assert all(torch.equal(a, b) for a, b in zip(weights, net.parameters(), strict=True))
    best = max(found.instances.values(), key=len)
    assert made.discriminates(best.levels, made.regions[0]).sum() > 100


# Domains and tables


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=150), min_size=2, max_size=4
    )
)
def test_levels_and_inputs_are_each_others_inverse(columns: list[list[float]]) -> None:
    attributes = [attribute_of(str(at), cells) for at, cells in enumerate(columns)]
    domain = Domain((numbers("sex", 2), numbers("shoe", 30), *attributes), (0,))
    levels = domain.drawn(50, torch.Generator().manual_seed(0))
    again = domain.inputs(domain.levels(domain.inputs(levels)))
    assert torch.equal(again, domain.inputs(levels))
    assert all(len(attribute.values) <= 101 for attribute in attributes)


def test_a_step_stays_in_the_domain(people: PeopleTable) -> None:
    levels = torch.tensor([[0, 0, 29], [1, 99, 0]])
    for sign in (-1, 1):
        for at in (1, 2):
            signs = torch.full((2, 1), sign)
            moved = people.domain.moved(levels, torch.full((2, 1), at), signs)
            assert ((moved >= 0) & (moved < people.domain.counts)).all()
            assert ((moved - levels).abs().sum(dim=1) == 1).all()


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([17, 20], [17.0, 18.0, 19.0, 20.0]),
        ([0, 5000, 1], [0.0, 1.0, 5000.0]),
        ([0.5, -1.25, 0.5], [-1.25, 0.5]),
        (["b", "a", "b"], [0.0, 1.0]),
    ],
)
def test_the_values_of_a_column(cells: list[object], values: list[float]) -> None:
    assert list(attribute_of("x", cells).values) == values


MANY = "sex,name,y\n" + "".join(f"{'fm'[n % 2]},x{n},{n % 2}\n" for n in range(10_001))
TABLE = "sex,age,job,y\nf,30,clerk,no\nm,41,cook,yes\nf,22,cook,no\n"


def test_a_table_is_read_with_its_texts(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "d.toml").write_text(
        'job = ["cook", "clerk", "nurse"]\nage = { low = 20, high = 60, step = 5 }\n'
    )
    people = load_people(str(tmp_path / "t.csv"), protected=["sex"], domains=tmp_path / "d.toml")
    assert [attribute.name for attribute in people.domain.attributes] == ["sex", "age", "job"]
    assert people.levels.tolist() == [[0, 2, 1], [1, 4, 0], [0, 0, 0]]
    assert people.domain.inputs(people.levels).tolist()[1] == [1.0, 40.0, 0.0]
    assert (people.classes, people.labels.tolist()) == (("no", "yes"), [0, 1, 0])
    assert people.domain.attributes[2].shown(2) == "nurse"


@pytest.mark.parametrize(
    ("table", "protected", "domains", "told"),
    [
        (TABLE, ["race"], "", "no input column 'race'; choose one of sex, age, job"),
        (TABLE, [], "", "no attribute is protected"),
        (TABLE, ["sex", "age", "job"], "", "all attributes are protected"),
        (TABLE.replace("41", ""), ["sex"], "", "record 2, column 'age' is empty"),
        (TABLE.replace("41", "nan"), ["sex"], "", "record 2, column 'age' contains NaN"),
        (TABLE.replace("22", "1e999"), ["sex"], "", "record 3, column 'age' contains NaN or inf"),
        (",sex,y\n1,f,0\n2,m,1\n", ["sex"], "", "a column has no name"),
        (TABLE.replace("m,", "f,"), ["sex"], "", "'sex' has only one value"),
        (TABLE, ["sex"], 'job = ["cook"]', "record 1, column 'job' contains 'clerk'"),
        (TABLE, ["sex"], "age = 3", "domain of 'age': expected a list of strings or numbers"),
        (TABLE, ["sex"], "age = {low = 0, high = 1e9}", "more than 10,000 values"),
        (TABLE, ["sex"], "age = [", "invalid TOML"),
        ("sex,age,job,y\n", ["sex"], "", "has no examples"),
        (
            "sex,age,y\nf,3,0\nm,3,1\n",
            ["sex"],
            "",
            "only protected attributes have two or more values",
        ),
        (MANY, ["sex"], "", "column 'name' contains 10,001 different strings"),
    ],
)
def test_wrong_tables_are_told_of(
    tmp_path: Path, table: str, protected: list[str], domains: str, told: str
) -> None:
    (tmp_path / "t.csv").write_text(table)
    (tmp_path / "d.toml").write_text(domains)
    with pytest.raises(InputError, match=told):
        load_people(str(tmp_path / "t.csv"), protected=protected, domains=tmp_path / "d.toml")


UCI = {
    "adult.data": (
        "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, <=50K\n"
        "28, ?, 338409, Bachelors, 13, Married-civ-spouse, ?, Wife, Black, Female, 0, 0, 40, Cuba, >50K.\n\n"
    ),
    "german.data": (
        "A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1\n"
        "A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2\n"
    ),
    "bank.csv": (
        '"age";"job";"marital";"education";"default";"balance";"housing";"loan";"contact";"day";"month";"duration";"campaign";"pdays";"previous";"poutcome";"y"\n'
        '30;"unemployed";"married";"primary";"no";1787;"no";"no";"cellular";19;"oct";79;1;-1;0;"unknown";"no"\n'
        '33;"services";"married";"secondary";"no";4789;"yes";"yes";"cellular";11;"may";220;1;339;4;"failure";"yes"\n'
    ),
}


@pytest.mark.parametrize(
    ("file", "attributes", "protected"),
    [("adult.data", 12, ["race", "sex"]), ("german.data", 20, ["personal-status-sex"]), ("bank.csv", 16, ["age"])],
)  # fmt: skip
def test_the_files_of_the_repository_are_known(
    tmp_path: Path, file: str, attributes: int, protected: list[str]
) -> None:
    (tmp_path / file).write_text(UCI[file])
    people = load_people(str(tmp_path / file))
    assert len(people.domain.attributes) == attributes
    assert [people.domain.attributes[at].name for at in people.domain.protected] == protected
    assert len(people.labels) == 2
    (tmp_path / file).write_text("1;2, 3 4\n")
    with pytest.raises(InputError, match=r"line 1 has \d fields; .* has"):
        load_people(str(tmp_path / file))


# Tables whose discrimination is known


@pytest.mark.parametrize("kind", synthetic_people.KINDS)
def test_the_labels_follow_the_known_discrimination(kind: str) -> None:
    made = synthetic_people.synthesize_discrimination(kind, rows=3000, seed=1)
    again = synthetic_people.synthesize_discrimination(kind, rows=3000, seed=1)
    assert torch.equal(made.levels, again.levels)
    for region in made.regions:
        hit = made.discriminates(made.levels, region)
        group = torch.ones(len(hit), dtype=torch.bool)
        for name, level in region.group.items():
            at = next(n for n, attr in enumerate(made.domain.attributes) if attr.name == name)
            group &= made.levels[:, at] == level
        assert hit.any()
        assert (made.labels[hit & group] == 0).all()
        if len(made.regions) == 1:
            assert (made.labels[hit & ~group] == 1).all()


def test_the_result_is_json_and_files(
    people: PeopleTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "UPDATES", 50)
    pytest.importorskip("matplotlib")
    net = train_network(people.examples)
    found = measure_fairness(
        net, people, budget=SearchBudget(inputs=2000), retrain=True, reweigh=True
    )
    assert json.loads(json.dumps(found.to_dict()))["schema"] == "epochzero.model-fairness/6"
    page = to_html(fairness_report(found))
    assert all(word in page for word in ("guided", "random", "What drives it"))
    write_instances(found, people, tmp_path)
    lines = (tmp_path / "instances.csv").read_text().splitlines()
    assert lines[0] == "search,sex,income,shoe,other sex,output,other output"
    assert len(lines) == 1 + sum(search.found for search in found.searches)
    write_weights(found, tmp_path)
    net.load_state_dict(torch.load(tmp_path / "reweighed.pt", weights_only=True))
    if found.retrained is not None:
        net.load_state_dict(torch.load(tmp_path / "retrained.pt", weights_only=True))


def test_intervals_of_groups_count_kinds_of_rows_instead_of_rows(
    people: PeopleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(group: np.ndarray, weights: np.ndarray, number: int) -> np.ndarray:
        sizes.append(len(group))
        return by_group(group, weights, number)

    by_group = groups._by_group
    monkeypatch.setattr(groups, "_by_group", counted)
    measure_groups(people, np.random.default_rng(0).random(len(people.labels)), 0)
    # Two groups, two predictions and two labels, though there are 300 rows.
    assert max(sizes) <= 8


def test_the_interval_of_a_difference_contains_it() -> None:
    domain = Domain((numbers("origin", 8), numbers("income", 100)), (0,))
    levels = domain.drawn(400, torch.Generator().manual_seed(0))
    labels = (levels[:, 1] > 50).long()
    table = PeopleTable("alike", domain, levels, labels)
    # The largest of the differences between eight groups that are alike is larger still in most samples.
    for seed in range(5):
        unrelated = np.random.default_rng(seed).random(400)
        for disparity in measure_groups(table, unrelated, seed).disparities:
            low, high = disparity.difference.interval or (0, 0)
            value = disparity.difference.value or 0
            assert low < value < high
            assert abs((low + high) / 2 - value) < 0.05


def test_an_interval_of_kinds_is_that_of_their_examples() -> None:
    values = np.repeat((0.0, 1.0), (120, 180))
    of_kinds = estimate_of_kinds(lambda counts: float(counts[1] / counts.sum()), np.array([120, 180]), 0)  # fmt: skip
    of_examples = mean(values, 0)
    assert of_kinds.value == of_examples.value
    assert of_kinds.interval == pytest.approx(of_examples.interval, abs=0.01)


def test_the_progress_of_the_vote_has_a_total(
    people: PeopleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "UPDATES", 5)
    shown: list[tuple[int, int]] = []

    def progress(doing: str, done: int = 0, total: int = 0) -> None:
        if "vote" in doing:
            shown.append((done, total))

    net = nn.Sequential(nn.Linear(3, 2))
    net[0].load_state_dict({"weight": torch.tensor([[3.0, -1, 0], [-3.0, 1, 0]]), "bias": torch.tensor([70.5, -70.5])})  # fmt: skip
    budget = SearchBudget(inputs=2000)
    measure_fairness(net, people, budget=budget, retrain=True, on_progress=progress)
    assert shown == [(done, 5) for done in range(5)]


def test_thresholds_select_groups_equally_often(people: PeopleTable) -> None:
    draw = np.random.default_rng(0)
    sex = people.levels[:, people.domain.protected[0]].numpy()
    probabilities = np.clip(draw.random(len(sex)) * 0.6 + 0.4 * (sex > 0), 0, 1)
    (cuts, *_) = measure_groups(people, probabilities, 0).mitigations
    assert len(cuts.thresholds) == 2
    assert (cuts.difference_before.value or 0) > 0.4
    assert cuts.difference.value is not None
    assert cuts.difference.value < 0.2
    assert cuts.reduces


def test_thresholds_that_do_not_hold_on_other_rows_do_not_help(people: PeopleTable) -> None:
    few = replace(people, levels=people.levels[:60], labels=people.labels[:60])
    unrelated = np.random.default_rng(0).random(60)
    (cuts, *_) = measure_groups(few, unrelated, 1).mitigations
    assert (cuts.difference.value or 0) >= (cuts.difference_before.value or 0)
    assert not cuts.reduces


def test_reweighing_makes_labels_independent_of_groups(people: PeopleTable) -> None:
    # 3 of 4 in one group and 1 of 4 in the other: weights 4 * 4 / (8 * 3) and 4 * 4 / (8 * 1).
    few = replace(
        people,
        levels=people.levels[:1].repeat(8, 1).index_put((torch.arange(8), torch.tensor(0)), torch.arange(8) // 4),
        labels=torch.tensor([1, 1, 1, 0, 1, 0, 0, 0]),
    )  # fmt: skip
    assert reweighing(few).tolist() == pytest.approx([2 / 3] * 3 + [2, 2] + [2 / 3] * 3)
    weights, sex = reweighing(people), people.levels[:, 0].numpy()
    rates = [np.average(people.labels.numpy()[sex == s], weights=weights[sex == s]) for s in (0, 1)]
    assert rates[0] == pytest.approx(rates[1])


def test_training_with_reweighed_rows_selects_groups_more_equally(people: PeopleTable) -> None:
    draw = torch.Generator().manual_seed(0)
    levels = people.domain.drawn(2000, draw)
    odds = 0.2 + 0.3 * levels[:, 0] + 0.4 * (levels[:, 1] > levels[:, 1].median())
    labels = (torch.rand(2000, generator=draw) < odds).long()
    unequal = replace(people, levels=levels, labels=labels)
    net = train_network(unequal.examples.take(unequal.parts(0)[0]))
    found = measure_fairness(net, unequal, budget=SearchBudget(inputs=2000), reweigh=True)
    assert found.groups is not None
    (reweighed,) = (m for m in found.groups.mitigations if m.method == "reweighing")
    assert reweighed.difference.value is not None
    assert reweighed.difference.value < 0.5 * (reweighed.difference_before.value or 0)
    assert found.reweighed is not None


def test_groups_are_compared_as_scikit_learn_counts_them(people: PeopleTable) -> None:
    draw = np.random.default_rng(0)
    probabilities = draw.random(len(people.labels)) * 0.6 + 0.4 * people.labels.numpy()
    found = measure_groups(people, probabilities, 0)
    assert [(group.attribute, group.value) for group in found.groups] == [
        ("sex", "0"),
        ("sex", "1"),
    ]
    for sex, group in enumerate(found.groups):
        rows = people.levels[:, 0].numpy() == sex
        labels, scores = people.labels.numpy()[rows], probabilities[rows]
        table = confusion_matrix(labels, scores > 0.5)
        (tn, fp), (fn, tp) = table.tolist()
        expected = {
            "selected": (tp + fp) / rows.sum(), "true positive": tp / (tp + fn),
            "false positive": fp / (fp + tn), "precision": tp / (tp + fp),
        }  # fmt: skip
        assert group.rows == rows.sum()
        assert {name: rate.value for name, rate in group.rates.items()} == pytest.approx(expected)
        assert group.overconfidence == pytest.approx(scores.mean() - labels.mean())
    first, second = found.groups
    gaps = {
        name: abs((first.rates[name].value or 0) - (second.rates[name].value or 0))
        for name in first.rates
    }
    differences = {d.criterion: d.difference.value for d in found.disparities}
    assert differences == pytest.approx({
        "demographic parity": gaps["selected"],
        "equalized odds": max(gaps["true positive"], gaps["false positive"]),
        "predictive parity": gaps["precision"],
    })  # fmt: skip


def test_a_rule_that_treats_sexes_differently_has_other_error_rates(people: PeopleTable) -> None:
    fair = measure_fairness(Rule(0.0), people, budget=INPUTS).groups
    unfair = measure_fairness(Rule(30.0), people, budget=INPUTS)
    assert fair is not None
    assert unfair.groups is not None
    odds = {
        name: groups.disparities[1] for name, groups in (("fair", fair), ("unfair", unfair.groups))
    }
    assert odds["fair"].difference.value == 0
    assert odds["unfair"].difference.interval is not None
    assert odds["unfair"].difference.interval[0] > 0.5
    page = to_html(fairness_report(unfair))
    assert "equalized odds" in page
    assert unfair.to_dict()["groups"]["positive"] == "1"


def test_a_protected_number_has_quarters_and_small_groups_are_not_compared() -> None:
    domain = Domain((numbers("age", 60), numbers("income", 100)), (0,))
    levels = domain.drawn(200, torch.Generator().manual_seed(0))
    table = PeopleTable("people", domain, levels, levels[:, 1] % 2)
    found = measure_groups(table, np.full(200, 0.6), 0)
    assert len(found.groups) == 4
    assert sum(group.rows for group in found.groups) == 200
    assert found.groups[0].value.startswith("0 to ")
    few = PeopleTable("people", domain, levels[:9], levels[:9, 1] % 2)
    assert all(
        d.difference.value is None for d in measure_groups(few, np.full(9, 0.6), 0).disparities
    )
