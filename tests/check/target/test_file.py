"""``target.toml``: what is read, what is refused, and that what was written is read again."""

from __future__ import annotations

import re
import string
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.target import parse_target, read_target, write_target
from epochzero.check.target.file import size_of
from epochzero.check.target.model import (
    GPU,
    CallSignature,
    Distribution,
    Mount,
    NetworkAccess,
    Target,
    User,
)
from epochzero.check.target.packages import normalized
from epochzero.errors import InputError

GIB = 1 << 30


def refused(text: str, *words: str) -> None:
    with pytest.raises(InputError) as error:
        parse_target(text, "t.toml")
    for word in ("t.toml", *words):
        assert word in str(error.value)


def test_a_target_of_which_little_is_said() -> None:
    found = parse_target('format = 1\npython = "3.11"\n', "cluster.toml")
    assert found == Target("cluster", python=(3, 11, 0))
    assert found.gpus is None
    assert not found.here


def test_gpus_by_their_short_form() -> None:
    found = parse_target('format = 1\ngpus = "8 x H100"')
    assert found.gpus is not None
    assert len(found.gpus) == 8
    assert found.gpus[0].capability == (9, 0)
    assert 79 * GIB < found.gpus[0].memory_bytes < 80 * GIB
    assert parse_target('format = 1\ngpus = "none"').gpus == ()


def test_gpus_that_are_described() -> None:
    text = 'format = 1\n[[gpus]]\nmodel = "X1"\nmemory_bytes = "10 GiB"\ncapability = "sm_90"\ncount = 2'
    assert parse_target(text).gpus == (GPU("X1", 10 * GIB, (9, 0)),) * 2


def test_the_api_of_a_library() -> None:
    text = 'format = 1\n[api."torch.nn"]\nLinear = "(a, b, bias=..., *, dtype=...)"\npi = false\n"A.f" = "()"'
    assert parse_target(text).api == {
        "torch.nn": {
            "Linear": CallSignature(("a", "b", "bias"), 2, ("a", "b", "bias", "dtype")),
            "pi": None,
            "A.f": CallSignature(),
        }
    }


def test_distributions_by_version_alone() -> None:
    found = parse_target(
        'format = 1\n[distributions]\nPyYAML = "6.0"\nunheard-of = "1"'
    ).distributions
    assert found is not None
    assert found["pyyaml"] == Distribution("pyyaml", "6.0", ("yaml",))
    assert found["unheard-of"].modules is None


def test_packages_of_a_list_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.4.0\nnumpy==1.26.4\n")
    path = tmp_path / "t.toml"
    path.write_text('format = 1\npackages = "requirements.txt"\n[distributions]\nnumpy = "2.0"')
    found = read_target(path).distributions
    assert found is not None
    assert {name: each.version for name, each in found.items()} == {
        "torch": "2.4.0",
        "numpy": "2.0",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("format", "format = 1")),
        ("format = 2", ("format", "format = 1")),
        ("format = 1\npythn = '3.11'", ("pythn", "python")),
        ("format = 1\npython = 3.11", ("python", "'3.11.4'")),
        ("format = 1\npython = 'three'", ("python", "'3.11.4'")),
        ("format = 1\nnodes = -1", ("nodes", "whole number")),
        ("format = 1\nnodes = true", ("nodes", "whole number")),
        ("format = 1\nmemory_bytes = 'much'", ("memory_bytes", "80 GiB")),
        ("format = 1\ntime_limit_s = 0", ("time_limit_s", "above 0")),
        ("format = 1\ntime_limit_s = nan", ("time_limit_s", "above 0")),
        ("format = 1\nprograms = 'git'", ("programs", "list")),
        ("format = 1\nprograms = [1]", ("programs[0]", "text")),
        ("format = 1\ngpus = '8 x H1000'", ("gpus", "H100")),
        ("format = 1\ngpus = '9999 x H100'", ("gpus", "1024")),
        ("format = 1\n[[gpus]]\nmodel = 'X'", ("gpus[0]", "memory_bytes")),
        ("format = 1\n[[gpus]]\nmodel = 'X'\nmemory_bytes = 1\ncapability = 'new'", ("capability", "9.0")),
        ("format = 1\n[[mounts]]\nwritable = true", ("mounts[0]", "path")),
        ("format = 1\n[[mounts]]\npath = '/'\nmode = 'ro'", ("mounts[0].mode", "writable")),
        ("format = 1\nmounts = '/'", ("mounts",)),
        ("format = 1\n[user]\nuid = '0'", ("user.uid", "whole number")),
        ("format = 1\n[environment]\nA = 1", ("environment.A", "text")),
        ("format = 1\n[files]\n'/a' = 1", ("files./a", "true or false")),
        ("format = 1\n[distributions]\na = {}", ("distributions.a", "version")),
        ("format = 1\n[api.m]\nf = 'a'", ("api.m.f", "parameters")),
        ("format = 1\n[api.m]\nf = '(a=1)'", ("api.m.f", "...")),
        ("format = 1\napi_packed = 'xx'", ("api_packed", "damaged")),
        ("format = 1\nname = 'a", ("not TOML",)),
        ("format = 1\npackages = 'x.txt'", ("packages",)),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_what_is_allowed(text: str, words: tuple[str, ...]) -> None:
    refused(text, *words)


def test_a_captured_file_that_is_damaged() -> None:
    text = write_target(Target("t", api={"m": dict.fromkeys(f"f{n}" for n in range(300))}))
    assert "api_packed" in text
    start = text.index("'''") + 20
    assert text[start] != "z"
    refused(text[:start] + "z" + text[start + 1 :], "api_packed", "damaged", "capture")
    refused(text[:start] + text[start + 5 :], "api_packed", "damaged")


@pytest.mark.parametrize("name", ["absent.toml", "somewhere/else", "H1000"])
def test_a_file_that_is_not_there(name: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_target(name)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, tmp_path / "binary.toml"):
        with pytest.raises(InputError, match=path.name):
            read_target(path)


def test_a_gpu_by_name_is_a_target() -> None:
    found = read_target("2 x A100 80GB")
    assert found.gpus is not None
    assert len(found.gpus) == 2
    assert found.distributions is None


def test_a_gpu_without_a_number_is_one_and_the_name_says_so() -> None:
    found = read_target("V100")
    assert (found.name, len(found.gpus or ())) == ("1 x V100", 1)
    assert read_target("none").name == "none"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("T5", "unknown GPU 'T5'. `epochzero target presets` lists"),
        ("V10", "unknown GPU 'V10'; did you mean V100"),
    ],
)
def test_a_gpu_that_is_not_known(name: str, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        read_target(name)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1K", 1024), ("1 KB", 1000), ("1KiB", 1024), ("1.5 GiB", 3 * GIB // 2),
     ("80 GB", 80 * 10**9), ("2t", 2 << 40), ("64g", 64 * GIB)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


# -- Written and read --------------------------------------------------------------------------

wild = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
words = st.text(string.ascii_letters + "_é", min_size=1, max_size=6)
numbers = st.integers(0, (1 << 63) - 1)
maybe = st.none() | numbers
some = st.lists(wild, max_size=3).map(tuple)


@st.composite
def signatures(draw: st.DrawFn) -> CallSignature:
    names = draw(st.lists(words, max_size=5, unique=True))
    cut = draw(st.integers(0, len(names)))
    positional, only = names[:cut], names[cut:]
    by_place = draw(st.integers(0, len(positional)))
    return CallSignature(
        tuple(positional),
        draw(st.integers(0, len(positional))),
        (*positional[by_place:], *only),
        tuple(name for name in only if draw(st.booleans())),
        draw(st.booleans()),
        draw(st.booleans()),
    )


distributions = st.builds(
    Distribution, st.just(""), wild, st.none() | some.filter(bool), some, some
)


@st.composite
def named(draw: st.DrawFn) -> dict[str, Distribution]:
    found = {}
    for name in draw(st.lists(words.map(normalized).filter(bool), max_size=3)):
        each = draw(distributions)
        found[name] = Distribution(name, each.version, each.modules, each.requires, each.extras)
    return found


@st.composite
def apis(draw: st.DrawFn) -> dict[str, dict[str, CallSignature | None]]:
    names = st.dictionaries(words | st.just("*"), st.none() | signatures(), max_size=4)
    api = draw(st.dictionaries(words, names, max_size=3))
    if draw(st.booleans()):  # enough to be packed
        api["many"] = {f"f{n}": CallSignature() for n in range(201)}
    return api


targets = st.builds(
    Target,
    name=wild,
    python=st.none() | st.tuples(*[st.integers(0, 9999)] * 3),
    distributions=st.none() | named(),
    api=apis(),
    shared_libraries=st.none() | st.frozensets(wild, max_size=3),
    programs=st.none() | st.frozensets(wild, max_size=3),
    gpus=st.none()
    | st.lists(
        st.builds(GPU, wild, numbers, st.none() | st.tuples(st.integers(0, 99), st.integers(0, 9))),
        max_size=3,
    ).map(lambda gpus: (*gpus, *gpus)),
    driver=wild,
    cuda=wild,
    cuda_of_torch=st.none() | wild,
    gpu_architectures=st.none() | some,
    nodes=maybe,
    mounts=st.none()
    | st.lists(st.builds(Mount, wild, st.booleans(), maybe, maybe, st.booleans()), max_size=3).map(
        tuple
    ),
    files=st.dictionaries(wild, st.booleans(), max_size=3),
    user=st.none() | st.builds(User, wild, maybe, maybe, some, wild),
    environment=st.none() | st.dictionaries(wild, wild, max_size=3),
    memory_bytes=maybe,
    shared_memory_bytes=maybe,
    cpus=maybe,
    processes=maybe,
    open_files=maybe,
    time_limit_s=st.none() | st.floats(1e-6, 1e12, allow_nan=False).map(float),
    network=st.builds(NetworkAccess, st.none() | st.booleans(), some),
    working_folder=wild,
    notes=some,
)


@given(targets)
def test_what_was_written_is_read_again(target: Target) -> None:
    assert parse_target(write_target(target)) == target


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for each in (text, f"format = 1\n{text}", f"format = 1\napi_packed = '''{text}'''"):
        with suppress(InputError):
            parse_target(each)


def test_a_misspelt_key_names_the_one_that_is_meant() -> None:
    with pytest.raises(InputError, match="pyhton: unknown key; did you mean python"):
        parse_target('format = 1\npyhton = "3.11"\n')
