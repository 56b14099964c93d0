"""What the documentation shows is true."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import click
import pytest
import yaml

import epochzero
from epochzero import data, taxonomy
from epochzero.check.findings import Finding, Unknown
from epochzero.check.result import CheckResult
from epochzero.check.rules import builtin as builtin_rules
from epochzero.cli import commands
from epochzero.data import ColumnProfile, DataTable, Fault, Numbers, Profile, Validated
from epochzero.diagnose import Catalog, Diagnosis, Signature, load_folder
from epochzero.diagnose.check import check_signature
from epochzero.locate.model import Extrinsic, Item, Ranking, Reason, Reranking
from tests.catalogs import every

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted(
    path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
)


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


TOML = [
    (name, n)
    for name in ("README.md", "docs/signatures.md")
    for n in range(len(blocks(name, "toml")))
]


PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
BLOCK = re.compile(r"(?ms)^```[^\n]*\n(.*?)^```$|(?<=\n\n)((?:    [^\n]*\n)+)")
COMMAND = re.compile(r"\s*(?:\$ |- run: |- )?(?:[A-Z_]+=\S+ +)*(?:\S*/)?(epochzero .*)")


def commands_of(page: str) -> list[str]:
    """The calls of `epochzero` in the blocks of a page."""
    found = []
    for block in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        text = (block[1] or block[2]).replace("\\\n", " ")
        found += [match[1] for line in text.splitlines() if (match := COMMAND.match(line))]
    return found


def parse_command(text: str) -> None:
    """Let click read a command, without running it, up to what a shell would do with its output."""
    lexer = shlex.shlex(text.replace(" ...", ""), posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    name, *words = takewhile(lambda word: not set(word) <= set("|;&<>"), lexer)
    command: click.Command = commands
    context = None
    while True:
        context = command.make_context(name, words, parent=context)
        rest = [*context._protected_args, *context.args]
        if not isinstance(command, click.Group) or not rest:
            return
        name, found, words = command.resolve_command(context, rest)
        assert found is not None
        command = found


@every("page", PAGES)
def test_every_command_of_a_page_is_one_that_exists(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/project")
    monkeypatch.setenv("GITHUB_EVENT_PATH", "event.json")
    for text in commands_of(page):
        try:
            parse_command(text)
        except click.exceptions.Exit:
            pass  # of --help
        except click.BadParameter as error:
            missing = re.search("does not exist|No such file", error.format_message())
            assert missing, text  # the files of an example


def test_the_pages_have_many_commands() -> None:
    assert sum(len(commands_of(page)) for page in PAGES) > 100


@every("page", PAGES)
def test_python_of_a_page_uses_names_that_exist(page: str) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("epochzero"):
                module = import_module(node.module or "")
                assert {name.name for name in node.names} <= {
                    *dir(module),
                    *getattr(module, "__all__", ()),
                }, block
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "epochzero":
                assert node.attr in dir(epochzero), block


@every("page", PAGES)
def test_yaml_and_shell_of_a_page_can_be_read(page: str) -> None:
    for block in blocks(page, "yaml"):
        list(yaml.safe_load_all(block))
    scripts = [*blocks(page, "bash"), *blocks(page, "sh")]
    if scripts:
        subprocess.run(["bash", "-n"], input="\n".join(scripts), text=True, check=True)


def test_the_signature_guide_has_an_example() -> None:
    assert blocks("docs/signatures.md", "toml")


@pytest.mark.parametrize(("name", "number"), TOML)
def test_signatures_in_the_documentation_keep_their_promises(
    tmp_path: Path, name: str, number: int
) -> None:
    (tmp_path / "example.toml").write_text(blocks(name, "toml")[number], encoding="utf-8")
    (signature,) = Catalog(load_folder(tmp_path))
    assert list(check_signature(signature)) == []


def test_the_signature_guide_names_every_field() -> None:
    guide = (ROOT / "docs/signatures.md").read_text(encoding="utf-8")
    for field in fields(Signature):
        if field.name != "name":
            assert f"`{field.name}`" in guide


def test_json_in_the_documentation_is_json() -> None:
    for name in DOCS:
        for block in blocks(name, "json"):
            json.loads(block)


def test_the_json_guide_names_every_field() -> None:
    guide = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    described_types = (
        Diagnosis, Ranking, Item, Reason, Extrinsic, Reranking, CheckResult, Finding, Unknown,
        Profile, DataTable, ColumnProfile, Numbers, Fault, Validated, data.DataFinding,
    )  # fmt: skip
    for described in described_types:
        for field in fields(described):
            assert f"`{field.name}`" in guide or f'"{field.name}"' in guide, field.name


@every("name", DOCS)
def test_links_to_files_lead_somewhere(name: str) -> None:
    text = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", (ROOT / name).read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text):
        assert ((ROOT / name).parent / target).exists(), target


def anchors(page: Path) -> set[str]:
    """The names of the headings of a page, as GitHub and GitLab make them."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_to_headings_lead_somewhere() -> None:
    missing = []
    for name in DOCS:
        text = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", (ROOT / name).read_text(encoding="utf-8"))
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", text):
            page = (ROOT / name).parent / path if path else ROOT / name
            if page.suffix == ".md" and anchor not in anchors(page):
                missing.append(f"{name}: {path}#{anchor}")
    assert missing == []


@pytest.mark.parametrize("script", ["docs/catalog.py", "docs/rules.py", "bench/figures.py"])
def test_the_generated_pages_are_current(script: str) -> None:
    done = subprocess.run([sys.executable, ROOT / script, "--check"], check=False)
    assert done.returncode == 0, "run `make docs`"


@pytest.mark.parametrize(
    "vocabulary",
    [taxonomy.categories(), taxonomy.dimensions(), taxonomy.root_causes(), taxonomy.phases(), taxonomy.retries(), taxonomy.faults(), taxonomy.symptoms(), taxonomy.leaves()],
    ids=["categories", "dimensions", "root causes", "phases", "retries", "faults", "symptoms", "leaves"],
)  # fmt: skip
def test_every_word_has_a_definition_and_a_source(vocabulary: taxonomy.Vocabulary) -> None:
    for term in vocabulary.values():
        assert term.title
        assert term.definition.endswith(".")
        assert term.source
        assert term.dimension in {"", *taxonomy.dimensions()}


def test_the_taxonomy_of_real_faults_has_its_leaves_and_counts() -> None:
    leaves = taxonomy.leaves().values()
    assert len(leaves) == 92
    assert sum(leaf.artifacts for leaf in leaves) == 149
    assert sum(leaf.interviews for leaf in leaves) == 226
    assert sum(len(node.leaves) for node in taxonomy.nodes().values()) == 92
    rules = {rule.id for rule in builtin_rules()}
    for leaf in leaves:
        assert set(leaf.watch) <= taxonomy.faults().keys(), leaf.name
        assert set(leaf.check) <= rules, leaf.name


def test_the_study_has_20_categories_in_4_dimensions() -> None:
    study = [t for t in taxonomy.categories().values() if t.dimension != "infrastructure"]
    assert len(study) == 20
    assert len({term.dimension for term in study}) == 4
