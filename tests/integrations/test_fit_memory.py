"""Survives out-of-memory in real trainers, with the weights that come out with memory for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from epochzero.errors import InputError
from epochzero.integrations.memory import StepPlan


class Classifier(nn.Module):
    """Runs out of memory, where it is asked to, with more than three examples."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        self.most = 100

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        scores = self.layers(x)
        if len(x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return {"loss": functional.cross_entropy(scores, labels), "scores": scores}


def _rows() -> list[dict[str, Tensor]]:
    draw = torch.Generator().manual_seed(1)
    targets = [int(torch.randint(0, 3, (), generator=draw)) for _ in range(24)]
    return [
        {"x": torch.randn(4, generator=draw), "labels": torch.tensor(-100 if index % 5 == 0 else y)}
        for index, y in enumerate(targets)
    ]


def _same(one: nn.Module, other: nn.Module) -> None:
    for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@contextmanager
def _quiet() -> Iterator[None]:
    """Trainers warn of much that is nothing here."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _transformers(folder: Path, most: int, accumulate: int, *, fit: bool) -> tuple[Any, Any]:
    from transformers import Trainer, TrainingArguments

    from epochzero.integrations import TransformersFitMemory

    model = Classifier()
    model.most = most
    arguments = TrainingArguments(
        str(folder), num_train_epochs=2, per_device_train_batch_size=8, report_to=[], use_cpu=True,
        gradient_accumulation_steps=accumulate, disable_tqdm=True, save_strategy="no",
        remove_unused_columns=False,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=_rows())
    callback = None
    if fit:
        callback = TransformersFitMemory(trainer, remember=folder / "survive.json")
        trainer.add_callback(callback)
    trainer.train()
    assert "training_step" not in trainer.__dict__
    return model, callback


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_transformers_trainer_survives(tmp_path: Path, accumulate: int) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    with _quiet():
        expected, _ = _transformers(tmp_path / "whole", 100, accumulate, fit=False)
        found, callback = _transformers(tmp_path / "parts", 3, accumulate, fit=True)
    assert callback.step.plan == StepPlan(parts=4)
    _same(found, expected)


def test_a_transformers_trainer_with_its_own_step_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainingArguments

    from epochzero.integrations import TransformersFitMemory

    class Own(Trainer):
        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            return super().training_step(*args, **kwargs)

    with _quiet():
        trainer = Own(Classifier(), TrainingArguments(str(tmp_path), use_cpu=True, report_to=[]))
    with pytest.raises(InputError, match="Own overrides training_step"):
        TransformersFitMemory(trainer)


def _lightning(folder: Path, most: int, accumulate: int, *, fit: bool, **options: Any) -> Any:
    lightning = pytest.importorskip("lightning.pytorch")
    from epochzero.integrations import LightningFitMemory

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = Classifier()
            self.model.most = most
            self.automatic_optimization = options.get("automatic", True)

        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            loss: Tensor = self.model(**batch)["loss"]
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), 0.01)

    module = Module()
    callback = LightningFitMemory(remember=folder / "survive.json")
    trainer = lightning.Trainer(
        max_epochs=2, accumulate_grad_batches=accumulate, accelerator="cpu", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[callback] if fit else [], default_root_dir=folder,
    )  # fmt: skip
    trainer.fit(module, torch.utils.data.DataLoader(_rows(), batch_size=8))
    assert "backward" not in module.__dict__
    return module, callback


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_lightning_trainer_survives(tmp_path: Path, accumulate: int) -> None:
    with _quiet():
        expected, _ = _lightning(tmp_path, 100, accumulate, fit=False)
        found, callback = _lightning(tmp_path, 3, accumulate, fit=True)
    assert callback.step.plan == StepPlan(parts=4)
    _same(found, expected)


def test_a_lightning_module_that_optimizes_by_hand_is_refused(tmp_path: Path) -> None:
    with _quiet(), pytest.raises(InputError, match="uses manual optimization"):
        _lightning(tmp_path, 100, 1, fit=True, automatic=False)
