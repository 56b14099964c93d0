"""Whatever a program does with torch, it goes on doing it while it is watched."""

from __future__ import annotations

import copy
import functools
import io
import pickle
import threading
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from epochzero.run.watch.child import safety, standin
from tests.run.watch.child.conftest import Heard, watched

HERE = str(Path(standin.__file__).parent)


def _small() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def _steps(model: nn.Module, count: int = 3, **settings: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(count):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
        optimizer.step()


def _paths(heard: Heard) -> set[str]:
    return {path for one in heard.of("iteration") for path in one.get("layers", {})}


def test_hooks_of_a_module_are_called_as_often() -> None:
    def count() -> list[str]:
        told: list[str] = []
        model = _small()
        model[0].register_forward_pre_hook(lambda *_: told.append("before"))
        model[0].register_forward_hook(lambda *_: told.append("after"))
        model[2].register_full_backward_hook(lambda *_: told.append("backward"))
        model[2].weight.register_hook(lambda g: told.append("gradient") or g * 2)
        _steps(model)
        return told

    expected = count()
    with watched():
        assert count() == expected


def test_shared_and_lazy_modules() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = self.other = nn.LazyLinear(4)
            self.unused = nn.LazyLinear(3)
            self.head = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.other(self.one(x)))

    with warnings.catch_warnings(), watched() as heard:
        warnings.simplefilter("ignore")
        model = Shared()
        model(torch.randn(2, 4))
        optimizer = torch.optim.SGD([*model.one.parameters(), *model.head.parameters()], 0.1)
        for _ in range(2):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
    assert {"0/one", "0/head"} <= _paths(heard)


def test_weights_that_are_computed_as_in_meta_learning() -> None:
    with watched() as heard, warnings.catch_warnings():
        warnings.simplefilter("error")
        model, data = nn.Linear(4, 2), torch.randn(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            weight = model.weight
            inner = model(data).square().mean()
            (gradient,) = torch.autograd.grad(inner, [weight], create_graph=True)
            model._parameters["weight"] = weight - 0.1 * gradient
            optimizer.zero_grad()
            model(data).abs().mean().backward()
            model._parameters["weight"] = weight
            optimizer.step()
    assert len(heard.of("iteration")) == 3


def test_a_function_of_autograd_of_the_users() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return gradients[0] * 2

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.relu(Double.apply(self.layer(x)))

    with watched() as heard:
        _steps(Model())
    assert _paths(heard) == {"0/layer", "0/:relu"}


def test_complex_numbers() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2, dtype=torch.complex64)
            self.rest = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.rest(self.layer(torch.fft.fft(x)).abs())

    with watched() as heard:
        _steps(Model())
        nn.Linear(4, 4, dtype=torch.complex64).eval()(torch.randn(3, 4, dtype=torch.complex64))
    assert {"0/layer", "0/rest"} <= _paths(heard)


def test_sparse_and_nested_tensors() -> None:
    with watched() as heard, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = nn.Embedding(10, 4, sparse=True)
        optimizer = torch.optim.SparseAdam(table.parameters())
        weight = nn.Linear(4, 3)
        for _ in range(2):
            found = table(torch.tensor([1, 2, 2]))
            weight(torch.eye(4).to_sparse() @ found[:1].expand(4, 4)).sum().backward()
            optimizer.step()
        weight(torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)]))
    of = heard.of("iteration")[0]["parameters"]["0/weight"]
    assert of["gradient"]["rms"] > 0
    assert of["update"]["largest"] > 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_model_is_compiled_as_often(backend: str) -> None:
    def compilations() -> tuple[int, int]:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        model = nn.Sequential(_small(), nn.Tanh())
        model.forward = functools.partial(_with_functions, model)  # type: ignore[method-assign]
        compiled: Any = torch.compile(model, backend=backend)
        _steps(compiled, 6)
        compiled.eval()
        with torch.no_grad():
            for _ in range(3):
                (compiled(torch.randn(8, 4)).argmax(1) == torch.zeros(8)).float().mean().item()
        compiled.train()
        _steps(compiled, 3)
        counted = torch._dynamo.utils.counters
        return counted["stats"]["unique_graphs"], sum(counted["graph_break"].values())

    expected = compilations()
    with watched(every=2) as heard:
        assert compilations() == expected
    torch._dynamo.reset()
    assert len(heard.of("iteration")) >= 4


def _with_functions(model: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(functional.relu(model[0](x)).sigmoid()) + torch.softmax(x[:, :2], 1)


def test_a_compiled_step_is_compiled_as_often() -> None:
    def compilations() -> int:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        model = _small()

        @torch.compile(backend="eager")
        def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(functional.relu(model(x)), y)

        for _ in range(6):
            loss_of(torch.randn(8, 4), torch.randint(2, (8,))).backward()
            with torch.no_grad():
                model[0].weight -= 0.1
        return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])

    expected = compilations()
    with watched(every=2):
        assert compilations() == expected
    torch._dynamo.reset()


def test_transforms_of_functions() -> None:
    model = _small()
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    x, y = torch.randn(8, 4), torch.randint(2, (8,))

    def loss(parameters: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = functional_call(model, parameters, (x.unsqueeze(0),))
        return functional.cross_entropy(out, y.unsqueeze(0))

    def of_each() -> Any:
        return vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)

    expected = of_each()
    with watched():
        found = of_each()
        functional_call(model, parameters, (x,))
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_threads_beside_the_training_are_let_alone() -> None:
    model, errors = _small(), []

    def call() -> None:
        try:
            for _ in range(50):
                model(torch.randn(8, 4))
        except BaseException as error:  # pragma: no cover
            errors.append(error)

    with watched() as heard:
        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        _steps(model, 5)
        for thread in threads:
            thread.join()
    assert errors == []
    assert [one["calls"] for one in heard.of("iteration")] == [1] * 5


def test_a_training_in_a_thread_of_its_own_is_watched() -> None:
    with watched() as heard:
        thread = threading.Thread(target=_steps, args=(_small(), 4))
        thread.start()
        thread.join()
    assert len(heard.of("iteration")) == 4
    assert heard.of("iteration")[-1]["layers"]


def test_parallel_in_one_process() -> None:
    with watched() as heard:
        _steps(nn.DataParallel(_small()))
    assert "0/2" in _paths(heard)


class _Saved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.other = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, activation="gelu")
        self.functions = [torch.tanh, functional.gelu, functional.relu, functional.cross_entropy]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.functions[0](self.other(self.layer(x)))


def test_a_model_is_copied_and_saved_while_watched_and_after() -> None:
    with watched():
        model = _Saved()
        model(torch.randn(2, 3, 4)).sum().backward()
        copy.deepcopy(model)
        within = pickle.dumps(model)
        torch.save(model, io.BytesIO())
    after = pickle.dumps(model)
    expected = [torch.tanh, functional.gelu, functional.relu, functional.cross_entropy]
    for data in (within, after):
        loaded = pickle.loads(data)
        assert all(one is other for one, other in zip(loaded.functions, expected, strict=True))
        with watched():
            loaded(torch.randn(2, 3, 4))


def test_the_fast_path_of_transformers_is_taken() -> None:
    with watched():
        assert nn.TransformerEncoderLayer(4, 2).activation_relu_or_gelu == 1
        assert nn.TransformerEncoderLayer(4, 2, activation="gelu").activation_relu_or_gelu == 2


def test_a_table_of_functions_finds_ours() -> None:
    originals = torch.tanh, torch.Tensor.relu, functional.relu
    with watched():
        table = {torch.tanh: 1, torch.Tensor.relu: 2, functional.relu: 3}
        assert [table.get(one) for one in originals] == [1, 2, 3]


def test_torchscript() -> None:
    with watched() as heard, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(_Scripted())
        _steps(scripted)
        torch.jit.trace(_small(), torch.randn(2, 4))(torch.randn(3, 4))
    assert len(heard.of("iteration")) == 3


class _Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(torch.tanh(self.layer(x)), inplace=False)


class _OwnCall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * 2


def test_a_module_with_a_call_of_its_own() -> None:
    with watched() as heard:
        _steps(_OwnCall())
    assert len(heard.of("iteration")) == 3
    assert len(heard.of("root")) == 1


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_are_seen_once(reentrant: bool) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.block, self.head = nn.Linear(4, 4), _small(), nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = checkpoint(self.block, self.first(x), use_reentrant=reentrant)
            return self.head(x)

    with watched() as heard:
        _steps(Model())
    assert [one["calls"] for one in heard.of("iteration")] == [1, 1, 1]
    assert len(heard.of("root")) == 1
    assert sum(len(one["losses"]) for one in heard.of("losses")) == 3


def test_losses_that_are_dictionaries() -> None:
    with watched() as heard:
        model = _small()
        for _ in range(3):
            out = model(torch.randn(8, 4))
            losses = {"one": functional.mse_loss(out, torch.zeros(8, 2)), "two": out.abs().mean()}
            sum(losses.values()).backward()
            model.zero_grad()
    assert [n for one in heard.of("losses") for n, _, _ in one["losses"]] == [0, 1, 2]


class _Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Linear(5, 2)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


@pytest.mark.parametrize("every", [1, 1000])
def test_a_traceback_has_at_most_one_line_of_ours(every: int) -> None:
    model, x = _Broken(), torch.randn(8, 4)
    wrong: list[Any] = [
        lambda: model(x),
        lambda: functional.cross_entropy(x, torch.randn(3)),
        lambda: functional.relu(),  # type: ignore[call-arg]
        lambda: x.softmax(dim=7),
        lambda: torch.randn(2).backward(),
        lambda: torch.randn(2).item(),
    ]
    with watched(every):
        for one in wrong:
            with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as caught:
                one()
            lines = traceback.extract_tb(caught.value.__traceback__)
            assert sum(line.filename.startswith(HERE) for line in lines) <= 1, one
        with pytest.raises(RuntimeError):
            _steps(model)
        _steps(_small())


def test_an_interrupt_passes_through_and_watching_goes_on() -> None:
    class Interrupted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.layer(x)
            raise KeyboardInterrupt

    with watched() as heard:
        with pytest.raises(KeyboardInterrupt):
            Interrupted()(torch.randn(2, 4))
        _steps(_small(), 2)
    assert len(heard.of("iteration")) == 2


class _Counting(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


class _Subclass(torch.Tensor):
    counted = 0

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        cls.counted += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def test_who_counts_operations_does_not_count_ours() -> None:
    model = _small()
    x = torch.randn(8, 4)

    def count() -> tuple[int, int]:
        with _Counting() as mode:
            model(x).sum().backward()
        _Subclass.counted = 0
        model(x.as_subclass(_Subclass)).sum().backward()
        return mode.count, _Subclass.counted

    count()
    expected = count()
    with watched():
        assert count() == expected


def test_tensors_without_values() -> None:
    with watched():
        with torch.device("meta"):
            model = _small()
        model(torch.randn(2, 4, device="meta")).sum().backward()
        with torch._subclasses.FakeTensorMode():
            _small()(torch.randn(2, 4)).sum().backward()
        with torch.inference_mode():
            _small()(torch.randn(2, 4))


def _in_worker(_: int) -> list[int]:
    model = _small()
    model(torch.zeros(1, 4)).sum().backward()
    return [0]


def test_a_forked_process_tells_nothing() -> None:
    with watched() as heard:
        _steps(_small())
        count = len(heard)
        context = torch.multiprocessing.get_context("fork")
        process = context.Process(target=_in_worker, args=(0,))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert len(heard) == count


class _Secretive(nn.Linear):
    def parameters(self, recurse: bool = True) -> Any:
        raise ValueError("not for you")


def test_what_goes_wrong_is_told_and_passed_over() -> None:
    told: list[Heard] = []
    with pytest.raises(AssertionError), watched() as heard:  # noqa: PT012
        told.append(heard)
        _Secretive(4, 2)(torch.randn(2, 4))
        _steps(_small())
        assert len(heard.of("iteration")) == 3
        assert [one["where"] for one in heard.of("failed")] == ["enters"]
        for _ in range(safety.MOST_FAILURES):
            _Secretive(4, 2)(torch.randn(2, 4))
        assert heard.of("failed")[-1]["ended"]
    assert "not for you" in told[0].of("failed")[0]["error"]
