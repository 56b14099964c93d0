"""Programs as people write them: what must be known of them without running them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.check.program import library
from epochzero.check.program.events import LibraryCall
from epochzero.check.program.model import Program
from epochzero.check.program.values import (
    Anything,
    Constant,
    External,
    Instance,
    Items,
    Text,
    Value,
)
from epochzero.check.target.model import Distribution, Target
from epochzero.errors import InputError
from tests.waiting import bounded_work

Read = Callable[..., Program]


def calls(program: Program, name: str) -> list[LibraryCall]:
    return [call for call in program.calls if call.name == name]


def call(program: Program, name: str) -> LibraryCall:
    (found,) = calls(program, name)
    return found


def plain(value: Value) -> object:
    """A constant's value, the path of a path, or the value itself."""
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Instance) and value.made_by == "pathlib.Path":
        return plain(value.arguments[0])
    return value


def opened(program: Program) -> list[object]:
    """The first arguments of all calls of ``open``."""
    return [plain(one.arguments[0]) for one in calls(program, "builtins.open")]


def value_of(read: Read, expression: str, before: str = "", **others: object) -> object:
    """What an expression is known to be, as the argument of a call."""
    program = read(f"import lib\n{before}\nlib.show({expression})\n", **others)
    return plain(call(program, "lib.show").arguments[0])


# -- Values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        ("1 + 2 * 3", 7),
        ("'a' + 'b' * 2", "abb"),
        ("f'epoch_{3:03d}.pt'", "epoch_003.pt"),
        ("'%s-%d.pt' % ('x', 4)", "x-4.pt"),
        ("'%(a)s' % {'a': 'x'}", "x"),
        ("'{}/{b}'.format('a', b=2)", "a/2"),
        ("'-'.join(['a', 'b'])", "a-b"),
        ("'A,B'.lower().split(',')[1]", "b"),
        ("[i * 2 for i in range(3)][-1]", 4),
        ("{k: v for k, v in [('a', 1)]}['a']", 1),
        ("{'a': {'b': 5}}['a']['b']", 5),
        ("dict(a=1, **{'b': 2})['b']", 2),
        ("len([1, 2, 3])", 3),
        ("max(3, 7) - min([4, 2])", 5),
        ("'x' if 2 > 1 else 'y'", "x"),
        ("None or 'default'", "default"),
        ("'a' in ('a', 'b')", True),
        ("not []", True),
        ("(lambda a, b=2: a + b)(1)", 3),
        ("sum(x for x in (1, 2) if x > 1)", 2),
        ("10 ** 3 // 7", 142),
        ("1 / 0 if False else 2", 2),
    ],
)
def test_what_expressions_are_known_to_be(read: Read, expression: str, known: object) -> None:
    assert value_of(read, expression) == known


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        ("os.path.join('/data', 'a', 'b.txt')", "/data/a/b.txt"),
        ("os.path.join('/data', '/other')", "/other"),
        ("os.path.join('data/', 'x')", "data/x"),
        ("os.path.dirname('/a/b/c.txt')", "/a/b"),
        ("os.path.basename('/a/b/c.txt')", "c.txt"),
        ("os.path.splitext('c.tar')[0]", "c"),
        ("Path('/a') / 'b' / 'c.txt'", "/a/b/c.txt"),
        ("Path('/a/b.txt').parent", "/a"),
        ("Path('/a/b.txt').with_suffix('.json')", "/a/b.json"),
        ("Path('/a/b.txt').name", "b.txt"),
        ("Path('/a/b.txt').stem + '!'", "b!"),
        ("Path('/a').joinpath('b', 'c')", "/a/b/c"),
        ("str(Path('/a') / 'b')", "/a/b"),
        ("f\"{Path('/a') / 'b'}/c\"", "/a/b/c"),
        ("Path('/a', 'b').as_posix()", "/a/b"),
        ("'/a' + os.sep + 'b'", "/a/b"),
    ],
)
def test_paths(read: Read, expression: str, known: object) -> None:
    assert value_of(read, expression, "import os\nfrom pathlib import Path") == known


def test_the_folder_of_the_program_and_the_working_folder(read: Read, tmp_path: Path) -> None:
    before = "import os\nfrom pathlib import Path\nHERE = Path(__file__).resolve().parent"
    assert value_of(read, "HERE / 'x'", before) == f"{tmp_path}/x"
    assert value_of(read, "os.path.join(os.path.dirname(__file__), 'x')", before) == f"{tmp_path}/x"
    assert value_of(read, "os.getcwd()", before) == str(tmp_path)
    assert value_of(read, "os.path.abspath('x/../y')", before) == f"{tmp_path}/y"


def test_a_text_of_which_only_parts_are_known(read: Read) -> None:
    before = "import lib\nname = lib.name()"
    found = value_of(read, "f'/data/{name}.csv'", before)
    assert isinstance(found, Text)
    assert found.parts[0] == "/data/"
    assert found.parts[2] == ".csv"
    assert isinstance(found.parts[1], Instance)
    assert found.parts[1].made_by == "lib.name"


def test_variables_of_the_environment(read: Read) -> None:
    before = "import os\nos.environ['SET'] = 'here'\nos.environ.setdefault('JOB', 'other')"
    environment = {"JOB": "job", "OPEN": None}
    target = Target("t", environment={"TARGET": "target"})
    for expression, known in [
        ("os.environ['JOB']", "job"),
        ("os.environ['TARGET']", "target"),
        ("os.environ['SET']", "here"),
        ("os.getenv('MISSING', 'default')", "default"),
        ("os.environ.get('MISSING')", None),
        ("int(os.environ.get('MISSING', 4))", 4),
    ]:
        found = value_of(read, expression, before, environment=environment, target=target)
        assert found == known, expression
    assert isinstance(
        value_of(read, "os.environ['OPEN']", before, environment=environment), Anything
    )
    # Of a platform of which nothing is known, a variable may be set.
    assert isinstance(value_of(read, "os.getenv('MISSING', 'default')", before), Anything)


def test_a_lookup_of_a_variable_says_whether_it_is_set(read: Read) -> None:
    source = "import os\nos.environ['A']\nos.environ['B']"
    target = Target("t", environment={"A": "1"})
    looked = [one for one in read(source, target=target).lookups if one.item]
    assert [(one.name, one.found) for one in looked] == [("A", True), ("B", False)]
    assert all(one.found is None for one in read(source).lookups if one.item)


def test_a_key_that_a_dictionary_lacks(read: Read) -> None:
    program = read("config = {'lr': 0.1}\nconfig['lr']\nconfig['momentum']\n")
    assert [(one.name, one.found) for one in program.lookups] == [("lr", True), ("momentum", False)]


# -- Functions and classes ---------------------------------------------------------------------


def test_arguments_are_followed_through_calls(read: Read) -> None:
    program = read("""
        import os
        ROOT = "/data"

        def load(name, *parts, suffix=".txt", **others):
            return open(os.path.join(ROOT, *parts, name + suffix), **others)

        def main(split="train"):
            load(split, "a", "b")
            load("test", suffix=".json", mode="rb")
            load(*["one"], **{"suffix": ".x"})

        main()
        main("dev")
        """)
    assert opened(program) == [
        "/data/a/b/train.txt", "/data/test.json", "/data/one.x",
        "/data/a/b/dev.txt", "/data/test.json", "/data/one.x",
    ]  # fmt: skip
    first = calls(program, "builtins.open")[0]
    assert [place.line for place in first.at.via] == [13, 9]
    assert first.at.function == "load"
    assert first.at.certain


def test_objects_keep_their_attributes(read: Read) -> None:
    program = read("""
        class Base:
            root = "/base"
            def __init__(self, name):
                self.name = name
            @property
            def path(self):
                return f"{self.root}/{self.name}"
            @classmethod
            def make(cls, name):
                return cls(name)
            @staticmethod
            def join(a, b):
                return a + b

        class Child(Base):
            root = "/child"
            def __init__(self, name):
                super().__init__(name)
                self.extra = self.join(name, "!")

        a = Base.make("a")
        b = Child("b")
        open(a.path)
        open(b.path)
        open(b.extra)
        a.name = "c"
        open(a.path)
        """)
    assert opened(program) == ["/base/a", "/child/b", "b!", "/base/c"]


def test_data_classes(read: Read) -> None:
    program = read("""
        from dataclasses import dataclass, field
        @dataclass
        class Config:
            root: str
            name: str = "x"
            parts: list = field(default_factory=list)
            @property
            def path(self):
                return f"{self.root}/{self.name}/{len(self.parts)}"
        open(Config("/a").path)
        open(Config(root="/b", name="y").path)
        """)
    assert opened(program) == ["/a/x/0", "/b/y/0"]


def test_an_attribute_that_an_own_class_lacks(read: Read) -> None:
    program = read("""
        import torch
        class Plain:
            def __init__(self):
                self.there = 1
        class Module(torch.nn.Module):
            pass
        Plain().there
        Plain().missing
        Module().missing
        """)
    found = [(one.name, one.found) for one in program.lookups if one.found is not None]
    assert found == [("missing", False)] * 2


def test_attributes_that_are_set_by_name(read: Read) -> None:
    program = read(
        """
        import argparse, lib
        class A:
            def __init__(self, **others):
                self.__dict__.update(others)
        class B: pass
        for name in ["x", "y"]:
            setattr(B, name, property(lambda self: 1))
        class C: pass
        c = C()
        setattr(c, lib.name(), 1)
        parser = argparse.ArgumentParser()
        args = parser.parse_args()
        vars(args).update(lib.more())
        A(**lib.more()).x
        B().x
        c.x
        args.x
        """
    )
    assert not [one for one in program.lookups if one.found is False]


def test_closures_decorators_generators_and_recursion(read: Read) -> None:
    program = read("""
        import functools
        def outer(prefix):
            count = 0
            def inner(name):
                nonlocal count
                count += 1
                return open(f"{prefix}/{name}{count}")
            return inner
        def logged(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)
            return wrapper
        @logged
        def work(x):
            open(x)
        def numbers():
            yield "g1"
            yield "g2"
        def down(n):
            return down(n - 1) if n else open("end")
        outer("/p")("f")
        work("w")
        for one in numbers():
            open(one)
        down(3)
        """)
    assert {"/p/f1", "w", "g1"} <= set(opened(program))


def test_calls_of_libraries_have_the_names_that_rules_look_for(read: Read) -> None:
    program = read("""
        import torch as th
        from torch import nn, optim as o
        import torch.nn.functional as F
        model = nn.Linear(4, 2).to("cuda")
        opt = o.SGD(model.parameters(), lr=0.1)
        loss = F.cross_entropy(model(th.ones(1, 4)), th.zeros(1))
        loss.backward()
        opt.step()
        " ".join(["a"])
        """)
    names = [one.name for one in program.calls]
    for name in [
        "torch.nn.Linear", "torch.nn.Linear().to", "torch.optim.SGD", "torch.ones",
        "torch.nn.functional.cross_entropy", "torch.nn.functional.cross_entropy().backward",
        "torch.optim.SGD().step", "builtins.str().join",
    ]:  # fmt: skip
        assert name in names, name
    made = call(program, "torch.optim.SGD")
    assert plain(made.keywords["lr"]) == 0.1
    assert isinstance(made.result, Instance)
    assert made.result.place == made.at.place


# -- Ways ----------------------------------------------------------------------------------------


def test_a_condition_that_is_known_takes_one_way(read: Read) -> None:
    program = read("""
        DEBUG = False
        if DEBUG:
            open("debug")
        elif 1 < 2:
            open("yes")
        else:
            open("no")
        """)
    assert opened(program) == ["yes"]
    assert calls(program, "builtins.open")[0].at.certain


def test_a_condition_that_is_not_known_takes_both_ways(read: Read) -> None:
    program = read("""
        import lib
        name = "a"
        kept = "k"
        if lib.flag():
            name = "b"
            open("one")
        else:
            open("two")
        open(name)
        open(kept)
        """)
    assert [one.at.certain for one in calls(program, "builtins.open")] == [False, False, True, True]
    found = opened(program)
    assert found[:2] == ["one", "two"]
    assert isinstance(found[2], Anything)
    assert found[3] == "k"


def test_what_follows_a_way_that_ended(read: Read) -> None:
    program = read("""
        import sys, lib
        def choose():
            if lib.flag():
                return "early"
            open("later")
            return "late"
        if lib.wrong():
            mode = "bad"
            sys.exit(1)
        else:
            mode = "good"
        open(mode)
        choose()
        raise SystemExit
        open("never")
        """)
    assert opened(program) == ["good", "later"]
    assert [one.at.certain for one in calls(program, "builtins.open")] == [True, False]


@pytest.mark.parametrize(
    ("body", "reached"),
    [
        ("pass", False),
        ("lib.step()", False),
        ("if lib.over(): break", True),
        ("if lib.over(): continue", False),
        ("for x in lib.all(): break", False),
    ],
)
def test_only_a_break_leaves_an_endless_loop(read: Read, body: str, reached: bool) -> None:
    program = read(f"import lib\nwhile True:\n    {body}\nopen('after')\n")
    assert opened(program) == ["after"] * reached


def test_loops(read: Read) -> None:
    program = read("""
        import lib
        for split in ["train", "test"]:
            open(f"{split}.csv")
        for line in lib.lines():
            open(line)
        names = []
        for i in range(1000):
            open(f"part{i}")
            names.append(i)
        if len(names) == 1:
            open("never")
        total = 0
        while lib.more():
            total += 1
        if total == 1:
            open("perhaps")
        for nothing in []:
            open("empty")
        """)
    found = calls(program, "builtins.open")
    assert opened(program)[:2] == ["train.csv", "test.csv"]
    assert [one.at.certain for one in found[:4]] == [True, True, False, True]
    assert all(one.at.loop for one in found[:4])
    assert isinstance(found[3].arguments[0], Text)
    assert [one.at.certain for one in found[4:]] == [False, False]
    assert "empty" not in opened(program)


def test_what_is_handled(read: Read) -> None:
    program = read("""
        import contextlib
        try:
            import missing
            open("a")
        except (ImportError, OSError):
            missing = None
        try:
            open("b")
        except OSError:
            print("no")
            raise
        try:
            open("c")
        except:
            pass
        with contextlib.suppress(FileNotFoundError):
            open("d")
        def careful():
            open("e")
        try:
            careful()
        except ValueError as error:
            open(str(error))
        """)
    assert program.imports[1].at.handled == {"ImportError", "OSError"}
    handled = {
        str(plain(one.arguments[0])): one.at.handled for one in calls(program, "builtins.open")
    }
    assert handled["a"] == {"ImportError", "OSError"}
    assert handled["b"] == frozenset()
    assert handled["c"] == {"BaseException"}
    assert handled["d"] == {"FileNotFoundError"}
    assert handled["e"] == {"ValueError"}


def test_conditions_on_the_targets_python(read: Read) -> None:
    source = """
        import sys
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import never
        if sys.version_info >= (3, 11):
            open("new")
        else:
            open("old")
        """
    assert opened(read(source, target=Target("t", python=(3, 10, 4)))) == ["old"]
    assert opened(read(source, target=Target("t", python=(3, 12, 0)))) == ["new"]
    assert "never" not in [one.module for one in read(source).imports]
    assert opened(read(source)) == ["new", "old"]


def test_match_and_walrus(read: Read) -> None:
    program = read("""
        kind = "json"
        match kind:
            case "yaml":
                open("yaml")
            case "json" | "jsonl":
                open("json")
            case _:
                open("other")
        if (n := 3) > 2:
            open(f"n{n}")
        """)
    assert opened(program) == ["json", "n3"]


# -- Modules -------------------------------------------------------------------------------------


def test_modules_of_the_job(read: Read) -> None:
    program = read(
        {
            "train.py": """
                import sys
                import numpy as np
                sys.path.insert(0, "libs")
                from pkg import Net, helper as h
                from pkg.deep import names
                import pkg.deep.more as more
                import extra
                from importlib import import_module
                h()
                open(names.ONE)
                open(more.TWO)
                import_module("pkg.late").run()
                """,
            "pkg/__init__.py": "from .models import *\nfrom .tools import helper\n",
            "pkg/models.py": "__all__ = ['Net']\nclass Net: pass\n",
            "pkg/tools.py": "from . import models\ndef helper(): open('helper')\n",
            "pkg/deep/names.py": "ONE = 'one'\n",
            "pkg/deep/more.py": "from ..cycle import CYCLE\nTWO = 'two' + CYCLE\n",
            "pkg/cycle.py": "import pkg.deep.more\nCYCLE = '!'\n",
            "pkg/late.py": "def run(): open('late')\n",
            "libs/extra.py": "open('extra')\n",
        }
    )
    assert opened(program) == ["extra", "helper", "one", "two!", "late"]
    assert [one.module for one in program.imports] == ["sys", "numpy", "importlib"]
    assert {"pkg.deep.more", "pkg.cycle", "extra", "__main__"} <= set(program.modules)
    assert program.modules["pkg.tools"].path == "pkg/tools.py"


def test_an_installed_package_hides_a_folder_without_init(read: Read) -> None:
    files = {"train.py": "import datasets\n", "datasets/get.py": "", "wandb/run.txt": ""}
    known = {"datasets": Distribution("datasets", "2.0", ("datasets",))}
    installed = read(files, target=Target("t", distributions=known))
    assert [one.module for one in installed.imports] == ["datasets"]
    assert not read(files, target=Target("t", distributions={})).imports


def test_a_module_run_with_m(read: Read) -> None:
    program = read(
        {
            "pkg/__init__.py": "",
            "pkg/train.py": "from .tools import go\nif __name__ == '__main__':\n    go()\n",
            "pkg/tools.py": "def go(): open('x')\n",
        },
        module="pkg.train",
    )
    assert opened(program) == ["x"]


def test_a_module_that_does_not_parse_stays_with_its_error(read: Read) -> None:
    program = read({"train.py": "import broken\nopen('x')\n", "broken.py": "def f(:\n"})
    assert program.modules["broken"].tree is None
    assert program.modules["broken"].error is not None
    assert opened(program) == ["x"]


def test_the_syntax_of_the_targets_python(read: Read) -> None:
    source = "match 1:\n    case 1:\n        pass\n"
    assert read(source, target=Target("t", python=(3, 9, 0))).modules["__main__"].tree is None
    assert read(source, target=Target("t", python=(3, 11, 0))).modules["__main__"].tree


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"x = '\xff'\n", b"# coding: nonsense\n", b"a\x00"]
)
def test_a_file_that_is_no_python(tmp_path: Path, read: Read, content: bytes) -> None:
    (tmp_path / "odd.py").write_bytes(content)
    program = read("import odd\nopen('x')\n")
    assert program.modules["odd"].error is not None
    assert opened(program) == ["x"]


def test_a_script_that_is_not_there(read: Read) -> None:
    with pytest.raises(InputError, match=r"missing\.py"):
        read({"train.py": ""}, script="missing.py")


# -- Phases --------------------------------------------------------------------------------------

TRAINING = """
    import os
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset):
        def __init__(self, root):
            self.root = root
            self.names = open(f"{root}/names.txt").read().split()
        def __len__(self):
            return len(self.names)
        def __getitem__(self, i):
            return torch.load(f"{self.root}/item.pt")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 2)
        def forward(self, x):
            return torch.softmax(self.fc(x), dim=1)

    def evaluate(model, loader):
        for x, y in loader:
            model(x)

    def train(model, loader, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                loss = torch.nn.functional.nll_loss(model(x), y)
                loss.backward()
                optimizer.step()
            evaluate(model, loader)
            torch.save(model.state_dict(), f"epoch{epoch}.pt")

    if __name__ == "__main__":
        model = Net().to("cuda")
        loader = DataLoader(Pictures("/data/train"), batch_size=4)
        train(model, loader, epochs=5)
        test = DataLoader(Pictures("/data/test"))
        evaluate(model, test)
        torch.save(model, "final.pt")
    """


def test_the_phases_of_a_training_program(read: Read) -> None:
    program = read(TRAINING)
    assert [one.at.phase for one in calls(program, "torch.nn.Linear")] == ["initialization"]
    assert [one.at.phase for one in calls(program, "builtins.open")] == [
        "preprocessing", "evaluation",
    ]  # fmt: skip
    assert [one.at.phase for one in calls(program, "torch.load")] == [
        "preprocessing", "evaluation",
    ]  # fmt: skip
    assert [one.at.phase for one in calls(program, "torch.save")] == ["training", "evaluation"]
    assert {one.at.phase for one in calls(program, "torch.softmax")} == {"training", "evaluation"}
    assert call(program, "torch.optim.SGD").at.phase == "initialization"
    assert call(program, "torch.optim.SGD().step").at.loop


def test_what_a_data_loader_and_a_module_call(read: Read) -> None:
    program = read(TRAINING)
    loads = calls(program, "torch.load")
    assert [plain(one.arguments[0]) for one in loads] == [
        "/data/train/item.pt",
        "/data/test/item.pt",
    ]
    assert all(one.at.function == "Pictures.__getitem__" for one in loads)
    assert calls(program, "torch.softmax")[0].at.function == "Net.forward"


def test_a_trainer_of_lightning(read: Read) -> None:
    program = read("""
        import lightning as L
        import torch
        class Model(L.LightningModule):
            def training_step(self, batch, i):
                open("step")
                return batch
            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters())
            def test_step(self, batch, i):
                open("test")
        trainer = L.Trainer(max_epochs=3)
        model = Model()
        trainer.fit(model)
        trainer.save_checkpoint("last.ckpt")
        trainer.test(model)
        """)
    assert call(program, "lightning.Trainer().fit").at.phase == "training"
    phases = {str(plain(one.arguments[0])): one.at.phase for one in calls(program, "builtins.open")}
    assert phases["step"] == "training"
    assert phases["test"] in ("training", "evaluation")
    assert call(program, "lightning.Trainer().save_checkpoint").at.phase == "evaluation"
    assert not any(one.at.certain for one in calls(program, "builtins.open"))


def test_a_data_module_is_set_up_for_what_the_trainer_does(read: Read) -> None:
    program = read("""
        import lightning as L
        FILES = {"fit": "train.npz", "test": "test.npz"}
        class Data(L.LightningDataModule):
            def setup(self, stage):
                open(FILES[str(getattr(stage, "value", stage))])
        class Model(L.LightningModule):
            def training_step(self, batch, i):
                return batch
        trainer, data = L.Trainer(), Data()
        trainer.fit(Model(), datamodule=data)
        trainer.test(Model(), datamodule=data)
        """)
    assert opened(program) == ["train.npz", "test.npz"]
    assert all(one.at.certain for one in calls(program, "builtins.open"))


def test_processes_run_their_target(read: Read) -> None:
    program = read("""
        import torch.multiprocessing as mp
        def worker(rank, root):
            open(f"{root}/data")
        if __name__ == "__main__":
            mp.spawn(worker, nprocs=2, args=("/x",))
        """)
    assert opened(program) == ["/x/data"]
    assert calls(program, "builtins.open")[0].at.certain


def test_partial_functions_and_the_first_batch(read: Read) -> None:
    program = read("""
        from functools import partial
        from torch.utils.data import DataLoader, Dataset
        class Items(Dataset):
            def __len__(self): return 1
            def __getitem__(self, i): return open("item")
        def collate(batch, root):
            open(f"{root}/c")
        make = partial(collate, root="/a")
        make([1])
        loader = DataLoader(Items(), collate_fn=partial(collate, root="/b"))
        next(iter(loader))
        """)
    assert opened(program) == ["/a/c", "item", "/b/c"]
    assert calls(program, "builtins.open")[1].at.certain


def test_a_function_that_is_given_away_may_be_called(read: Read) -> None:
    program = read("""
        import lib
        def callback(x):
            open("callback")
        def never():
            open("never")
        lib.register(callback)
        """)
    assert opened(program) == ["callback"]
    assert not calls(program, "builtins.open")[0].at.certain


# -- Command lines and configurations ------------------------------------------------------------


def test_arguments_of_the_command_line(read: Read) -> None:
    program = read(
        """
        import argparse, os
        def options():
            parser = argparse.ArgumentParser()
            parser.add_argument("--data", default="/data")
            group = parser.add_argument_group("training")
            group.add_argument("--epochs", type=int, default=3)
            parser.add_argument("--amp", action="store_true")
            parser.add_argument("out")
            return parser.parse_args()
        def main(args):
            open(os.path.join(args.data, "x"))
            open(f"{args.out}/{args.epochs + 1}")
            if args.amp:
                open("amp")
            args.missing
        main(options())
        """,
        "--epochs",
        "7",
        "result",
    )
    assert opened(program) == ["/data/x", "result/8"]
    assert plain(program.options["epochs"]) == 7
    assert program.options["epochs"].origin.path == "<command>"  # type: ignore[union-attr]
    assert program.options["data"].origin.line == 5  # type: ignore[union-attr]
    (lookup,) = [one for one in program.lookups if one.name == "missing"]
    assert lookup.found is False
    assert not program.parsed[0].problems


def test_a_command_line_with_mistakes(read: Read) -> None:
    program = read(
        """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        args = parser.parse_args()
        open(args.lr)
        """,
        "--lr=x",
        "--learning",
    )
    assert {one.kind for one in program.parsed[0].problems} & {"type", "unknown"}


def test_a_parser_to_which_a_library_adds(read: Read) -> None:
    program = read("""
        import argparse, deepspeed
        parser = argparse.ArgumentParser()
        parser = deepspeed.add_config_arguments(parser)
        """)
    assert not program.parsed
    program = read(
        """
        import argparse, deepspeed
        parser = argparse.ArgumentParser()
        deepspeed.add_config_arguments(parser)
        args = parser.parse_args()
        """,
        "--deepspeed",
    )
    assert not program.parsed[0].spec.complete


def test_commands_of_click(read: Read) -> None:
    program = read(
        """
        import click
        @click.command()
        @click.option("--root", default="/data")
        @click.option("--count", type=int, default=1)
        def main(root, count):
            open(f"{root}/{count}")
        if __name__ == "__main__":
            main()
        """,
        "--count",
        "5",
    )
    assert opened(program) == ["/data/5"]


def test_a_function_for_fire_and_commands_of_typer(read: Read) -> None:
    program = read(
        """
        import fire
        def main(root, count=1, *, name="x"):
            open(f"{root}/{count}/{name}")
        fire.Fire(main)
        """,
        "/data",
        "--count=5",
    )
    assert opened(program) == ["/data/5/x"]
    program = read("""
        import typer
        app = typer.Typer()
        @app.command()
        def train(root: str):
            open("typer")
        app()
        """)
    assert opened(program) == ["typer"]


def test_flags_of_absl(read: Read) -> None:
    program = read(
        """
        from absl import app, flags
        FLAGS = flags.FLAGS
        flags.DEFINE_string("root", "/data", "where")
        def main(argv):
            open(FLAGS.root)
        app.run(main)
        """,
        "--root=/flag",
    )
    assert opened(program) == ["/flag"]


def test_fields_of_data_classes_as_options(read: Read) -> None:
    program = read(
        """
        from dataclasses import dataclass, field
        from transformers import HfArgumentParser
        @dataclass
        class Data:
            path: str = field(default="/data", metadata={"help": "where"})
            limit: int = 3
        (data,) = HfArgumentParser((Data,)).parse_args_into_dataclasses()
        open(f"{data.path}/{data.limit}")
        """,
        "--limit",
        "9",
    )
    assert opened(program) == ["/data/9"]


def test_configuration_files(read: Read) -> None:
    program = read(
        {
            "train.py": """
                import json, yaml
                from omegaconf import OmegaConf
                with open("config.yaml") as f:
                    config = yaml.safe_load(f)
                open(config["data"]["root"])
                config["data"]["missing"]
                open(json.load(open("other.json"))["path"])
                open(OmegaConf.load("config.yaml").data.root)
                """,
            "config.yaml": "data:\n  root: /data\n",
            "other.json": '{"path": "/json"}',
        }
    )
    assert [one for one in opened(program) if "/" in str(one)] == ["/data", "/json", "/data"]
    (lookup,) = [one for one in program.lookups if one.name == "missing"]
    assert lookup.found is False
    root = next(c for c in calls(program, "builtins.open") if plain(c.arguments[0]) == "/data")
    assert root.arguments[0].origin.line == 2  # type: ignore[union-attr]


def test_a_main_of_hydra(read: Read) -> None:
    program = read(
        {
            "train.py": """
                import hydra
                @hydra.main(config_path="conf", config_name="config", version_base=None)
                def main(cfg):
                    open(f"{cfg.root}/{cfg.model.name}")
                if __name__ == "__main__":
                    main()
                """,
            "conf/config.yaml": "root: /data\nmodel:\n  name: small\n",
        },
        "model.name=large",
    )
    assert opened(program) == ["/data/large"]


# -- Bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "+".join(["1"] * 5000),
        "x = " + "(" * 150 + ")" * 150,
        "x = " + "-" * 3000 + "1",
        "def f(n):\n    return f(n + 1)\nf(0)\n",
        "x = 'a' * 10 ** 12\ny = 10 ** 10 ** 10\nz = 1 << 10 ** 9\n",
        "x = 'a'\n" + "x = x + x\n" * 64,
        "x = []\nx.append(x)\nopen(x)\n",
        "x = [1]\n" + "x = [x, x]\n" * 40 + "open(x)\n",
        "f'{1:1000000000}'\n'%1000000000d' % 1\n'{:1000000000}'.format(1)\n",
        "range(10 ** 18)\nlist(range(10 ** 18))\n",
        "while True:\n    pass\n",
        "class A(A): pass\n",
        "class A: pass\nA.__bases__ = (A,)\nA().x\n",
        "import train\n",
        "x = x\ndel y\nglobal q\n",
        "return 1\n",
        "\n".join(f"def f{i}():\n    f{i + 1}()\n    f{i + 1}()" for i in range(60)) + "\nf0()\n",
    ],
)
def test_what_is_cut(read: Read, source: str) -> None:
    with bounded_work():
        read(source)


def test_a_large_program_is_read_in_time(read: Read) -> None:
    function = """
def function_{0}(model, data, rate=0.1, name="x{0}"):
    total = 0
    for item in data:
        if item.score > rate and item.label not in (1, 2, 3):
            total += item.score * 2
            item.path = "/".join([name, str(item.label)])
        elif item.text:
            total -= len(item.text) / 2
        else:
            continue
    result = [model(x.value, key=x.key) for x in data if x.valid]
    settings = {{"rate": rate, "name": name, "total": total}}
    try:
        model.update(settings["rate"], result)
    except (ValueError, KeyError) as error:
        print(f"no update of {{name}}: {{error}}")
    return settings

function_{0}(MODEL, DATA)
"""
    source = "import lib\nMODEL = lib.model()\nDATA = lib.data()\n"
    source += "".join(function.format(i) for i in range(1000))
    assert source.count("\n") > 19_000
    with bounded_work():
        program = read(source)
    assert not program.unknowns
    assert len(calls(program, "builtins.print")) == 1000


@pytest.mark.parametrize(
    "filtered",
    [
        "for key in given:\n    if key not in known:\n        continue\n    chosen[key] = given[key]",
        "for key in given:\n    if key in known:\n        break\n    chosen[key] = given[key]",
        "chosen = {key: value for key, value in given.items() if key in known}",
    ],
)
def test_what_some_rounds_leave_out_is_not_surely_there(filtered: str, read: Read) -> None:
    source = "import lib\nknown = lib.names()\ngiven = {'a': 1, 'b': 2}\nchosen = {}\n"
    program = read(f"{source}{filtered}\nlib.make(**chosen)\n")
    (made,) = calls(program, "lib.make")
    assert not made.keywords
    assert not made.complete


def test_a_name_of_a_library(read: Read) -> None:
    program = read("import numpy as np\nx = np.bool\n")
    assert [(one.on, one.name) for one in program.lookups] == [(External("numpy"), "bool")]


def test_a_default_that_is_stored_under_an_unknown_key_may_be_filled(read: Read) -> None:
    program = read(
        """
        import os
        groups = {}
        for name in os.listdir():
            groups.setdefault(name[:1], []).append(name)
        if not [group for group in groups.values() if group]:
            raise RuntimeError("no files")
        """
    )
    assert not [failed for failed in program.failures if failed.at.certain]


def test_a_list_made_from_what_is_not_known_may_be_empty(read: Read) -> None:
    program = read(
        """
        import pandas as pd
        frame = pd.read_csv("train.csv")
        left = [column for column in frame.columns if column != "label"]
        if left:
            raise ValueError("columns without a role")
        """
    )
    assert not [failed for failed in program.failures if failed.at.certain]


def test_a_deep_copy_has_its_own_content(read: Read) -> None:
    program = read(
        """
        import copy
        class Config:
            pass
        config = Config()
        config.paths = {"a": {"train": "a.csv"}, "b": {"train": "b.csv"}}
        config.paths["self"] = config
        for name in ["a", "b"]:
            mine = copy.deepcopy(config)
            mine.paths = mine.paths[name]
            open(mine.paths["train"])
        mine.paths["train"] = "changed"
        open(copy.deepcopy(config).paths["b"]["train"])
        open(copy.deepcopy(config).paths["self"].paths["a"]["train"])
        """
    )
    assert opened(program) == ["a.csv", "b.csv", "b.csv", "a.csv"]
    assert not program.failures


def test_keys_of_a_dictionary_that_are_not_known_are_entries_of_their_own(read: Read) -> None:
    program = read(
        """\
        import torch

        def make(size):
            return torch.device("cuda", index=size)

        def name():
            return input()

        print({make(n): n for n in (1, 2)})
        print({name(): n for n in (1, 2)})
        """
    )
    shown = [one.arguments[0] for one in calls(program, "builtins.print")]
    assert not program.unknowns
    assert [len(one.values) for one in shown if isinstance(one, Items)] == [2, 2]


def test_a_fault_of_the_reader_costs_the_rest_of_the_program_only(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr(library, "method_called", broken)
    program = read("import torch\n\nprint('begins')\ntorch.device('cpu').upper()\nprint('ends')\n")
    assert len(calls(program, "builtins.print")) == 1
    assert any("KeyError" in one.reason for one in program.unknowns)


def test_values_can_be_told_apart_by_their_hash() -> None:
    made = Instance("torch.device", keywords={"index": Constant(1)})
    assert len({made, Instance("torch.device", keywords={"index": Constant(1)})}) == 1


def test_a_path_that_the_command_line_gives_is_joined_as_one(read: Read) -> None:
    text = """\
        import argparse
        from pathlib import Path
        parser = argparse.ArgumentParser()
        parser.add_argument("--out", type=Path, default=Path("runs"))
        args = parser.parse_args()
        open(args.out / "log.txt", "w")
        """
    for argv, whole in (((), "runs/log.txt"), (("--out", "o"), "o/log.txt")):
        (call,) = [one for one in read(text, *argv).calls if one.name == "builtins.open"]
        (path,) = call.arguments[0].arguments  # type: ignore[union-attr]
        assert path.value == whole


@pytest.mark.parametrize(
    "test",
    [
        "dist.get_rank() == 0",
        "rank == 0",
        "args.local_rank in [-1, 0]",
        "not rank",
        "int(os.environ['RANK']) == 0",
        "args.local_rank == -1 or dist.get_rank() == 0",
    ],
)
def test_what_the_first_rank_does_happens_in_every_run(read: Read, test: str) -> None:
    text = f"""\
        import os, sys
        import torch.distributed as dist
        rank = dist.get_rank()
        args = sys.modules
        if {test}:
            open("a")
        else:
            open("b")
        """
    certain = [one.at.certain for one in read(text).calls if one.name == "builtins.open"]
    assert certain == [True, False]


@pytest.mark.parametrize(
    ("over", "test", "certain"),
    [
        ("range(20)", "rank == 0 and epoch % 5 == 4", True),
        ("range(20)", "epoch % 5 == 4 and dist.get_rank() == 0", True),
        ("range(3)", "rank == 0 and epoch % 5 == 4", False),
        ("range(20)", "len(sys.path) and epoch % 5 == 4", False),
        ("tqdm.trange(20, desc='train')", "epoch == 3", True),
        ("range(1, 20)", "rank == 0 and epoch", True),
    ],
)
def test_what_the_first_rank_does_in_some_round_happens_in_every_run(
    read: Read, over: str, test: str, certain: bool
) -> None:
    text = f"""\
        import sys, tqdm
        import torch.distributed as dist
        rank = dist.get_rank()
        for epoch in {over}:
            if {test}:
                open("a")
            else:
                open("b")
        """
    first, *_ = [one for one in read(text).calls if one.name == "builtins.open"]
    assert first.at.certain is certain


def test_numbers_may_be_counted_from_elsewhere(read: Read) -> None:
    text = "for at, one in enumerate(['a', 'b'], start=1):\n    open(f'{at}{one}')\n"
    calls = [one for one in read(text).calls if one.name == "builtins.open"]
    assert [one.arguments[0].value for one in calls] == ["1a", "2b"]  # type: ignore[union-attr]


def test_what_a_thread_does_is_beside_the_program(read: Read) -> None:
    text = """\
        import multiprocessing, threading
        def work():
            open("a")
        threading.Thread(target=work).start()
        multiprocessing.Process(target=work).start()
        work()
        """
    calls = [one for one in read(text).calls if one.name == "builtins.open"]
    assert [one.at.aside for one in calls] == [True, False, False]


def test_what_texts_run_and_how_other_parsers_read_is_said_not_to_be_known(read: Read) -> None:
    text = (
        "import sys\n\nimport tyro\n\n\ndef main(lr: float = 0.1):\n    print(lr)\n\n\n"
        "tyro.cli(main)\nexec(sys.stdin.read())\nlayer = eval(sys.argv[1])\nprint(eval)\n"
    )
    found = read({"train.py": text}, "Linear").unknowns
    assert [(one.what, one.place.line) for one in found] == [
        ("the arguments", 10),
        ("what exec runs", 11),
        ("what eval gives", 12),
    ]
