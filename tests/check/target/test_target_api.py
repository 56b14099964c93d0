"""The public API of a library, read from its files alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from epochzero.check.target.api import ANY, read_api
from epochzero.check.target.model import CallSignature
from epochzero.check.target.signature import misfit

Files = dict[str, str]


def api_of(folder: Path, files: Files, module: str = "lib") -> dict[str, CallSignature | None]:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    api, cut = read_api(["lib"], [str(folder)])
    assert not cut
    return api[module]


def test_the_parameters_of_a_function(tmp_path: Path) -> None:
    names = api_of(tmp_path, {"lib.py": "def f(a, b=1, /, c=2, *rest, d, e=3, **more): ...\n"})
    assert names["f"] == CallSignature(
        positional=("a", "b", "c"), required=1, keywords=("c", "d", "e"),
        required_keywords=("d",), any_positional=True, any_keyword=True,
    )  # fmt: skip


def test_nothing_of_a_library_is_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    text = f"open({str(marker)!r}, 'w')\nraise SystemExit\ndef f(): ...\n"
    assert "f" in api_of(tmp_path, {"lib.py": text})
    assert not marker.exists()
    assert "lib" not in sys.modules


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("from .a import f", "f"),
        ("from .a import f as g", "g"),
        ("from .a import *", "f"),
        ("from lib.a import f", "f"),
        ("from . import a\nf = a.f", "f"),
        ("import lib.a\ng = lib.a.f", "g"),
        ("try:\n    from .a import f\nexcept ImportError:\n    raise", "f"),
        ("from .b import f", "f"),
    ],
)
def test_names_are_followed_to_where_they_are_defined(tmp_path: Path, root: str, name: str) -> None:
    files = {"lib/__init__.py": root, "lib/a.py": "def f(x, y=0): ...\ndef _g(): ...\n",
             "lib/b.py": "from .a import *\n"}  # fmt: skip
    assert api_of(tmp_path, files)[name] == CallSignature(("x", "y"), 1, ("x", "y"))


def test_all_says_what_a_star_takes(tmp_path: Path) -> None:
    files = {"lib/__init__.py": "from .a import *\n",
             "lib/a.py": "__all__ = ['f']\n__all__ += ['g']\ndef f(): ...\ndef g(): ...\ndef h(): ...\n"}  # fmt: skip
    names = api_of(tmp_path, files)
    assert {"f", "g"} <= names.keys()
    assert "h" not in names
    assert ANY not in names


def test_a_class_takes_what_its_constructor_takes(tmp_path: Path) -> None:
    text = (
        "class A:\n    def __init__(self, x, *, y=1): ...\n    def go(self, n): ...\n"
        "class B(A):\n    @staticmethod\n    def s(q): ...\n    @classmethod\n    def c(cls, q): ...\n"
        "    @property\n    def p(self): ...\n"
    )
    names = api_of(tmp_path, {"lib.py": text})
    assert names["B"] == names["A"] == CallSignature(("x",), 1, ("x", "y"))
    assert names["B.go"] == CallSignature(("n",), 1, ("n",))
    assert names["B.s"] == names["B.c"] == CallSignature(("q",), 1, ("q",))
    assert names["B.p"] is None
    assert "B.*" not in names


def test_a_dataclass_takes_its_fields(tmp_path: Path) -> None:
    text = (
        "from dataclasses import dataclass, field\nfrom typing import ClassVar\n"
        "@dataclass\nclass A:\n    x: int\n    k: ClassVar[int] = 0\n"
        "@dataclass(frozen=True)\nclass B(A):\n    y: list = field(default_factory=list)\n"
        "    z: int = field(init=False)\n"
    )
    assert api_of(tmp_path, {"lib.py": text})["B"] == CallSignature(("x", "y"), 1, ("x", "y"))


def test_overloads_take_what_any_of_them_takes(tmp_path: Path) -> None:
    text = (
        "from typing import overload\n@overload\ndef f(a, /) -> int: ...\n"
        "@overload\ndef f(a, dim, keep=..., *, out=...) -> int: ...\n"
    )
    found = api_of(tmp_path, {"lib.pyi": text})["f"]
    assert found is not None
    assert found.required == 1
    assert found.positional == ("a", "dim", "keep")
    assert {"dim", "keep", "out"} <= set(found.keywords)


def test_a_stub_tells_what_compiled_code_takes(tmp_path: Path) -> None:
    files = {"lib/__init__.py": "from . import _C\nconv = _C.conv\ndef own(a): ...\n",
             "lib/__init__.pyi": "def conv(input, weight, stride=...): ...\ndef own(wrong): ...\n"}  # fmt: skip
    names = api_of(tmp_path, files)
    assert names["conv"] == CallSignature(
        ("input", "weight", "stride"), 2, ("input", "weight", "stride")
    )
    assert names["own"] == CallSignature(("a",), 1, ("a",))


@pytest.mark.parametrize(
    "text",
    [
        "globals()['late'] = 1",
        "import sys\nsys.modules[__name__] = object()",
        "def __getattr__(name):\n    return compute(name)",
        "__getattr__ = attach()",
        "from missing import *",
        "from ._compiled import *",
        "globals().update(load())",
        "def fill():\n    globals()['x'] = 1\nfill()",
    ],
)
def test_a_module_that_may_have_more_names_says_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "_compiled.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    assert ANY in api_of(tmp_path, {"lib/__init__.py": text})


@pytest.mark.parametrize(
    "text",
    [
        "def f(): ...",
        "def __getattr__(name):\n    if name == 'old':\n        return 1\n    raise AttributeError(name)",
        "def register(module):\n    globals()[module] = module\n",
        "x = globals()['__name__']",
    ],
)
def test_a_module_without_other_names_is_complete(tmp_path: Path, text: str) -> None:
    assert ANY not in api_of(tmp_path, {"lib.py": text})


def test_names_that_a_module_gives_on_demand(tmp_path: Path) -> None:
    text = (
        "_moved = {\n    'old': 'new',\n}\n"
        "def __getattr__(name):\n    if name in _moved:\n        return _moved[name]\n"
        "    raise AttributeError(name)\n"
    )
    assert "old" in api_of(tmp_path, {"lib.py": text})


def test_names_that_a_loop_binds(tmp_path: Path) -> None:
    text = "for name in ('sin', 'cos'):\n    globals()[f'fast_{name}'] = make(name)\n"
    names = api_of(tmp_path, {"lib.py": text})
    assert {"fast_sin", "fast_cos"} <= names.keys()
    assert ANY not in names


@pytest.mark.parametrize(
    "text",
    [
        "class A(Unknown): ...",
        "class A:\n    def __getattr__(self, name): ...\n    def f(self): ...",
        "@patched\nclass A:\n    def f(self): ...",
        "class A(metaclass=Magic):\n    def f(self): ...",
    ],
)
def test_a_class_that_may_have_more_members_says_so(tmp_path: Path, text: str) -> None:
    assert "A.*" in api_of(tmp_path, {"lib.py": text})


def test_what_a_decorator_or_condition_may_change_is_not_told(tmp_path: Path) -> None:
    text = (
        "@surprising\ndef f(a): ...\n"
        "if fast:\n    from .x import g\nelse:\n    def g(a): ...\n"
        "def h(a): ...\nh = wrap(h)\n"
    )
    names = api_of(tmp_path, {"lib/__init__.py": text, "lib/x.py": "def g(b): ...\n"})
    assert names["f"] is names["g"] is names["h"] is None


def test_private_modules_and_tests_are_left_out(tmp_path: Path) -> None:
    files = {"lib/__init__.py": "", "lib/_inner.py": "", "lib/tests/__init__.py": "",
             "lib/sub/__init__.py": "def f(): ...\n"}  # fmt: skip
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    api, _ = read_api(["lib", "absent"], [str(tmp_path)])
    assert set(api) == {"lib", "lib.sub"}


@pytest.mark.parametrize("text", ["def (", "\0", "x = " + "(" * 500, "class A(A): ...\nA.b = 1\n"])
def test_damaged_and_strange_sources_are_survived(tmp_path: Path, text: str) -> None:
    (tmp_path / "lib.py").write_text(text)
    api, _ = read_api(["lib"], [str(tmp_path)])
    assert ANY in api["lib"] or "A.*" in api["lib"]


def test_modules_that_import_one_another(tmp_path: Path) -> None:
    files = {"lib/__init__.py": "from .a import *\nfrom .a import x as y\n",
             "lib/a.py": "from .b import *\nfrom .b import x\nclass A(B): ...\n",
             "lib/b.py": "from .a import *\nfrom .a import x\nclass B(A): ...\n"}  # fmt: skip
    assert api_of(tmp_path, files)["y"] is None


def test_a_link_to_the_folder_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("def f(): ...\n")
    (tmp_path / "lib" / "again").symlink_to(tmp_path / "lib")
    api, _ = read_api(["lib"], [str(tmp_path)])
    assert "f" in api["lib"]


def test_where_reading_stops_outer_modules_come_first(tmp_path: Path) -> None:
    for library in ("lib", "other"):
        (tmp_path / library / "sub").mkdir(parents=True)
        (tmp_path / library / "__init__.py").touch()
        (tmp_path / library / "sub" / "__init__.py").touch()
    api, stop = read_api(["lib", "other"], [str(tmp_path)])
    assert list(api) == ["lib", "other", "lib.sub", "other.sub"]
    assert not stop
    some, stop = read_api(["lib", "other"], [str(tmp_path)], most_names=1)
    assert list(some) == ["lib"]
    assert stop == "other"


def test_what_is_read_of_an_api_does_not_depend_on_a_large_library(tmp_path: Path) -> None:
    for library in ("transformers", "torch"):
        (tmp_path / library / "nn").mkdir(parents=True)
        (tmp_path / library / "__init__.py").touch()
        (tmp_path / library / "nn" / "__init__.py").touch()
    api, _ = read_api(["transformers", "torch"], [str(tmp_path)])
    assert list(api) == ["torch", "torch.nn", "transformers", "transformers.nn"]


def test_only_what_all_overloads_require_is_required(tmp_path: Path) -> None:
    stub = "from typing import overload\n" + "".join(
        f"@overload\ndef randint({text}, *, dtype=None): ...\n"
        for text in ("low: int, high: int, size", "high: int, size", "high: int, size, names=None")
    )
    randint = api_of(tmp_path, {"lib.pyi": stub, "lib.py": ""})["randint"]
    assert randint is not None
    assert not misfit(randint, 1, ["size"], True)
    assert not misfit(randint, 0, ["high", "size"], True)
    assert misfit(randint, 1, ["shape"], True) == "got an unexpected keyword argument 'shape'"
