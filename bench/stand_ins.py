"""What public training programs load from the network or need a GPU for, replaced by small offline stand-ins.

Images are the digits of scikit-learn, enlarged, colored and tinted by class, so that they can be learned; graphs have
communities; files that a program downloads are missing. Logging services do nothing. Everything else is the program's own.
"""

from __future__ import annotations

import functools
import importlib.machinery
import re
import socket
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

TRAIN, TEST = 1200, 300
_SILENT = (
    "wandb", "visdom", "tensorboardX", "tensorboard_logger", "seaborn", "ipdb", "git", "comet_ml", "mlflow",
    "imageio", "moviepy", "torchsummary", "torchinfo", "pretty_errors", "torchviz", "pytorch_model_summary",
    "matplotlib",
)  # fmt: skip

_GAMES_OF_TODAY = re.compile(r"truncated|reset\(.*\)\[0\]|, *(?:_|info) = [\w.]*env\.reset\(")


def install(program: str, folder: Path) -> None:
    """Replaces what a program with this text in a folder would miss here."""
    _stay_offline()
    _without_gpu()
    loader = torch.utils.data.DataLoader
    _replace(loader, "__init__", _in_this_process(loader.__init__))
    sys.meta_path.append(_Silent())
    if "torchvision" in program:
        _replace_images()
    if "keras" in program:
        _replace_keras()
    if "torch_geometric" in program:
        _replace_graphs()
    if "tensorflow" in program:
        _replace_input_data()
    if "gym" in program:
        sys.modules.setdefault("gym", _games(folder))


@functools.cache
def digits(side: int, colored: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """1,500 images of 0 to 255 with their classes, the first `TRAIN` for training."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    order = np.random.default_rng(7).permutation(len(images))[: TRAIN + TEST]
    small = torch.tensor(images[order], dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    large = torch.nn.functional.interpolate(small, (side, side), mode="bilinear")[:, 0].numpy()
    labels = classes[order].astype(np.int64)
    if not colored:
        return (large * 255).astype(np.uint8), labels
    tints = np.random.default_rng(3).uniform(0.2, 1.0, (10, 2, 3))[labels]
    noise = np.random.default_rng(5).normal(0, 0.05, (*large.shape, 3))
    shown = (
        large[..., None] * tints[:, None, None, 0]
        + (1 - large[..., None]) * tints[:, None, None, 1] * 0.5
    )
    return (np.clip(shown + noise, 0, 1) * 255).astype(np.uint8), labels


def _replace(owner: object, name: str, stand_in: object) -> None:
    """Sets an attribute of another library, which its types forbid."""
    setattr(owner, name, stand_in)


def _part(train: bool) -> slice:
    return slice(0, TRAIN) if train else slice(TRAIN, TRAIN + TEST)


def _stay_offline() -> None:
    def refuse(*_: object) -> None:
        raise OSError("no network")

    _replace(socket.socket, "connect", refuse)
    _replace(socket, "getaddrinfo", refuse)


def _without_gpu() -> None:
    for kind in (torch.Tensor, torch.nn.Module):
        _replace(kind, "cuda", lambda self, *_, **__: self)
    _replace(torch.cuda, "synchronize", lambda *_: None)


def _in_this_process(init: Callable[..., None]) -> Callable[..., None]:
    """Workers would spend the processor time of other processes."""

    @functools.wraps(init)
    def made(self: Any, *arguments: Any, **options: Any) -> None:
        for name in (
            "num_workers",
            "persistent_workers",
            "prefetch_factor",
            "multiprocessing_context",
        ):
            options.pop(name, None)
        init(self, *arguments[:5], **options)

    return made


class _Nothing(ModuleType):
    """A module, class, function and value that does nothing."""

    __path__ = ()
    __file__ = "stand_in"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: object, **__: object) -> _Nothing:
        return self

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _Silent(MetaPathFinder, Loader):
    """Imports `_Nothing` for services that are not installed."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] not in _SILENT:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Nothing(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _games(folder: Path) -> ModuleType:
    """Gymnasium; for programs that expect no more than a state and four results, as of Gym until 2022, a layer above it."""
    import gymnasium

    texts = [path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("*.py")]
    if any(map(_GAMES_OF_TODAY.search, texts)):
        return gymnasium

    # Gymnasium has no types where the project's are checked.
    class Game(gymnasium.Wrapper):  # type: ignore[misc]
        def reset(self, **options: Any) -> Any:
            return self.env.reset(**options)[0]

        def step(self, action: Any) -> Any:
            state, reward, ended, cut, more = self.env.step(action)
            return state, reward, ended or cut, more

        def seed(self, seed: int) -> None:
            self.env.reset(seed=seed)

    games: Any = ModuleType("gym")
    games.spaces, games.Wrapper, games.Env = gymnasium.spaces, gymnasium.Wrapper, gymnasium.Env
    games.make = lambda name, **options: Game(
        gymnasium.make(name.replace("Pendulum-v0", "Pendulum-v1"), **options)
    )
    return games


def import_torchvision() -> None:
    """Its operators in C++ may belong to another build of torch; no training here needs them."""
    sys.modules["torchvision._meta_registrations"] = ModuleType("torchvision._meta_registrations")
    __import__("torchvision")


def _replace_images() -> None:
    import_torchvision()
    from torchvision import datasets, models

    def stand_in(fill: Callable[[Any, bool], None]) -> Callable[..., None]:
        """A constructor of a data set that `fill` fills, for training or for the test."""

        def init(
            self: Any,
            root: Any,
            train: bool = True,
            transform: Any = None,
            target_transform: Any = None,
            **options: Any,
        ) -> None:
            datasets.VisionDataset.__init__(
                self, root, transform=transform, target_transform=target_transform
            )
            # Some sets take `split` instead, a name.
            fill(self, train not in (False, "test") and options.get("split") != "test")

        return init

    def grey(self: Any, train: bool) -> None:
        images, labels = (torch.tensor(part[_part(train)]) for part in digits(28))
        self.train, self.data, self.targets = train, images, labels

    def colored(self: Any, train: bool) -> None:
        images, labels = (part[_part(train)] for part in digits(32, colored=True))
        self.train, self.data, self.targets = train, images, labels.tolist()
        count = 100 if isinstance(self, datasets.CIFAR100) else 10
        self.classes = [str(number) for number in range(count)]
        self.class_to_idx = {name: int(name) for name in self.classes}

    def split(self: Any, train: bool) -> None:
        images, self.labels = (part[_part(train)] for part in digits(32, colored=True))
        self.data = images.transpose(0, 3, 1, 2)

    for kind, fill in (
        (datasets.MNIST, grey),
        (datasets.CIFAR10, colored),
        (datasets.SVHN, split),
        (datasets.STL10, split),
    ):
        _replace(kind, "__init__", stand_in(fill))
    _replace(datasets.ImageFolder, "__init__", _with_images(datasets.ImageFolder.__init__))
    _without_weights(models)


def _with_images(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def made(self: Any, root: Any, *arguments: Any, **options: Any) -> None:
        write_images(Path(root))
        init(self, root, *arguments, **options)

    return made


def write_images(root: Path) -> None:
    """A directory of images for each of two classes, unless the directory exists."""
    from PIL import Image

    if root.exists():
        return
    images, labels = digits(64, colored=True)
    for number in np.flatnonzero(labels < 2)[:200]:
        folder = root / f"class{labels[number]}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[number]).save(folder / f"{number}.png")


def _without_weights(models: Any) -> None:
    for name in dir(models):
        make = getattr(models, name)
        if callable(make) and name.islower() and not name.startswith(("get_", "list_", "_")):
            setattr(models, name, _random(make))


def _random(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def made(*arguments: Any, **options: Any) -> Any:
        options.pop("pretrained", None)
        options.pop("weights", None)
        return make(*(argument for argument in arguments if argument is not True), **options)

    return made


def _replace_keras() -> None:
    import keras

    def images(side: int, colored: bool = False) -> Callable[..., Any]:
        def load_data(*_: object, **__: object) -> Any:
            shown, labels = digits(side, colored)
            labels = labels[:, None] if colored else labels
            return tuple(
                (shown[_part(train)], labels[_part(train)].astype("uint8"))
                for train in (True, False)
            )

        return load_data

    def words(num_words: int | None = None, **_: object) -> Any:
        random = np.random.default_rng(11)
        labels = random.integers(0, 2, TRAIN + TEST)
        most = min(num_words or 5000, 5000)
        texts = np.empty(len(labels), dtype=object)
        for number, label in enumerate(labels):
            usual = random.integers(4, most, random.integers(20, 120))
            usual[random.random(len(usual)) < 0.2] = 10 + label
            texts[number] = [1, *usual.tolist()]
        return tuple((texts[_part(train)], labels[_part(train)]) for train in (True, False))

    for name, load in (
        ("mnist", images(28)), ("fashion_mnist", images(28)), ("cifar10", images(32, colored=True)), ("imdb", words)
    ):  # fmt: skip
        getattr(keras.datasets, name).load_data = load


def _replace_input_data() -> None:
    """The reader of MNIST that early TensorFlow had."""

    class Part:
        def __init__(self, train: bool, one_hot: bool) -> None:
            images, labels = digits(28)
            self.images = images[_part(train)].reshape(-1, 784).astype(np.float32) / 255
            self.labels = np.eye(10)[labels[_part(train)]] if one_hot else labels[_part(train)]
            self.num_examples = len(self.images)
            self._random = np.random.default_rng(13)

        def next_batch(self, count: int) -> tuple[np.ndarray, np.ndarray]:
            chosen = self._random.integers(0, self.num_examples, count)
            return self.images[chosen], self.labels[chosen]

    class Sets:
        def __init__(self, one_hot: bool) -> None:
            self.train, self.test = Part(True, one_hot), Part(False, one_hot)
            self.validation = self.test

    module: Any = ModuleType("tensorflow.examples.tutorials.mnist.input_data")
    module.read_data_sets = lambda *_, one_hot=False, **__: Sets(one_hot)
    for name in (
        "tensorflow",
        "tensorflow.examples",
        "tensorflow.examples.tutorials",
        "tensorflow.examples.tutorials.mnist",
    ):
        parent: Any = sys.modules.setdefault(name, ModuleType(name))
        parent.__path__ = []
    parent.input_data = sys.modules[module.__name__] = module


def _replace_graphs() -> None:
    import torch_geometric.datasets
    import torch_geometric.transforms
    from torch_geometric.data import Data, InMemoryDataset

    def community(seed: int, count: int, classes: int, width: int) -> Any:
        random = np.random.default_rng(seed)
        labels = random.integers(0, classes, count)
        same = labels[:, None] == labels[None]
        edges = np.triu(random.random((count, count)) < np.where(same, 8.0, 0.5) / count, 1)
        pairs = torch.tensor(np.argwhere(edges | edges.T).T, dtype=torch.long)
        likely = random.random((classes, width))[labels] * 0.1
        features = torch.tensor(random.random((count, width)) < likely, dtype=torch.float32)
        return Data(x=features, edge_index=pairs, y=torch.tensor(labels))

    class Citations(InMemoryDataset):  # type: ignore[misc]
        def __init__(
            self,
            root: Any = None,
            name: str = "",
            transform: Any = None,
            pre_transform: Any = None,
            **_: Any,
        ) -> None:
            super().__init__(None, transform)
            data = community(17, 1000, 7, 300)
            order = torch.randperm(1000, generator=torch.Generator().manual_seed(1))
            for part, first, last in (("train", 0, 140), ("val", 140, 440), ("test", 440, 1000)):
                mask = torch.zeros(1000, dtype=torch.bool)
                mask[order[first:last]] = True
                data[f"{part}_mask"] = mask
            data = pre_transform(data) if pre_transform else data
            self.data, self.slices = self.collate([data])

    class Molecules(InMemoryDataset):  # type: ignore[misc]
        def __init__(
            self,
            root: Any = None,
            name: str = "",
            transform: Any = None,
            pre_transform: Any = None,
            **_: Any,
        ) -> None:
            super().__init__(None, transform)
            graphs = []
            for number in range(200):
                data = community(number, 16 + number % 9, 2, 8)
                data.x[:, 0] = float(number % 2) * (torch.rand(len(data.x)) < 0.4)
                data.y = torch.tensor([number % 2])
                graphs.append(pre_transform(data) if pre_transform else data)
            self.data, self.slices = self.collate(graphs)

    torch_geometric.datasets.Planetoid = torch_geometric.datasets.CitationFull = Citations
    torch_geometric.datasets.TUDataset = Molecules
