"""Lines of made programs: a comment says what was recorded at a line, and ``here`` which line is meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochzero.run.watch.history import Parameter, TrainingHistory, read_records
from epochzero.run.watch.lines.data import (
    classes_place,
    drawn_place,
    duplication_place,
    input_place,
    label_place,
    masking_place,
    order_place,
    preprocessing_place,
    size_place,
    split_place,
    target_place,
)
from epochzero.run.watch.lines.layers import (
    activation_place,
    decays_of_copies,
    frozen_place,
    initialization_place,
    output_place,
    precision_place,
)
from epochzero.run.watch.lines.loss import (
    loss_place,
    penalty_place,
)
from epochzero.run.watch.lines.settings import (
    clipping_place,
    place_of,
    schedule_place,
    setting_place,
    stepping_place,
    width_place,
)
from epochzero.run.watch.lines.training import (
    batch_size_place,
    epochs_place,
    evaluation_place,
    loop_place,
    step_place,
)
from epochzero.run.watch.model import SourceLine

Find = Callable[[TrainingHistory], SourceLine | None]
_IMPORTS = "import torch, numpy as np, torch.nn.functional as F; from torch import nn, optim\n"
_RECORDED = re.compile(r"# (.*)$")


def _history(path: Path, text: str) -> TrainingHistory:
    """What would have been recorded of the program: records of the lines that say so."""
    path.write_text(text)
    layers, records = [], []
    for number, line in enumerate(text.splitlines(), 1):
        found = _RECORDED.search(line)
        place = [str(path), number, line.strip()]
        for word in found.group(1).split() if found else ():
            kind, _, name = word.partition(":")
            if kind == "layer":
                layer, _, of_kind = name.partition(":")
                layers.append({"path": layer, "class": of_kind, "place": place, "leaf": True,
                               "called": True, "settings": {}, "parameters": ["weight", "bias"]})  # fmt: skip
            elif kind == "evaluation":
                records.append({"kind": kind, "iteration": 1, "training": True, "place": place})
            elif kind in ("optimizer", "scheduler", "loss", "backward", "step", "clip", "loader"):
                records.append({"kind": kind, "place": place, "class": name, "sampler": name,
                                "line": f"{path}:{number}"})  # fmt: skip
    model = {"kind": "model", "number": 0, "layers": layers, "parameters": []}
    return read_records([model, *records])


def _optimizer(keyword: str, position: int | None = None) -> Find:
    return lambda history: setting_place(place_of(history.optimizers[0]), keyword, position)


def _parameter(name: str, *, trainable: bool = True) -> Parameter:
    return Parameter(name, name.rpartition(".")[0], (4, 4), trainable, True, {})


def _width(history: TrainingHistory) -> SourceLine | None:
    return setting_place(history.layers[0].place, "out_features", 1, "Linear")


def _initial(name: str) -> Find:
    return lambda history: initialization_place(history, _parameter(name))


def _frozen(name: str, *, trainable: bool) -> Find:
    return lambda history: frozen_place(history, _parameter(name, trainable=trainable))


def _functional(path: str) -> Find:
    return lambda history: activation_place(history.layer(path), path)


SETTINGS: dict[str, tuple[Find, str]] = {
    "literal": (
        _optimizer("lr", 1),
        """
        optimizer = torch.optim.SGD(
            model.parameters(), # optimizer
            lr=3.0, # here
        )
        """,
    ),
    "constant": (
        _optimizer("lr", 1),
        """
        RATE = 3.0 # here
        optimizer = torch.optim.SGD(model.parameters(), RATE) # optimizer
        """,
    ),
    "option": (
        _optimizer("weight_decay"),
        """
        def parse():
            parser = argparse.ArgumentParser()
            parser.add_argument("--lr", type=float, default=0.1)
            parser.add_argument("--weight-decay", type=float, default=2.0) # here
            return parser.parse_args()
        def main(args):
            optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, weight_decay=args.weight_decay) # optimizer
        main(parse())
        """,
    ),
    "dictionary": (
        _optimizer("lr"),
        """
        config = {
            "epochs": 3,
            "lr": 3.0, # here
        }
        optimizer = SGD(model.parameters(), lr=config["lr"]) # optimizer
        """,
    ),
    "dictionary_get": (
        _optimizer("lr"),
        """
        config = {
            "lr": 3.0, # here
        }
        optimizer = SGD(model.parameters(), lr=float(config.get("lr", 0.1))) # optimizer
        """,
    ),
    "unpacked": (
        _optimizer("lr"),
        """
        options = dict(
            lr=3.0, # here
            momentum=0.9)
        optimizer = SGD(model.parameters(), **options) # optimizer
        """,
    ),
    "group": (
        _optimizer("lr"),
        """
        optimizer = SGD([{"params": net.parameters(),
                          "lr": 3.0}]) # optimizer here
        """,
    ),
    "dataclass": (
        _optimizer("lr"),
        """
        @dataclass
        class Config:
            epochs: int = 3
            lr: float = 3.0 # here
        def build(model, config: Config):
            return SGD(model.parameters(), lr=config.lr) # optimizer
        build(Net(), Config())
        """,
    ),
    "dataclass_given": (
        _optimizer("lr"),
        """
        @dataclass
        class Config:
            lr: float = 0.1
        config = Config(
            lr=3.0) # here
        optimizer = SGD(model.parameters(), lr=config.lr) # optimizer
        """,
    ),
    "namespace": (
        _optimizer("lr"),
        """
        config = SimpleNamespace(epochs=3,
            lr=3.0) # here
        optimizer = SGD(model.parameters(), lr=config.lr) # optimizer
        """,
    ),
    "class_attribute": (
        _optimizer("lr"),
        """
        class Settings:
            lr = 3.0 # here
        optimizer = SGD(model.parameters(), lr=Settings.lr) # optimizer
        """,
    ),
    "own_attribute": (
        _optimizer("lr"),
        """
        class Other:
            def __init__(self, rate=0.5):
                self.rate = rate
        class Experiment:
            def __init__(self, model, rate=0.1):
                self.rate = rate
            def build(self):
                self.optimizer = SGD(self.model.parameters(), lr=self.rate) # optimizer
        Experiment(Net(),
            rate=3.0).build() # here
        """,
    ),
    "default_of_function": (
        _optimizer("lr"),
        """
        def train(model,
                  lr=3.0): # here
            optimizer = SGD(model.parameters(), lr=lr) # optimizer
        train(Net())
        """,
    ),
    "argument_of_function": (
        _optimizer("lr"),
        """
        def train(model, lr=0.1):
            optimizer = SGD(model.parameters(), lr=lr) # optimizer
        BIG = 3.0 # here
        train(Net(), BIG)
        """,
    ),
    "partial": (
        _optimizer("lr"),
        """
        make = partial(SGD, lr=3.0) # here
        optimizer = make(model.parameters()) # optimizer
        """,
    ),
    "unknown": (
        _optimizer("lr"),
        """
        optimizer = SGD(model.parameters(), lr=find_rate(model)) # optimizer here
        """,
    ),
    "not_given": (_optimizer("weight_decay"), "optimizer = SGD(model.parameters()) # optimizer here\n"),
    "width_by_helper": (
        _width,
        """
        WIDTH = 2 # here
        def block(width):
            return nn.Sequential(nn.Linear(width, width), nn.ReLU()) # layer:0:Linear
        net = nn.Sequential(block(WIDTH), nn.Linear(WIDTH, 3))
        """,
    ),
    "width_by_constructor": (
        _width,
        """
        class Net(nn.Module):
            def __init__(self, hidden=64):
                super().__init__()
                self.fc = nn.Linear(8, hidden) # layer:fc:Linear
        net = Net(
            hidden=2) # here
        """,
    ),
    "schedule": (
        schedule_place,
        """
        DECAY = 0.01 # here
        scheduler = StepLR(optimizer, step_size=1, gamma=DECAY) # scheduler:StepLR
        """,
    ),
    "clipping": (
        clipping_place,
        """
        def train(model, clip=1e-6): # here
            for x, y in loader:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip) # clip
        train(model)
        """,
    ),
    "batch_of_loader": (
        batch_size_place,
        """
        BATCH = 1 # here
        loader = DataLoader(data, BATCH, shuffle=True) # loader:RandomSampler
        """,
    ),
    "batch_of_loop": (
        batch_size_place,
        """
        batch = 1 # here
        for epoch in range(3):
            for start in range(0, len(x), batch):
                loss.backward() # backward
        """,
    ),
    "batch_of_split": (
        batch_size_place,
        """
        for epoch in range(3):
            for rows in torch.randperm(len(x)).split(1): # here
                loss.backward() # backward
        """,
    ),
}  # fmt: skip

LAYERS: dict[str, tuple[Find, str]] = {
    "weight_in_constructor": (
        _initial("fc2.weight"),
        """
        class Net(nn.Module):
            def __init__(self):
                self.fc1 = nn.Linear(4, 4) # layer:fc1:Linear
                self.fc2 = nn.Linear(4, 4) # layer:fc2:Linear
                nn.init.normal_(self.fc1.weight, std=0.02)
                nn.init.normal_(self.fc2.weight, std=5.0) # here
                nn.init.zeros_(self.fc2.bias)
        """,
    ),
    "weight_by_apply": (
        _initial("1.weight"),
        """
        def init(m):
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)
            elif isinstance(m, nn.Linear):
                nn.init.zeros_(m.weight) # here
                m.bias.data.fill_(0.1)
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Linear(4, 4)) # layer:0:Conv2d layer:1:Linear
        model.apply(init)
        """,
    ),
    "bias_by_data": (
        _initial("hidden.bias"),
        """
        hidden = nn.Linear(4, 4) # layer:hidden:Linear
        output = nn.Linear(4, 4) # layer:output:Linear
        hidden.bias.data = torch.full((4,), -20.0) # here
        output.bias.data.zero_()
        """,
    ),
    "bias_by_item": (
        _initial("0.bias"),
        """
        model = nn.Sequential(
            nn.Linear(4, 4), # layer:0:Linear
            nn.Linear(4, 4), # layer:1:Linear
        )
        with torch.no_grad():
            model[1].bias.zero_()
            model[0].bias[:] = -20.0 # here
        """,
    ),
    "all_parameters": (
        _initial("fc.weight"),
        """
        model.fc = nn.Linear(4, 4) # layer:fc:Linear
        for name, value in model.named_parameters():
            if "bias" in name:
                nn.init.zeros_(value)
            else:
                nn.init.constant_(value, 0.5) # here
        """,
    ),
    "named_number": (
        _initial("fc.weight"),
        """
        SPREAD = 5.0 # here
        class Net(nn.Module):
            def __init__(self):
                self.fc = nn.Linear(4, 4) # layer:fc:Linear
                nn.init.normal_(self.fc.weight, 0.0, SPREAD)
        """,
    ),
    "scaled_in_place": (
        _initial("fc.weight"),
        """
        class Net(nn.Module):
            def __init__(self):
                self.fc = nn.Linear(4, 4) # layer:fc:Linear
                self.fc.weight.data *= 50 # here
        """,
    ),
    "left_alone": (_initial("fc.weight"), "fc = nn.Linear(4, 4) # layer:fc:Linear here\nnn.init.zeros_(fc.bias)\n"),
    "functional": (
        _functional("out:softmax"),
        """
        class Net(nn.Module):
            def __init__(self):
                self.out = nn.Linear(4, 4) # layer:out:Linear
            def attend(self, x):
                return torch.softmax(x, 1)
            def forward(self, x):
                return F.softmax(self.out(self.attend(x)), dim=1) # here
        """,
    ),
    "method": (
        _functional("out:sigmoid"),
        """
        class Net(nn.Module):
            def __init__(self):
                self.out = nn.Linear(4, 4) # layer:out:Linear
            def forward(self, x):
                x = self.out(x)
                return x.sigmoid() # here
        def other(x):
            return torch.sigmoid(x)
        """,
    ),
    "before_the_loss": (
        lambda history: output_place(history, ""),
        """
        for x, y in loader:
            logits = model(x)
            probabilities = torch.softmax(logits, dim=1) # here
            loss = criterion(probabilities, y) # loss
            loss.backward() # backward
        """,
    ),
    "detached": (
        _frozen("body.weight", trainable=True),
        """
        class Net(nn.Module):
            def __init__(self):
                self.body = nn.Linear(4, 4) # layer:body:Linear
            def forward(self, x):
                features = self.body(x).detach() # here
                return self.head(features)
        def evaluate():
            with torch.no_grad():
                return model(x).detach().cpu()
        """,
    ),
    "asks_for_none": (
        _frozen("body.weight", trainable=False),
        """
        model.body = nn.Linear(4, 4) # layer:body:Linear
        for parameter in model.body.parameters():
            parameter.requires_grad = False # here
        """,
    ),
}  # fmt: skip

TRAINING: dict[str, tuple[Find, str]] = {
    "average": (
        lambda history: next((place for _, place in decays_of_copies(history)), None),
        """
        def follow(teacher, student, decay):
            for t, s in zip(teacher.parameters(), student.parameters()):
                t.mul_(decay).add_(s, alpha=1 - decay)
        loss = F.mse_loss(model(x), y) # loss
        follow(teacher, student, decay=0.9999) # here
        """,
    ),
    "interval": (
        lambda history: stepping_place(history, SourceLine("train.py", 1, "trainer.fit(model)")),
        """
        def configure_optimizers(self):
            schedule = StepLR(optimizer, 4) # scheduler
            return {
                "scheduler": schedule,
                "interval": "step", # here
            }
        """,
    ),
    "masking": (
        lambda history: masking_place(place_of(history.losses[0])),
        """
        def forward(self, ids, mask):
            scores = self.score(ids)
            scores = scores.masked_fill(mask, -1e9) # here
            return torch.softmax(scores, dim=1) # loss
        """,
    ),
    "loss_made": (
        lambda history: loss_place(history, "reduction"),
        """
        criterion = nn.CrossEntropyLoss(reduction="sum") # here
        loss = criterion(model(x), y) # loss
        """,
    ),
    "loss_of_trainer": (
        loss_place,
        """
        class Trainer:
            def __init__(self, model, criterion):
                self.criterion = criterion
            def step(self, x, y):
                loss = self.criterion(self.model(x), y) # loss
        Trainer(Net(), nn.MSELoss()) # here
        """,
    ),
    "weights_of_classes": (
        lambda history: loss_place(history, "weight", "pos_weight"),
        """
        weights = torch.tensor([1.0, 0.0]) # here
        criterion = nn.CrossEntropyLoss(weight=weights.to(device))
        for x, y in loader:
            loss = criterion(model(x), y) # loss
        """,
    ),
    "loss_function": (loss_place, "loss = F.mse_loss(model(x), y) # loss here\n"),
    "loss_by_hand": (
        loss_place,
        """
        error = model(x) - y
        loss = -(error ** 2).mean() # here
        loss.backward() # backward
        """,
    ),
    "loss_class": (
        loss_place,
        """
        class Contrast(nn.Module):
            def forward(self, a, b):
                return (a - b).mean() # here
        contrast = Contrast()
        scaler = torch.amp.GradScaler("cpu")
        loss = contrast(model(x), y)
        scaler.scale(loss).backward() # backward
        """,
    ),
    "epochs": (
        epochs_place,
        """
        def train_epoch(model, loader):
            for x, y in loader:
                loss.backward() # backward
        EPOCHS = 300 # here
        for seed in range(3):
            for epoch in tqdm(range(1, EPOCHS + 1)):
                train_epoch(model, loader)
        """,
    ),
    "epochs_of_trainer": (
        epochs_place,
        """
        trainer = Trainer(
            max_epochs=300, # here
        )
        trainer.fit(model, loader) # backward
        """,
    ),
    "evaluation": (
        lambda history: evaluation_place(history.evaluations[0].place),
        """
        def evaluate(model):
            with torch.no_grad(): # here
                for x, y in loader:
                    right = model(x).argmax(1) == y # evaluation
        """,
    ),
    "loop": (
        loop_place,
        """
        for epoch in range(3):
            for x, y in loader: # here
                loss.backward() # backward
        """,
    ),
    "step": (step_place, "optimizer = SGD(p) # optimizer\noptimizer.step() # step here\n"),
    "penalty": (
        penalty_place,
        """
        loss = criterion(model(x), y) # loss
        for p in model.parameters(): pass
        size = sum(p.abs().sum() for p in model.parameters()) # here
        (loss + size).backward() # backward
        """,
    ),
    "penalty of a loop": (
        penalty_place,
        """
        for p in model.parameters(): p.data.clamp_(-p.abs().max(), 1)
        size = 0
        for p in model.parameters(): # here
            size = size + (p ** 2).sum()
        (criterion(model(x), y) + size).backward() # backward
        """,
    ),
    "precision": (
        precision_place,
        """
        # never .half() here
        with torch.autocast("cpu", dtype=torch.float16): # here
            loss = F.mse_loss(model(x), y) # loss
        """.replace("here\n        with", "\n        with"),
    ),
}  # fmt: skip

DATA: dict[str, tuple[Find, str]] = {
    "collated": (
        target_place,
        """
        def collate(batch):
            ids = torch.tensor(batch)
            labels = torch.cat([ids[:, 1:], ids[:, :1]], dim=1) # here
            return {"input_ids": ids, "labels": labels}
        loader = DataLoader(data, collate_fn=collate) # loader
        for batch in loader:
            loss = model(**batch).loss # loss
            loss.backward() # backward
        """,
    ),
    "scaled_before_the_loader": (
        input_place,
        """
        images = torch.rand(100, 8)
        images = images * 255 # here
        loader = DataLoader(TensorDataset(images, labels), batch_size=8) # loader:RandomSampler
        for epoch in range(3):
            for i, (x, y) in enumerate(tqdm(loader)):
                x, y = x.to(device), y.to(device)
                loss = criterion(model(x), y) # loss
                loss.backward() # backward
        """,
    ),
    "scaled_in_place": (
        input_place,
        """
        x = torch.rand(100, 8)
        x[:, 0] *= 1000 # here
        def train(model, inputs, targets):
            prediction = model(inputs)
            loss = F.mse_loss(prediction, targets) # loss
            loss.backward() # backward
        train(model, x, y)
        """,
    ),
    "scaled_in_data_set": (
        input_place,
        """
        class Images(Dataset):
            def __init__(self, images, labels):
                self.images = images
                self.labels = labels
            def __getitem__(self, index):
                image = self.images[index]
                image = image * 255.0 # here
                return image, self.labels[index]
        loader = DataLoader(Images(data, labels)) # loader:RandomSampler
        for x, y in loader:
            loss = F.cross_entropy(model(x), y) # loss
            loss.backward() # backward
        """,
    ),
    "not_scaled": (
        input_place,
        """
        frame = load_wine()
        x = torch.tensor(frame.data, dtype=torch.float32) # here
        loss = F.cross_entropy(model(x[rows]), y[rows]) # loss
        loss.backward() # backward
        """,
    ),
    "not_a_number": (
        input_place,
        """
        raw = series(100)
        raw[::7] = float("nan") # here
        x = (raw - raw.mean()) / raw.std()
        output = model(x)
        loss = F.mse_loss(output, y) # loss
        loss.backward() # backward
        """,
    ),
    "in_a_module": (
        input_place,
        """
        x = x / 255 / 255 # here
        train_loader = DataLoader(TensorDataset(x, y)) # loader:RandomSampler
        class Model(LightningModule):
            def training_step(self, batch, index):
                x, y = batch
                return F.cross_entropy(self(x), y) # loss
        Trainer(max_epochs=3).fit(Model(), train_loader) # backward
        """,
    ),
    "labels_scaled": (
        label_place,
        """
        y = y * 1000 # here
        train_x, val_x, train_y, val_y = train_test_split(x, y)
        loader = DataLoader(TensorDataset(train_x, train_y)) # loader:RandomSampler
        for batch in loader:
            x, y = batch
            loss = criterion(model(x), y) # loss
            loss.backward() # backward
        """,
    ),
    "labels_shuffled": (
        lambda history: label_place(history, order=True),
        """
        x, y = load()
        y = y[torch.randperm(len(y))] # here
        for rows in torch.randperm(len(x)).split(10):
            loss = criterion(model(x[rows]), y[rows]) # loss
            loss.backward() # backward
        """,
    ),
    "few": (
        size_place,
        """
        COUNT = 12 # here
        def points(count):
            x = torch.rand(count, 2)
            return x, x.sum(1)
        x, y = points(COUNT)
        loss = F.mse_loss(model(x), y) # loss
        loss.backward() # backward
        """,
    ),
    "repeated": (
        duplication_place,
        """
        index = torch.arange(10).repeat(100) # here
        data = x[index]
        loss = F.mse_loss(model(data), y) # loss
        loss.backward() # backward
        """,
    ),
    "loader_in_order": (
        order_place,
        "loader = DataLoader(data, shuffle=False, # loader:SequentialSampler here\n batch_size=4)\n",
    ),
    "rows_in_order": (
        order_place,
        """
        order = np.argsort(labels) # here
        for start in range(0, 100, 10):
            rows = order[start : start + 10]
            loss = F.cross_entropy(model(x[rows]), y[rows]) # loss
            loss.backward() # backward
        """,
    ),
    "leaked": (
        split_place,
        """
        train, val = data[:80], data[:20] # here
        def evaluate(model, rows):
            return model(rows[:, :4]) # evaluation
        evaluate(model, val)
        """.replace("rows[:, :4]", "rows"),
    ),
    "augmented": (
        drawn_place,
        """
        trivial = transforms.Compose([RandomErasing(1.0)]) # here
        data = ImageFolder(folder, transform=trivial)
        loader = DataLoader(data) # loader:RandomSampler
        """,
    ),
    "only_the_training_scaled": (
        preprocessing_place,
        """
        x, val_x = data[:80], data[80:]
        x = (x - x.mean(0)) / x.std(0) # here
        loss = F.mse_loss(model(x), y) # loss
        loss.backward() # backward
        model(val_x) # evaluation
        """,
    ),
    "rare_class": (
        classes_place,
        """
        kept = torch.cat([zeros[:5], ones]) # here
        x, y = x[kept], y[kept]
        loss = F.cross_entropy(model(x), y) # loss
        loss.backward() # backward
        """,
    ),
}  # fmt: skip

STYLES: dict[str, tuple[Find, str]] = {
    "settings_of_vars": (
        _optimizer("lr"),
        """
        parser = ArgumentParser()
        parser.add_argument("--learning-rate", dest="lr", type=float,
                            default=3.0) # here
        config = vars(parser.parse_args())
        optimizer = SGD(model.parameters(), lr=config["lr"]) # optimizer
        """,
    ),
    "settings_unpacked": (
        _optimizer("lr"),
        """
        CONFIG = {
            "model": {"width": 4},
            "optimizer": {"lr": 3.0, "momentum": 0.9}, # here
        }
        optimizer = SGD(model.parameters(), **CONFIG["optimizer"]) # optimizer
        """,
    ),
    "option_of_another_file": (
        _optimizer("lr"),
        """
        wandb.init(config={"lr": args.lr, "width": args.wide, "wide": args.width})
        optimizer = SGD(model.parameters(), lr=args.lr, momentum=args.width) # optimizer here
        """,
    ),
    "circle": (
        _optimizer("momentum"),
        """
        wandb.init(config={"width": args.wide, "wide": args.width}) # here
        optimizer = SGD(model.parameters(), momentum=args.width) # optimizer
        """,
    ),
    "click": (
        _optimizer("lr"),
        """
        @click.command()
        @click.option("--lr", default=3.0) # here
        def main(lr):
            optimizer = SGD(model.parameters(), lr=lr) # optimizer
        main()
        """,
    ),
    "fit_function": (
        epochs_place,
        """
        def fit(model, loader, epochs):
            for epoch in range(epochs):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y) # loss
                    loss.backward() # backward
        if __name__ == "__main__":
            fit(Net(), loader,
                epochs=300) # here
        """,
    ),
    "fit_of_class": (
        epochs_place,
        """
        class Trainer:
            def __init__(self, model, epochs=2): # here
                self.epochs = epochs
            def run_epoch(self, loader):
                for x, y in loader:
                    F.mse_loss(self.model(x), y).backward() # loss backward
            def fit(self, loader):
                for _ in range(self.epochs):
                    self.run_epoch(loader)
        Trainer(Net()).fit(loader)
        """,
    ),
    "steps": (
        epochs_place,
        """
        STEPS = 5 # here
        step = 0
        while step < STEPS:
            loss.backward() # backward
            step += 1
        """,
    ),
    "input_of_function": (
        input_place,
        """
        def get_loaders(batch_size):
            x, y = make_moons(1000)
            x = torch.tensor(x) * 500 # here
            train = TensorDataset(x[:800], y[:800])
            return DataLoader(train, batch_size), DataLoader(train) # loader:RandomSampler
        train_loader, val_loader = get_loaders(32)
        for batch in train_loader:
            inputs, labels = batch[0].to(device), batch[1].to(device)
            outputs = model(inputs)
            loss = criterion(outputs, labels) # loss
            loss.backward() # backward
        """,
    ),
    "input_of_trainer_class": (
        input_place,
        """
        class Trainer:
            def __init__(self, model, loader):
                self.model = model
                self.loader = loader
            def epoch(self):
                for x, y in self.loader:
                    out = self.model(x)
                    loss = F.cross_entropy(out, y) # loss
                    loss.backward() # backward
        x = features.astype("float32")
        x /= 1e6 # here
        Trainer(Net(), DataLoader(TensorDataset(torch.from_numpy(x), y))).epoch() # loader:RandomSampler
        """,
    ),
    "input_of_generator": (
        input_place,
        """
        def batches(x, y, size):
            for start in range(0, len(x), size):
                yield x[start : start + size], y[start : start + size]
        x = x * 300 # here
        for xb, yb in batches(x, y, 32):
            loss = F.cross_entropy(net(xb), yb) # loss
            loss.backward() # backward
        """,
    ),
    "last_return": (
        input_place,
        """
        def prepare(x, fast=False):
            if fast:
                return x.float()
            return x * 1000 # here
        loss = F.cross_entropy(net(prepare(x)), y) # loss
        loss.backward() # backward
        """,
    ),
    "set_twice": (
        _initial("fc.weight"),
        """
        fc = nn.Linear(4, 4) # layer:fc:Linear
        if True:
            nn.init.xavier_uniform_(fc.weight)
        nn.init.zeros_(fc.weight) # here
        """,
    ),
    "input_of_scaler": (
        input_place,
        """
        from sklearn.preprocessing import MinMaxScaler
        scaler = MinMaxScaler((0, 1000))
        x = scaler.fit_transform(x) # here
        x = torch.tensor(x)
        loss = F.cross_entropy(net(x), y) # loss
        loss.backward() # backward
        """,
    ),
    "labels_of_data_set": (
        label_place,
        """
        class Rows(torch.utils.data.Dataset):
            def __init__(self, table):
                self.x = table[:, :-1]
                self.y = table[:, -1] + 1 # here
            def __getitem__(self, index):
                return self.x[index], self.y[index]
        loader = DataLoader(Rows(table), shuffle=True) # loader:RandomSampler
        for x, y in loader:
            loss = F.cross_entropy(net(x), y) # loss
            loss.backward() # backward
        """,
    ),
    "labels_shuffled_in_place": (
        lambda history: label_place(history, order=True),
        """
        x, y = load()
        np.random.shuffle(y) # here
        x, y = torch.tensor(x), torch.tensor(y)
        loss = F.cross_entropy(net(x), y) # loss
        loss.backward() # backward
        """,
    ),
    "leaked_by_loader": (
        split_place,
        """
        train_set = Subset(data, range(800))
        val_set = Subset(data, range(700, 1000)) # here
        val_loader = DataLoader(val_set) # loader:RandomSampler
        for x, y in val_loader:
            right = model(x).argmax(1) == y # evaluation
        """,
    ),
    "few_of_split": (
        size_place,
        """
        x, y = load_digits(return_X_y=True)
        x_train, y_train = x[:12], y[:12] # here
        loss = F.cross_entropy(net(torch.tensor(x_train)), y_train) # loss
        loss.backward() # backward
        """,
    ),
    "frozen_module": (
        _frozen("encoder.weight", trainable=False),
        """
        model.encoder = nn.Linear(4, 4) # layer:encoder:Linear
        model.encoder.requires_grad_(False) # here
        """,
    ),
    "frozen_by_no_grad": (
        _frozen("encoder.weight", trainable=True),
        """
        class Net(nn.Module):
            def __init__(self):
                self.encoder = nn.Linear(4, 4) # layer:encoder:Linear
            def forward(self, x):
                with torch.no_grad(): # here
                    x = self.encoder(x)
                return self.head(x)
        """,
    ),
    "initialized_by_method": (
        _initial("layers.0.weight"),
        """
        class Net(nn.Module):
            def __init__(self):
                self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)]) # layer:layers.0:Linear
                self.reset()
            def reset(self):
                for layer in self.layers:
                    layer.weight.data.uniform_(-9, 9) # here
                    layer.bias.data.zero_()
        """,
    ),
    "precision_of_model": (
        precision_place,
        "model = Net().to(torch.float16) # here\noptimizer = SGD(model.parameters()) # optimizer\n",
    ),
    "evaluation_decorated": (
        lambda history: evaluation_place(history.evaluations[0].place),
        """
        @torch.no_grad()
        def evaluate(model):
            return model(x).argmax(1) # evaluation here
        """,
    ),
    "weight_of_sample": (
        lambda history: loss_place(history, "weight", "pos_weight"),
        """
        class Net(nn.Module):
            def __init__(self):
                self.criterion = nn.BCEWithLogitsLoss(
                    pos_weight=torch.tensor(0.0)) # here
            def training_step(self, batch):
                return self.criterion(self(batch[0]), batch[1]) # loss
        """,
    ),
}  # fmt: skip

CASES = {**SETTINGS, **LAYERS, **TRAINING, **STYLES}
CASES |= {f"data_{name}": case for name, case in DATA.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_line_that_made_it(name: str, tmp_path: Path) -> None:
    find, text = CASES[name]
    text = _IMPORTS + dedent(text).lstrip()
    history = _history(tmp_path / "train.py", text)
    found = find(history)
    meant = [n for n, line in enumerate(text.splitlines(), 1) if line.endswith("here")]
    assert found is not None
    assert [found.line] == meant, found.text


ALL: tuple[Find, ...] = (
    *(find for find, _ in CASES.values()),
    lambda history: width_place(history.layers[0]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=3),
    st.lists(st.integers(1, 60), min_size=8, max_size=8),
)
def test_any_program_has_a_line_or_none(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], numbers: list[int]
) -> None:
    path = tmp_path_factory.mktemp("any") / "train.py"
    text = _IMPORTS + "".join(dedent(CASES[name][1]) for name in names)
    _history(path, text)
    kinds = ("optimizer", "scheduler", "loss", "backward", "step", "clip", "loader", "evaluation")
    records = [
        {"kind": kind, "place": [str(path), number, ""], "class": "X", "sampler": "X", "line": "",
         "iteration": 1, "training": True}
        for kind, number in zip(kinds, numbers, strict=True)
    ]  # fmt: skip
    layer = {"path": "fc", "class": "Linear", "place": [str(path), numbers[0], ""], "leaf": True,
             "called": True, "settings": {"out_features": 2}, "parameters": ["weight"]}  # fmt: skip
    layers = [
        {**layer, "path": path}
        for path in ("fc", "fc2", "0", "1", "hidden", "out", "body", "encoder", "layers.0")
    ]
    history = read_records(
        [{"kind": "model", "number": 0, "layers": layers, "parameters": []}, *records]
    )
    for find in ALL:
        place = find(history)
        assert place is None or 1 <= place.line <= max(60, len(text.splitlines()))


@pytest.mark.parametrize("content", [None, b"", b"def (:\n", b"\xff\xfe", b"x = 1\n"])
def test_a_file_that_tells_nothing_leaves_what_was_recorded(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "gone.py"
    if content is not None:
        path.write_bytes(content)
    recorded = [str(path), 7, "optimizer = SGD(model.parameters(), lr=rate)"]
    history = read_records([{"kind": kind, "place": recorded, "class": "SGD", "sampler": "X"}
                            for kind in ("optimizer", "loader", "loss", "backward", "step")])  # fmt: skip
    place = SourceLine(*recorded)
    assert _optimizer("lr", 1)(history) == place
    assert loss_place(history) == epochs_place(history) == place
    assert order_place(history) in (None, place)
