"""Each fault of the catalogue in a small real training: found in the faulty one, not in the healthy one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from epochzero import taxonomy
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.faults._signals import chance_loss
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.verdict import conclude

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional


def clusters(count: int, seed: int) -> tuple[Any, Any]:
    """Points around four centers, that a small network separates."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (count,), generator=draw)
    centers = torch.tensor([[1.5, 1.5], [-1.5, 1.5], [1.5, -1.5], [-1.5, -1.5]]).repeat(1, 6)
    return centers[labels] + torch.randn(count, 12, generator=draw), labels


SLOWLY = partial(torch.optim.Adam, lr=3e-3)
TRAIN, TEST = partial(clusters, 640, 1), partial(clusters, 200, 2)


def network(*inside: Any) -> Any:
    """Two hidden layers, and what comes between them and the end."""
    return nn.Sequential(
        nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), *inside, nn.Linear(32, 4)
    )


@dataclass(frozen=True)
class Training:
    """A training as people write it; a fault replaces one thing of it."""

    model: Callable[[], Any] = network
    loss: Callable[[Any, Any], Any] = functional.cross_entropy
    optimizer: Callable[[Any], Any] = SLOWLY
    data: Callable[[], tuple[Any, Any]] = TRAIN
    tested: Callable[[], tuple[Any, Any]] = TEST
    epochs: int = 8
    batch: int = 32
    shuffle: bool = True
    clears: bool = True
    steps: bool = True
    passes: int = 1
    goes_back: bool = True
    trains: bool = True
    evaluates: bool = True
    schedule: Callable[[Any], Any] | None = None
    clip: float | None = None

    def run(self) -> TrainingHistory:
        """What the watcher has seen of it."""
        from epochzero.run.watch.child.hooks import Hooks
        from epochzero.run.watch.child.observer import Observer
        from epochzero.run.watch.child.records import Records
        from epochzero.run.watch.child.schedule import Schedule

        heard: list[dict[str, Any]] = []
        observer = Observer(Records(on_record=heard.append), Schedule(every=1))
        hooks = Hooks(observer)
        hooks.install()
        try:
            torch.manual_seed(0)
            self._train()
        finally:
            observer.end()
            hooks.remove()
        assert [record for record in heard if record["kind"] == "failed"] == []
        return read_records(heard)

    def _train(self) -> None:
        inputs, labels = self.data()
        model = self.model()
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = self.optimizer(trained)
        schedule = self.schedule(optimizer) if self.schedule else None
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(inputs, labels), self.batch, shuffle=self.shuffle
        )
        for _ in range(self.epochs):
            if self.trains:
                model.train()
            for number, (given, wanted) in enumerate(loader):
                if self.clears and number % self.passes == 0:
                    optimizer.zero_grad()
                loss = self.loss(model(given), wanted)
                if self.goes_back:
                    loss.backward()
                if self.clip:
                    nn.utils.clip_grad_norm_(model.parameters(), self.clip)
                if self.steps and (number + 1) % self.passes == 0:
                    optimizer.step()
                if schedule:
                    schedule.step()
            self._evaluate(model)

    def _evaluate(self, model: Any) -> None:
        if self.evaluates:
            model.eval()
        given, wanted = self.tested()
        with torch.no_grad():
            output = model(given)
            (output.argmax(1) == wanted).float().mean()
            self.loss(output, wanted)


GOOD = Training()


def changed(change: Callable[[Any], None]) -> Callable[[], Any]:
    """The network after a change that is made by hand."""

    def made() -> Any:
        model = network()
        with torch.no_grad():
            change(model)
        return model

    return made


def told_first(model: Any) -> None:
    """What all classes begin with alike changes nothing."""
    model[4].bias.fill_(-3.0)


class Flat(nn.Module):  # type: ignore[misc]
    """A threshold, which has no slope."""

    def forward(self, given: Any) -> Any:
        return (given > 0).float()


def summed(output: Any, wanted: Any) -> Any:
    """The mean, by way of the sum."""
    return functional.cross_entropy(output, wanted, reduction="sum") / len(wanted)


def of_low_rank() -> Any:
    """Two layers in a row with few numbers between them, on purpose."""
    return nn.Sequential(
        nn.Linear(12, 32),
        nn.ReLU(),
        nn.Linear(32, 6),
        nn.Linear(6, 32),
        nn.ReLU(),
        nn.Linear(32, 4),
    )


def class_by_class(count: int, seed: int) -> tuple[Any, Any]:
    """Batches of 32 that lie in order, each with all classes."""
    inputs, labels = clusters(4 * count, seed)
    places = [torch.nonzero(labels == one).flatten()[: count // 4] for one in range(4)]
    order = torch.stack(places).reshape(4, -1, 8).transpose(0, 1).reshape(-1)
    return inputs[order], labels[order]


def frozen(model: Any) -> None:
    model[0].weight.requires_grad_(False)
    model[2].requires_grad_(False)
    model[4].requires_grad_(False)


def deep(activation: Any) -> Any:
    layers = [layer for _ in range(9) for layer in (nn.Linear(32, 32), activation())]
    return nn.Sequential(nn.Linear(12, 32), activation(), *layers, nn.Linear(32, 4))


class Unused(nn.Module):
    """Has a layer that nobody calls."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.spare = network(), nn.Linear(32, 32)

    def forward(self, given: Any) -> Any:
        return self.body(given)


class Around(nn.Module):
    """Goes around its middle."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(12, 32), nn.Linear(32, 4)
        self.middle = nn.ModuleList([nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(3)])

    def forward(self, given: Any) -> Any:
        given = self.enter(given)
        for layer in self.middle:
            layer(given)
        return self.leave(given)


def with_(data: Callable[[], tuple[Any, Any]], **change: Callable[[Any], Any]) -> Callable[[], Any]:
    def made() -> tuple[Any, Any]:
        inputs, labels = data()
        return change.get("inputs", lambda x: x)(inputs), change.get("labels", lambda x: x)(labels)

    return made


def invalid(inputs: Any) -> Any:
    return inputs.masked_fill(inputs > 3, float("nan"))


def in_order() -> tuple[Any, Any]:
    inputs, labels = clusters(640, 1)
    order = labels.argsort()
    return inputs[order], labels[order]


def mostly_one() -> tuple[Any, Any]:
    inputs, labels = clusters(1600, 1)
    kept = (labels == 0) | (torch.arange(1600) % 16 == 0)
    return inputs[kept], labels[kept]


def by_chance(labels: Any) -> Any:
    return labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(5))]


def symbols(count: int, seed: int) -> tuple[Any, Any]:
    """Rows of six symbols out of eight, of which the first tells the class; nobody can say which row is which."""
    given = torch.randint(8, (count, 6), generator=torch.Generator().manual_seed(seed))
    return given, given[:, 0] // 2


def reader() -> Any:
    return nn.Sequential(
        nn.Embedding(8, 8), nn.Flatten(), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 4)
    )


READING = Training(
    model=reader, data=partial(symbols, 1920, 1), tested=partial(symbols, 400, 2), epochs=3
)
SGD = partial(torch.optim.SGD, lr=0.1)
FAULTY = {
    "zero_grad_missing": replace(GOOD, clears=False),
    "step_missing": replace(GOOD, steps=False),
    "backward_missing": replace(GOOD, goes_back=False),
    "eval_mode_missing": replace(GOOD, model=lambda: network(nn.Dropout(0.3)), evaluates=False),
    "train_mode_missing": replace(GOOD, model=lambda: network(nn.BatchNorm1d(32)), trains=False),
    "learning_rate_too_high": replace(GOOD, optimizer=partial(torch.optim.SGD, lr=300.0)),
    "learning_rate_too_low": replace(GOOD, optimizer=partial(torch.optim.Adam, lr=1e-7)),
    "schedule_wrong": replace(
        GOOD,
        schedule=lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.5),
    ),
    "optimizer_wrong": replace(GOOD, optimizer=partial(torch.optim.Adam, lr=3e-3, maximize=True)),
    "epochs_too_few": replace(
        GOOD, epochs=1, batch=80, optimizer=partial(torch.optim.Adam, lr=1e-3)
    ),
    "gradient_clipping_wrong": replace(GOOD, optimizer=SGD, clip=1e-5),
    "regularization_too_strong": replace(GOOD, optimizer=partial(SGD, weight_decay=1.0)),
    "weight_init_wrong": replace(
        GOOD,
        optimizer=SGD,
        model=changed(lambda m: [nn.init.zeros_(m[n].weight) for n in (0, 2, 4)]),
    ),
    "bias_init_wrong": replace(
        GOOD, optimizer=SGD, model=changed(lambda m: nn.init.constant_(m[2].bias, -20.0))
    ),
    "last_activation_wrong": replace(
        GOOD, model=lambda: nn.Sequential(network(), nn.Softmax(1)), epochs=2
    ),
    "activation_wrong": replace(GOOD, optimizer=SGD, model=partial(deep, nn.Sigmoid)),
    "normalization_wrong": replace(
        GOOD,
        model=lambda: nn.Sequential(nn.BatchNorm1d(12, momentum=0.0), network()),
        data=with_(TRAIN, inputs=lambda x: 5 * x + 30),
        tested=with_(TEST, inputs=lambda x: 5 * x + 30),
    ),
    "dropout_wrong": replace(GOOD, model=lambda: network(nn.Dropout(0.97))),
    "parameters_frozen": replace(GOOD, model=changed(frozen)),
    "layer_unused": replace(GOOD, model=Unused),
    "loss_wrong": replace(
        GOOD, optimizer=SGD, loss=partial(functional.cross_entropy, reduction="sum"), batch=128
    ),
    "input_scale_wrong": replace(GOOD, data=with_(TRAIN, inputs=lambda x: x * 300), optimizer=SGD),
    "input_invalid": replace(GOOD, data=with_(TRAIN, inputs=invalid)),
    "labels_wrong": replace(GOOD, data=with_(TRAIN, labels=by_chance), epochs=6),
    "classes_unbalanced": replace(GOOD, data=mostly_one, epochs=2),
    "not_shuffled": replace(GOOD, data=in_order, shuffle=False),
    "data_leaked": replace(GOOD, tested=TRAIN),
    "data_duplicated": replace(
        GOOD,
        data=with_(
            TRAIN, inputs=lambda x: x[:16].repeat(40, 1), labels=lambda y: y[:16].repeat(40)
        ),
    ),
    "preprocessing_mismatch": replace(GOOD, tested=with_(TEST, inputs=lambda x: x * 20)),
    "sample_weights_wrong": replace(
        GOOD,
        loss=partial(functional.cross_entropy, weight=torch.tensor([1.0, 0.0, 0.0, 1.0])),
    ),
    "data_too_small": replace(
        GOOD,
        data=with_(partial(clusters, 12, 1), inputs=lambda x: x + 3 * torch.randn(x.shape)),
        epochs=80,
        batch=4,
    ),
}


FAULTY_READING = {
    "labels_wrong": replace(READING, data=with_(READING.data, labels=by_chance), epochs=2),
    "data_duplicated": replace(
        READING,
        data=with_(
            READING.data,
            inputs=lambda x: x[:16].repeat(120, 1),
            labels=lambda y: by_chance(y[:16]).repeat(120),
        ),
    ),
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("word", FAULTY)
def test_the_fault_is_the_root_or_suspected(word: str) -> None:
    watched = conclude(FAULTY[word].run())
    assert watched.failed == ()
    found = watched.root or watched.suspect
    assert found is not None
    assert found.word == word, (found, watched.others)
    assert found.fix


@pytest.mark.parametrize("word", FAULTY_READING)
def test_a_fault_is_suspected_where_examples_cannot_be_told_apart(word: str) -> None:
    watched = conclude(FAULTY_READING[word].run())
    assert watched.failed == ()
    assert watched.root is None
    assert watched.suspect is not None
    assert watched.suspect.word == word, watched.others


def gathered(output: Any, wanted: Any) -> Any:
    """Of four passes, whose gradients are added up."""
    return functional.cross_entropy(output, wanted) / 4


@pytest.mark.parametrize(
    ("loss", "passes", "chance"),
    [
        (functional.cross_entropy, 1, math.log(4)),
        (gathered, 4, math.log(4) / 4),
        (functional.cross_entropy, 4, math.log(4)),
    ],
    ids=["one pass", "divided", "not divided"],
)
def test_the_loss_by_chance_is_divided_as_the_loss_is(
    loss: Callable[[Any, Any], Any], passes: int, chance: float
) -> None:
    history = replace(GOOD, loss=loss, epochs=1, passes=passes).run()
    assert chance_loss(history) == pytest.approx(chance, rel=0.02)


def test_the_huber_loss_by_chance_is_that_of_the_mean() -> None:
    wanted = torch.randn(4000, generator=torch.Generator().manual_seed(3))
    spread = {"std": 2.0, "shape": [32]}
    looks = [
        {"kind": "iteration", "iteration": n, "function": "huber_loss", "target": spread}
        for n in range(3)
    ]
    by_mean = functional.huber_loss(torch.zeros(4000), 2.0 * wanted)
    assert chance_loss(read_records(looks)) == pytest.approx(float(by_mean), rel=0.03)


@pytest.mark.parametrize(
    "training",
    [
        GOOD,
        READING,
        replace(GOOD, model=lambda: network(nn.Dropout(0.3))),
        replace(GOOD, model=lambda: network(nn.BatchNorm1d(32))),
        replace(GOOD, optimizer=partial(torch.optim.SGD, lr=0.1, momentum=0.9)),
        replace(GOOD, clip=1.0),
        replace(GOOD, schedule=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 160)),
        replace(GOOD, model=partial(deep, nn.ReLU), epochs=12),
        replace(GOOD, loss=summed, epochs=2),
        replace(GOOD, model=changed(told_first), epochs=2),
        replace(GOOD, model=of_low_rank, epochs=2),
        replace(GOOD, data=partial(class_by_class, 640, 1), shuffle=False),
    ],
    ids=[
        "plain",
        "symbols",
        "dropout",
        "batch norm",
        "momentum",
        "clipped",
        "cosine",
        "deep",
        "sum that is divided",
        "bias of the end",
        "low rank",
        "class by class",
    ],
)
def test_a_healthy_training_has_none(training: Training) -> None:
    watched = conclude(training.run())
    assert watched.failed == ()
    assert watched.root is None, watched.root


def test_a_function_without_a_slope_is_found_though_the_training_does_well() -> None:
    def model() -> Any:
        return nn.Sequential(nn.Linear(12, 64), Flat(), nn.Linear(64, 4))

    suspect = conclude(replace(GOOD, model=model).run()).suspect
    assert suspect is not None
    assert (suspect.word, suspect.layer) == ("activation_wrong", "1")


def test_layers_whose_result_is_thrown_away_are_unused() -> None:
    found = list(catalogue()["layer_unused"](replace(GOOD, model=Around, epochs=1).run()))
    assert [(one.word, one.layer) for one in found] == [("layer_unused", "middle")]
    assert "discarded: leave takes" in found[0].text


def test_the_loss_of_a_search_before_the_training_is_not_the_loss() -> None:
    losses = [[0, "a.py:3", 1.0], [1, "a.py:3", 90.0], *([n, "a.py:9", 0.5] for n in range(2, 9))]
    history = read_records([{"kind": "losses", "losses": losses}])
    assert history.loss[:, 1].tolist() == [0.5] * 7


def test_a_network_that_is_only_asked_is_not_frozen() -> None:
    """A teacher or a target: its own optimizer never comes."""
    parameter = {"trainable": True, "rms": 1.0, "largest": 1.5, "shape": [4, 4]}

    def model(number: int, held: bool) -> dict[str, Any]:
        layer = {"path": "body", "class": "Linear", "settings": {}, "leaf": True, "called": True}
        return {
            "kind": "model", "number": number, "layers": [{**layer, "parameters": ["weight"]}],
            "parameters": [{**parameter, "name": "body.weight", "held": held}],
        }  # fmt: skip

    def looks(learning: int) -> list[Any]:
        layers = {"0/body": {"source": ""}, "1/body": {"source": ""}}
        moved = {"weight": {"rms": 1.0}, "update": {"rms": 0.1}, "gradient": {"largest": 1.0}}
        of = {f"{learning}/body.weight": moved}
        return [
            {"kind": "iteration", "iteration": n, "layers": layers, "parameters": of}
            for n in range(9)
        ]

    names = [
        {"kind": "root", "number": n, "name": name} for n, name in enumerate(("net", "target"))
    ]
    optimizer = {"kind": "optimizer", "class": "Adam", "groups": [{}], "place": None}
    find = catalogue()["parameters_frozen"]
    asked = [*names, model(0, True), model(1, False), optimizer, *looks(0)]
    assert list(find(read_records(asked))) == []
    left_out = [*names, model(0, False), optimizer, *looks(1)]
    assert [one.word for one in find(read_records(left_out))] == ["parameters_frozen"]


@pytest.mark.parametrize(("last", "diverges"), [(9.0, True), (float("nan"), False)])
def test_an_evaluation_loss_that_is_not_finite_does_not_diverge(
    last: float, diverges: bool
) -> None:
    losses = [[number, "a.py:3", 2.0 - number / 100] for number in range(100)]
    evaluations = [
        {"kind": "evaluation", "iteration": at, "loss": loss}
        for at, loss in ((30, 1.0), (60, 1.1), (90, last))
    ]
    history = read_records([{"kind": "losses", "losses": losses}, *evaluations])
    assert bool([*catalogue()["validation_diverging"](history)]) is diverges


def test_every_entry_of_the_catalogue_is_a_word_of_the_taxonomy() -> None:
    words = {*taxonomy.faults(), *taxonomy.symptoms()}
    assert set(catalogue()) <= words


def test_what_a_suspect_brings_about_is_told_under_it() -> None:
    watched = conclude(FAULTY["learning_rate_too_low"].run())
    assert watched.suspect is not None
    assert {one.word for one in watched.symptoms} <= set(watched.suspect.causes)
    assert "updates_too_small" in {one.word for one in watched.symptoms}


def test_nothing_is_said_of_no_training() -> None:
    watched = conclude(read_records([]))
    assert (watched.root, watched.symptoms, watched.others, watched.failed) == (None, (), (), ())
