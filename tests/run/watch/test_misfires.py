"""What healthy trainings look like, and was once read as a fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.faults._signals import classes, course, is_harmed
from epochzero.run.watch.faults._table import percent
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.model import PROOFS, TOLD
from epochzero.run.watch.verdict import conclude

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional


def seen(train: Callable[[], object], every: int = 1, **settings: Any) -> TrainingHistory:
    """What the watcher has seen of a training in this process."""
    from epochzero.run.watch.child.hooks import Hooks
    from epochzero.run.watch.child.observer import Observer
    from epochzero.run.watch.child.records import Records
    from epochzero.run.watch.child.schedule import Schedule

    records: list[dict[str, Any]] = []
    observer = Observer(Records(on_record=records.append), Schedule(every=every, **settings))
    hooks = Hooks(observer)
    hooks.install()
    try:
        torch.manual_seed(0)
        train()
    finally:
        observer.end()
        hooks.remove()
    assert [record for record in records if record["kind"] == "failed"] == []
    return read_records(records)


def losses(values: Iterable[float]) -> TrainingHistory:
    """A training of which the loss alone is known."""
    told = [[number, "train.py:1", float(value)] for number, value in enumerate(values)]
    return read_records([{"kind": "losses", "losses": told}])


def reported(history: TrainingHistory, word: str) -> list[str]:
    return [one.text for one in catalogue()[word](history) if one.confidence >= TOLD]


def fit(
    model: Any,
    batch: Callable[[], tuple[Any, Any]],
    steps: int,
    optimizer: Callable[[Any], Any] = lambda parameters: torch.optim.Adam(parameters, 1e-3),
    loss_of: Callable[[Any, Any], Any] = functional.cross_entropy,
) -> None:
    stepping = optimizer([p for p in model.parameters() if p.requires_grad])
    for _ in range(steps):
        given, wanted = batch()
        stepping.zero_grad()
        loss_of(model(given), wanted).backward()
        stepping.step()


def labeled(count: int = 32, width: int = 8) -> tuple[Any, Any]:
    given = torch.randn(count, width)
    return given, (given[:, 0] > 0).long()


@pytest.mark.parametrize("word", ["loss_rising", "loss_not_falling"])
def test_the_loss_of_a_few_batches_is_no_trend(word: str) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 31)
    noise[:3], noise[-3:] = -0.08, 0.12
    assert reported(losses(math.log(2) + noise), word) == []


def test_a_loss_that_rises_beyond_its_noise_does() -> None:
    noise = np.random.default_rng(0).normal(0, 0.02, 60)
    assert reported(losses(np.linspace(0.7, 2.0, 60) + noise), "loss_rising")


def test_one_batch_is_no_growth() -> None:
    values = np.full(31, 0.5)
    values[20] = 9.0
    found = course(losses(values))
    assert found is not None
    assert found.worst < 3


def test_states_of_a_game_have_a_scale_of_their_own() -> None:
    def play() -> None:
        policy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
        optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
        for _ in range(20):
            states, rewards = 50 + 30 * torch.randn(16, 3), 100 * torch.rand(16)
            log = functional.log_softmax(policy(states), 1)[:, 0]
            optimizer.zero_grad()
            (-(log * rewards).mean()).backward()
            optimizer.step()

    assert reported(seen(play), "input_scale_wrong") == []


def test_the_labels_of_a_generative_adversarial_network_are_no_class_of_the_data() -> None:
    maker, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))

    def play() -> None:
        of_maker, of_critic = (torch.optim.Adam(m.parameters(), 1e-3) for m in (maker, critic))
        judge = functional.binary_cross_entropy_with_logits
        for _ in range(30):
            of_critic.zero_grad()
            judge(critic(torch.randn(16, 2) + 2), torch.ones(16, 1)).backward()
            made = maker(torch.randn(16, 4))
            judge(critic(made.detach()), torch.zeros(16, 1)).backward()
            of_critic.step()
            of_maker.zero_grad()
            judge(critic(made), torch.ones(16, 1)).backward()
            of_maker.step()

    history = seen(play)
    assert classes(history) == {}
    for word in ("classes_unbalanced", "not_shuffled", "labels_wrong", "sample_weights_wrong"):
        assert reported(history, word) == []


class LowRank(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, base: Any) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, 4, bias=False)
        self.up = nn.Linear(4, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, given: Any) -> Any:
        return self.base(given) + self.up(self.down(given))


def test_a_low_rank_addition_begins_at_zero() -> None:
    model = nn.Sequential(LowRank(nn.Linear(8, 32)), nn.ReLU(), LowRank(nn.Linear(32, 2)))
    history = seen(lambda: fit(model, labeled, 60, lambda p: torch.optim.Adam(p, 1e-4)))
    assert reported(history, "weight_init_wrong") == []


def test_a_quarter_of_constant_pixels_is_no_fault() -> None:
    def batch() -> tuple[Any, Any]:
        given, _ = labeled(width=16)
        given[:, :4] = 0
        given[:, 4] *= 1e-3
        given[:, 5] *= 5
        return given, torch.randint(2, (len(given),))

    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))
    history = seen(lambda: fit(model, batch, 60))
    assert reported(history, "input_invalid") == []
    assert reported(history, "input_scale_wrong") == []


def test_a_layer_whose_weights_a_function_uses_is_used() -> None:
    class Tied(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.projection, self.head = (
                nn.Linear(8, 8),
                nn.Linear(8, 8),
                nn.Linear(8, 2),
            )
            self.projection.requires_grad_(False)

        def forward(self, given: Any) -> Any:
            fixed = functional.linear(self.body(given), self.projection.weight)
            return self.head(torch.relu(fixed))

    history = seen(lambda: fit(Tied(), labeled, 20))
    assert reported(history, "layer_unused") == []


def test_a_layer_that_is_never_called_is_unused() -> None:
    class Forgetful(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.forgotten, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

        def forward(self, given: Any) -> Any:
            return self.head(torch.relu(self.body(given)))

    history = seen(lambda: fit(Forgetful(), labeled, 20))
    assert reported(history, "layer_unused")


def test_the_softmax_of_a_masked_attention_is_no_activation() -> None:
    class Attending(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.body, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
            self.softmax = nn.Softmax(dim=-1)

        def forward(self, given: Any) -> Any:
            rows = given.view(len(given), 12, 8)
            scores = self.query(rows) @ rows.transpose(1, 2)
            late = torch.ones(12, 12).triu(1).bool()
            weights = self.softmax(scores.masked_fill(late, -math.inf) * 5)
            return self.out(torch.relu(self.body(weights @ rows)).mean(1))

    history = seen(lambda: fit(Attending(), lambda: labeled(width=96), 40))
    assert reported(history, "activation_wrong") == []


def test_gradients_from_where_no_backward_is_seen_are_gradients() -> None:
    model = nn.Linear(8, 1)

    def train() -> None:
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(10):
            given, _ = labeled()
            for parameter in model.parameters():
                parameter.grad = torch.randn_like(parameter)
            model(given)
            optimizer.step()

    assert reported(seen(train), "backward_missing") == []


def test_sorted_validation_data_are_not_prepared_otherwise() -> None:
    def batch(count: int = 64) -> tuple[Any, Any]:
        wanted = torch.randint(4, (count,))
        return torch.randn(count, 8) * 0.4 + wanted[:, None].float(), wanted

    model = nn.Linear(8, 4)

    def train() -> None:
        for _ in range(4):
            fit(model, batch, 10)
            model.eval()
            given, wanted = batch(400)
            order = wanted.argsort(descending=True)
            with torch.no_grad():
                for rows in order.split(64):
                    functional.cross_entropy(model(given[rows]), wanted[rows])
            model.train()

    assert reported(seen(train), "preprocessing_mismatch") == []


def test_units_are_not_dead_for_one_example() -> None:
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    history = seen(lambda: fit(model, lambda: labeled(1), 40))
    assert reported(history, "dead_units") == []


def test_a_rate_of_one_is_usual_for_adadelta() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def batch() -> tuple[Any, Any]:
        given, _ = labeled()
        return given, torch.randint(2, (len(given),))

    history = seen(lambda: fit(model, batch, 80, lambda p: torch.optim.Adadelta(p, lr=1.0)))
    assert reported(history, "learning_rate_too_high") == []


@pytest.mark.parametrize("stays", [False, True])
def test_a_few_skipped_batches_are_no_diverging_loss(stays: bool) -> None:
    model = nn.Linear(4, 1)

    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for number in range(100):
            given = torch.randn(16, 4)
            optimizer.zero_grad()
            loss = functional.mse_loss(model(given), given.sum(1, keepdim=True))
            if number in (50, 51, 52) or (stays and number > 52):
                loss = loss * math.nan
            loss.backward()
            if torch.isfinite(loss):
                optimizer.step()

    assert bool(reported(seen(train), "learning_rate_too_high")) == stays


def test_sixteen_steps_do_not_overfit() -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))

    def train() -> None:
        for _ in range(4):
            fit(model, lambda: labeled(16), 4, lambda p: torch.optim.Adam(p, 3e-2))
            model.eval()
            given, _ = labeled(32)
            with torch.no_grad():
                # Other data: the examples of the training cannot be known yet.
                functional.cross_entropy(model(given), torch.randint(2, (32,)))
            model.train()

    assert reported(seen(train), "overfitting") == []


def graded(trained: float, tested: float, batches: int, batch: int) -> TrainingHistory:
    """A training of falling loss with these shares of right answers in its last batches, and in an evaluation."""
    first = {"shape": [batch], "rows": ["the same"]}
    records: list[dict[str, Any]] = [
        {"kind": "losses", "losses": [[n, "train.py:1", 1.0 / (n + 1)] for n in range(batches)]}
    ]
    for number in range(batches):
        given = {"inputs": [first], "target": {"shape": [batch]}, "accuracy": trained}
        records.append({"kind": "iteration", "iteration": number, **given})
    accuracy = {"iteration": batches, "loss": 0.7, "accuracy": tested, "examples": 400.0}
    return read_records([*records, {"kind": "evaluation", **accuracy}])


@pytest.mark.parametrize(("batch", "is_found"), [(2, False), (4, False), (16, True), (32, True)])
def test_a_gap_counts_once_enough_examples_show_it(batch: int, is_found: bool) -> None:
    history = graded(0.79, 0.555, batches=12, batch=batch)
    assert bool(reported(history, "overfitting")) == is_found


def test_weights_that_change_in_few_iterations_change() -> None:
    model = nn.Linear(8, 2)

    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for number in range(24):
            given, wanted = labeled()
            (functional.cross_entropy(model(given), wanted) / 8).backward()
            if number % 8 == 7:
                optimizer.step()
                optimizer.zero_grad()

    assert reported(seen(train), "weights_unchanged") == []


def test_a_short_training_that_learns_has_enough_epochs() -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
    history = seen(lambda: fit(model, labeled, 16, lambda p: torch.optim.Adam(p, 1e-2)))
    assert list(catalogue()["epochs_too_few"](history)) == []


class _WeightsAfterTheActivation(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.activation = nn.Linear(8, 32), nn.ReLU()
        self.weights = nn.Parameter(torch.randn(32, 2) / 32)

    def forward(self, given: Any) -> Any:
        return self.activation(self.hidden(given)) @ self.weights


def test_an_activation_before_weights_is_not_the_last() -> None:
    model = _WeightsAfterTheActivation()
    assert reported(seen(lambda: fit(model, labeled, 12)), "last_activation_wrong") == []


def test_a_softmax_before_cross_entropy_is_found_in_bfloat16_to_the_end() -> None:
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(1))

    def batch() -> tuple[Any, Any]:
        given = torch.randn(64, 8)
        return given, given.argmax(1)

    def train() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            fit(model, batch, 120, lambda p: torch.optim.Adam(p, 1e-2))

    history = seen(train)
    assert reported(history.until(10), "last_activation_wrong")
    assert reported(history, "last_activation_wrong")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (0.35, "35%"),
        (2.0, "200%"),
        (0.034, "3.4%"),
        (4e-5, "0.004%"),
        (-2e-3, "-0.2%"),
    ],
)
def test_a_small_share_is_not_nothing(share: float, text: str) -> None:
    assert percent(share) == text


def root_of(train: Callable[[], object]) -> str:
    """The word of the root of a training; empty where there is none."""
    root = conclude(seen(train)).root
    return root.word if root is not None else ""


@pytest.mark.parametrize(("zeros", "found"), [(0, False), (8, True)])
def test_a_row_of_zeros_among_rows_of_few_numbers_is_an_example(zeros: int, found: bool) -> None:
    corners = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    wide = torch.randn(32, 8)
    wide[:zeros] = 0

    def batch() -> tuple[Any, Any]:
        given = wide if found else corners
        return given, (given.sum(1) == 1).long() if not found else (given[:, 0] > 0).long()

    history = seen(lambda: fit(nn.Linear(8 if found else 2, 2), batch, 12))
    assert bool(reported(history, "input_invalid")) == found


class Recurrent(nn.Module):  # type: ignore[misc, name-defined]
    """A cell that is given its state before its input."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.RNN(8, 16), nn.Linear(16, 2)

    def forward(self, state: Any, given: Any) -> Any:
        return self.head(self.cell(given, state)[0][-1])


def test_a_state_of_zeros_is_no_input() -> None:
    model = Recurrent()

    def train() -> None:
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for _ in range(12):
            given, wanted = labeled()
            optimizer.zero_grad()
            output = model(torch.zeros(1, 32, 16), given.expand(3, 32, 8))
            functional.cross_entropy(output, wanted).backward()
            optimizer.step()

    assert reported(seen(train), "input_invalid") == []


def test_one_unit_is_identical_to_no_other() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.Sigmoid())

    def batch() -> tuple[Any, Any]:
        given = torch.randn(16, 1)
        return given, (given + 0.3 * torch.randn(16, 1) > 1).float()

    loss_of = functional.binary_cross_entropy
    history = seen(lambda: fit(model, batch, 60, lambda p: torch.optim.SGD(p, 0.01), loss_of))
    assert reported(history, "weight_init_wrong") == []


@pytest.mark.parametrize(("shuffled", "found"), [(False, False), (True, True)])
def test_words_near_a_word_are_several(shuffled: bool, found: bool) -> None:
    words = torch.eye(8)

    def batch() -> tuple[Any, Any]:
        word = torch.randint(8, (16,))
        near = torch.where(torch.rand(16) < 0.4, word, torch.randint(8, (16,)))
        return words[word], torch.randint(8, (16,)) if shuffled else near

    model = nn.Linear(8, 8)
    history = seen(lambda: fit(model, batch, 120, lambda p: torch.optim.SGD(p, 0.5)))
    assert bool(list(catalogue()["labels_wrong"](history))) == found


def test_a_sum_over_a_batch_whose_training_goes_well_is_meant() -> None:
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    truth = torch.randn(8, 1)

    def batch() -> tuple[Any, Any]:
        given = torch.randn(64, 8)
        return given, given @ truth + torch.randn(64, 1)

    loss_of = nn.MSELoss(reduction="sum")
    assert (
        root_of(lambda: fit(model, batch, 150, lambda p: torch.optim.SGD(p, 1e-4), loss_of)) == ""
    )


def test_of_several_players_no_loss_shows_harm() -> None:
    maker = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16, 0.8), nn.ReLU(), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))

    def play() -> None:
        of_maker, of_critic = (torch.optim.Adam(m.parameters(), 1e-2) for m in (maker, critic))
        judge = functional.binary_cross_entropy_with_logits
        for _ in range(40):
            made = maker(torch.randn(16, 4))
            of_maker.zero_grad()
            judge(critic(made), torch.ones(16, 1)).backward()
            of_maker.step()
            of_critic.zero_grad()
            real = judge(critic(torch.randn(16, 2) + 4), torch.ones(16, 1))
            ((real + judge(critic(made.detach()), torch.zeros(16, 1))) / 2).backward()
            of_critic.step()

    history = seen(play)
    assert is_harmed(history) is None
    assert conclude(history).root is None


def test_the_arguments_of_a_distance_may_be_exchanged() -> None:
    model = nn.Linear(4, 1)

    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(8):
            given = torch.randn(16, 4)
            optimizer.zero_grad()
            functional.mse_loss(given[:, :1], model(given)).backward()
            optimizer.step()

    assert not any(i.relations.get("differentiable") for i in seen(train).iterations)


def test_gradients_of_a_target_network_have_no_effect() -> None:
    model, target = nn.Linear(4, 2), nn.Linear(4, 2)

    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(8):
            state, following = torch.randn(16, 4), torch.randn(16, 4)
            optimizer.zero_grad()
            goal = state[:, :1] + 0.9 * target(following).max(1)[0].unsqueeze(1)
            functional.smooth_l1_loss(model(state)[:, :1], goal).backward()
            optimizer.step()

    assert not any(i.relations.get("differentiable") for i in seen(train).iterations)


@pytest.mark.parametrize("copied", ["at first", "later"])
@pytest.mark.parametrize("within", [True, False])
def test_a_target_network_belongs_to_no_optimizer(copied: str, within: bool) -> None:
    def train() -> None:
        model, target = (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)) for _ in "ab")
        both = nn.ModuleDict({"online": model, "target": target})
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for step in range(12):
            if step % 8 == (0 if copied == "at first" else 6):
                target.load_state_dict(model.state_dict())
            state, following = torch.randn(16, 4), torch.randn(16, 4)
            optimizer.zero_grad()
            value = (both["target"] if within else target)(following).max(1)[0]
            functional.mse_loss(model(state)[:, 0], state[:, 0] + 0.9 * value).backward()
            optimizer.step()

    assert reported(seen(train), "parameters_frozen") == []


def test_sorted_targets_end_alike_without_padding() -> None:
    model = nn.Sequential(nn.Embedding(3, 8), nn.Linear(8, 3))

    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(8):
            given = torch.randint(3, (64, 6))
            both = torch.cat([given, given.sort(1).values], 1)
            targets = both[:, 1:].clone()
            targets[:, :5] = -1
            optimizer.zero_grad()
            scores = model(both[:, :-1]).reshape(-1, 3)
            functional.cross_entropy(scores, targets.reshape(-1), ignore_index=-1).backward()
            optimizer.step()

    assert not any(i.relations.get("padding") for i in seen(train).iterations)


def test_the_loss_of_an_actor_does_not_train_its_critic() -> None:
    actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)

    def train() -> None:
        of_actor = torch.optim.Adam(actor.parameters(), 0.01)
        of_critic = torch.optim.Adam(critic.parameters(), 0.01)
        for _ in range(40):
            state, reward = torch.randn(16, 4), torch.randn(16, 1)
            choice = torch.randint(3, (16, 1))
            goal = reward + 0.9 * critic(torch.randn(16, 4))
            gain = (goal - critic(state)).detach()
            chosen = torch.log(actor(state).softmax(1).gather(1, choice))
            loss = (-chosen * gain).mean()
            error = functional.mse_loss(critic(state), goal.detach()).mean()
            of_actor.zero_grad()
            of_critic.zero_grad()
            loss.backward()
            error.backward()
            of_actor.step()
            of_critic.step()

    facts = [fact["name"] for of in seen(train).experiments for fact in of["facts"]]
    assert "cuts_gradients" not in facts


def test_a_record_that_does_not_say_what_a_tensor_is_fails_no_search() -> None:
    assert conclude(graded(0.79, 0.555, batches=12, batch=16)).failed == ()


def test_an_evaluation_with_the_loader_of_the_training_leaks_no_data() -> None:
    data = torch.utils.data.TensorDataset(*labeled(256))
    loader = torch.utils.data.DataLoader(data, 16, shuffle=True)
    model = nn.Linear(8, 2)

    def train() -> None:
        stepping = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            for given, wanted in loader:
                stepping.zero_grad()
                functional.cross_entropy(model(given), wanted).backward()
                stepping.step()
            model.eval()
            with torch.no_grad():
                for given, wanted in loader:
                    (model(given).argmax(1) == wanted).float().mean().item()
            model.train()

    history = seen(train)
    assert history.evaluations
    assert reported(history, "data_leaked") == []


def test_a_gradient_that_is_part_of_a_loss_is_no_backward_pass() -> None:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def train() -> None:
        for _ in range(4):
            given = torch.randn(16, 8, requires_grad=True)
            value = model(given)
            for _ in range(20):
                torch.autograd.grad(value, given, torch.randn_like(value), retain_graph=True)
                torch.autograd.grad(value.sum(), (given, *model.parameters()), retain_graph=True)
        optimizer.zero_grad()

    history = seen(train)
    assert history.count <= 4
    assert reported(history, "step_missing") == []


def test_a_step_for_two_losses_may_raise_one_of_them() -> None:
    model = nn.Linear(8, 1)

    def train() -> None:
        stepping = torch.optim.SGD(model.parameters(), 0.05)
        for _ in range(30):
            given, wanted = torch.randn(16, 8), torch.ones(16, 1)
            stepping.zero_grad()
            functional.mse_loss(model(given), wanted).backward()
            (3 * functional.mse_loss(model(given), -wanted)).backward()
            stepping.step()

    assert reported(seen(train), "optimizer_wrong") == []


def test_a_step_with_the_gradients_of_all_parameters_has_a_backward_pass() -> None:
    model = nn.Linear(8, 2)

    def train() -> None:
        stepping = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(20):
            given, wanted = labeled()
            loss = functional.cross_entropy(model(given), wanted)
            for parameter, gradient in zip(
                model.parameters(), torch.autograd.grad(loss, model.parameters()), strict=True
            ):
                parameter.grad = gradient
            stepping.step()

    history = seen(train)
    assert all(iteration.backwards for iteration in history.iterations)
    assert reported(history, "backward_missing") == []
    assert reported(history, "zero_grad_missing") == []  # They replace those of the step before.


def test_what_an_optimizer_holds_is_a_parameter_too() -> None:
    weight = torch.zeros(8, 2, requires_grad=True)

    def train() -> None:
        stepping = torch.optim.SGD([weight], 0.1)
        for _ in range(20):
            given, wanted = labeled()
            loss = functional.cross_entropy(given @ weight, wanted)
            (weight.grad,) = torch.autograd.grad(loss, [weight])
            stepping.step()

    assert reported(seen(train), "backward_missing") == []


def test_an_optimizer_around_another_is_the_same() -> None:
    class Wrapped(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        @property
        def param_groups(self) -> Any:
            return self.inner.param_groups

        def step(self, closure: Any = None) -> None:
            self.inner.step(closure)

    def train() -> None:
        model = nn.Linear(8, 2)
        wrapped = Wrapped(torch.optim.SGD(model.parameters(), 0.1))
        torch.optim.lr_scheduler.LambdaLR(wrapped, lambda _: 1.0)
        for _ in range(30):
            given, wanted = labeled()
            model.zero_grad()
            functional.cross_entropy(model(given), wanted).backward()
            wrapped.step()

    history = seen(train)
    assert reported(history, "step_missing") == []
    assert len(history.optimizers) == 1


@pytest.mark.parametrize("tested", [True, False])
def test_words_that_are_never_a_target_are_no_missing_class(tested: bool) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
        fit(model, lambda: labeled(64), 60)
        model.eval()
        with torch.no_grad():
            given, wanted = labeled(200)
            # What is tested is harder, and none of it is trained; with `tested` it is of the third class.
            model_output = model(given)
            functional.cross_entropy(model_output, wanted + 1 if tested else 1 - wanted)

    history = seen(train)
    found = list(catalogue()["not_shuffled"](history))
    assert [one.kind in PROOFS for one in found] == [tested]


class _Hides(nn.Module):  # type: ignore[misc]
    """A model whose layers are in a list of Python, or in one that it knows."""

    def __init__(self, *, known: bool) -> None:
        super().__init__()
        layers = [nn.Linear(32, 32) for _ in range(2)]
        self.first, self.head = nn.Linear(8, 32), nn.Linear(32, 2)
        self.layers = nn.ModuleList(layers) if known else layers

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


def _adam(model: Any) -> Any:
    return torch.optim.Adam(model.parameters(), 1e-3)


def _replaced(model: Any) -> Any:
    optimizer = _adam(model)
    model.layers[0] = nn.Linear(32, 32)
    return optimizer


def _head_of_a_trained(model: Any) -> Any:
    with torch.no_grad():
        for parameter in model.layers.parameters():
            parameter.normal_()
    return torch.optim.Adam([*model.first.parameters(), *model.head.parameters()], 1e-3)


@pytest.mark.parametrize(
    ("known", "optimizer", "line"),
    [
        (True, _adam, ""),
        (True, _head_of_a_trained, ""),
        (True, _replaced, "return torch.optim.Adam(model.parameters(), 1e-3)"),
        (False, _adam, "layers = [nn.Linear(32, 32) for _ in range(2)]"),
    ],
)
def test_what_gets_gradients_and_stays_as_it_was_drawn(
    known: bool, optimizer: Callable[[Any], Any], line: str
) -> None:
    def train() -> None:
        model = _Hides(known=known)
        stepping = optimizer(model)
        for _ in range(20):
            given, wanted = labeled()
            stepping.zero_grad()
            functional.cross_entropy(model(given), wanted).backward()
            stepping.step()

    found = [one for one in catalogue()["parameters_frozen"](seen(train)) if one.kind in PROOFS]
    assert [one.place and one.place.text for one in found] == ([line] if line else [])


@pytest.mark.parametrize("given", [True, False])
def test_a_change_late_in_a_training_is_inspected(given: bool) -> None:
    def train() -> None:
        body, head = nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Linear(32, 2)
        optimizer = _adam(nn.Sequential(body, head))
        for number in range(600):
            if number == 200:
                body.requires_grad_(False)
                optimizer = _adam(head)
            if number == 400:
                optimizer = _adam(head)
                body.requires_grad_(True)
                if given:
                    optimizer.add_param_group({"params": list(body.parameters())})
            inputs, wanted = labeled()
            loss = functional.cross_entropy(head(body(inputs)), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    # Nothing is inspected that is not free.
    history = seen(train, every=0, share=0.0)
    assert sum(iteration.number >= 400 for iteration in history.iterations) >= 4
    assert (reported(history, "parameters_frozen") == []) is given


@pytest.mark.parametrize("late", [0, 1, -1])
def test_labels_of_another_batch(late: int) -> None:
    def train() -> None:
        centers = 4 * torch.randn(4, 8)
        stored: list[Any] = []
        for _ in range(32):
            labels = torch.randint(4, (32,))
            stored.append((centers[labels] + torch.randn(32, 8), labels))
        batches = iter((stored[n][0], stored[n - late][1]) for n in range(1, 31))
        fit(nn.Linear(8, 4), lambda: next(batches), 30)

    found = [one for one in catalogue()["labels_wrong"](seen(train)) if one.kind in PROOFS]
    assert ["targets of the batch" in one.text for one in found] == ([True] if late else [])


@pytest.mark.parametrize("bends", [True, False])
def test_a_model_that_is_linear_and_learns_nothing(bends: bool) -> None:
    def batch() -> tuple[Any, Any]:
        given = torch.randint(2, (64, 2)) * 2.0 - 1
        return given, (given.prod(1) > 0).long()

    def train() -> None:
        between = nn.Tanh() if bends else nn.Identity()
        fit(nn.Sequential(nn.Linear(2, 32), between, nn.Linear(32, 2)), batch, 300,
            lambda parameters: torch.optim.Adam(parameters, 1e-2))  # fmt: skip

    found = [one for one in catalogue()["activation_missing"](seen(train)) if one.kind in PROOFS]
    assert [one.word for one in found] == ([] if bends else ["activation_missing"])


@pytest.mark.parametrize(
    ("settings", "found"), [({}, 1), ({"training": True}, 0), ({"training": False}, 0)]
)
def test_a_dropout_that_is_not_told_of_the_evaluation(
    settings: dict[str, bool], found: int
) -> None:
    class Drops(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(8, 32), nn.Linear(32, 2)

        def forward(self, x: Any) -> Any:
            return self.head(functional.dropout(torch.relu(self.body(x)), 0.5, **settings))

    def train() -> None:
        model = Drops()
        for _ in range(3):
            fit(model.train(), labeled, 20)
            model.eval()
            with torch.no_grad():
                model(labeled()[0])

    # Iterations have spent what is free before the first evaluation.
    history = seen(train, every=0, share=0.0, free_s=0.005)
    assert len(list(catalogue()["eval_mode_missing"](history))) == found


def test_of_several_rare_classes_none_has_to_be_the_rarest_by_far() -> None:
    weights, shares = torch.tensor([0.886, 0.0375, 0.0415, 0.035]), torch.tensor([36, 1, 1, 2.0])

    def train() -> None:
        def batch() -> tuple[Any, Any]:
            return torch.randn(40, 8), torch.multinomial(shares, 40, replacement=True)

        fit(nn.Linear(8, 4), batch, 20, loss_of=nn.CrossEntropyLoss(weight=weights))

    assert len(reported(seen(train), "sample_weights_wrong")) == 1


@pytest.mark.parametrize(
    ("tested", "called", "found"), [(True, False, 1), (True, True, 0), (False, False, 0)]
)
def test_one_evaluation_is_enough_if_it_tests_the_model(
    tested: bool, called: bool, found: int
) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 2))
        fit(model, labeled, 40)
        if called:
            model.eval()
        x, y = labeled()
        with torch.no_grad():
            right = model(x).argmax(1) == (y if tested else None)
            if tested:
                print(right.float().mean().item())

    assert len(list(catalogue()["eval_mode_missing"](seen(train)))) == found


def test_a_model_that_scales_its_inputs_itself_when_it_is_evaluated() -> None:
    class Forecaster(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(8, 4)

        def forward(self, values: Any) -> Any:
            return self.net((values - 40) / 20)

    def train() -> None:
        model = Forecaster()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for _ in range(3):
            for _ in range(10):
                optimizer.zero_grad()
                wanted = torch.randn(32, 4)
                functional.mse_loss(model.net(torch.randn(32, 8)), wanted).backward()
                optimizer.step()
            with torch.no_grad():
                for _ in range(3):
                    functional.mse_loss(model(40 + 20 * torch.randn(32, 8)), torch.randn(32, 4))

    assert reported(seen(train), "preprocessing_mismatch") == []


def test_gradients_that_move_the_weights_uphill_are_not_lost() -> None:
    """Sharpness-aware training clears them afterwards (Foret et al., ICLR 2021)."""

    def train() -> None:
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def gradients(given: Any, wanted: Any) -> None:
            optimizer.zero_grad()
            functional.cross_entropy(model(given), wanted).backward()

        for _ in range(20):
            batch = labeled()
            gradients(*batch)
            moves = [0.05 * p.grad for p in model.parameters()]
            for parameter, move in zip(model.parameters(), moves, strict=True):
                parameter.data.add_(move)
            gradients(*batch)
            for parameter, move in zip(model.parameters(), moves, strict=True):
                parameter.data.sub_(move)
            optimizer.step()

    assert reported(seen(train), "accumulation_wrong") == []


@pytest.mark.parametrize("every", [1, 3])
def test_gradients_that_are_cleared_before_each_pass_are_lost(every: int) -> None:
    """Weights that a step has changed since an earlier inspection were not moved by the program."""

    def train() -> None:
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(30):
            for _ in range(4):
                given, wanted = labeled()
                optimizer.zero_grad()
                functional.cross_entropy(model(given), wanted).backward()
            optimizer.step()

    assert reported(seen(train, every=every), "accumulation_wrong")
