"""``epochzero explain``: what a word of the taxonomy, a signature or a rule means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from epochzero import taxonomy
from epochzero.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epochzero.check.rules import Rule, Unread


@click.command(name="explain")
@click.argument("word", required=False)
def command(word: str | None) -> None:
    """Explain WORD: a category, dimension, root cause, phase, retry advice, training fault or symptom, leaf
    of the taxonomy of real faults, signature or check rule.

    Without WORD, list all of them.

    \b
    epochzero explain tensor_mismatch
    epochzero explain pytorch/cuda-out-of-memory
    epochzero explain module-missing
    epochzero explain zero_grad_missing
    epochzero explain missing_api_call
    """
    if word is None:
        _list()
    elif "/" in word:
        _signature(word)
    else:
        _term(word)


def _list() -> None:
    for dimension in taxonomy.dimensions().values():
        click.secho(dimension.title, bold=True)
        for category in taxonomy.categories().values():
            if category.dimension == dimension.name:
                click.echo(f"  {category.name:<24}{category.definition}")
    for title, vocabulary in (
        ("Root causes", taxonomy.root_causes()),
        ("Phases", taxonomy.phases()),
        ("Retry", taxonomy.retries()),
        ("Faults of a training", taxonomy.faults()),
        ("Symptoms of a training", taxonomy.symptoms()),
    ):
        click.secho(title, bold=True)
        for term in vocabulary.values():
            click.echo(f"  {term.name:<24}{term.definition}")
    for node in taxonomy.nodes().values():
        click.secho(f"Leaves of the taxonomy of real faults: {node.title}", bold=True)
        for leaf in node.leaves:
            click.echo(f"  {leaf.name:<44}{leaf.definition}")


def _term(word: str) -> None:
    from epochzero.check.rules import builtin, others

    rules = {rule.id: rule for rule in builtin()}
    if word in rules:
        _rule(rules[word])
        _example(rules[word])
        return
    if word in others():
        _rule(others()[word])
        return
    try:
        term = taxonomy.find(word)
    except KeyError:
        near = taxonomy.nearest(word, [*rules, *others()])
        hint = f"; did you mean {near}?" if near else "; `epochzero explain` lists all terms"
        raise InputError(f"no category, cause, phase, fault or rule {word!r}{hint}") from None
    click.secho(f"{term.title} ({term.name})", bold=True)
    click.echo(term.definition)
    if term.dimension:
        click.echo(f"Dimension: {taxonomy.dimensions()[term.dimension].title}")
    if term.example:
        click.echo(f"Example:   {term.example}")
    click.echo(f"Source:    {term.source}")
    if term.name in taxonomy.categories():
        _signatures_of(term.name)
    if isinstance(term, taxonomy.Leaf):
        _leaf(term)
    for leaf in taxonomy.leaves().values():
        if term.name in leaf.watch:
            click.echo(f"Leaf:      {leaf.name}")


def _leaf(leaf: taxonomy.Leaf) -> None:
    node = taxonomy.nodes()[leaf.node]
    finders = [f"epochzero {command}" for command in leaf.commands]
    if leaf.check:
        finders.append(f"epochzero check, by {_listed(leaf.check)}")
    if leaf.watch:
        finders.append(f"epochzero run --watch, as {_listed(leaf.watch)}")
    click.echo(
        f"Counted:   in code and questions {leaf.artifacts}, in interviews {leaf.interviews}"
    )
    click.echo(f"Survey:    {node.survey}\xa0% of developers had encountered such a fault")
    for finder in finders or ["not detected by any tool"]:
        click.echo(f"Found by:  {finder}")
    inject = f"epochzero model mutate train.py --leaf {leaf.name} -o mutants/"
    click.echo(
        f"Inject:    {f'not possible: {leaf.not_injected}' if leaf.not_injected else inject}"
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _signatures_of(category: str) -> None:
    from epochzero.diagnose import builtin

    known = [s for s in builtin() if s.category == category and s.role == "cause"]
    click.echo(f"\n{len(known)} signatures:")
    for signature in sorted(known, key=lambda s: s.name):
        click.echo(f"  {signature.name:<44}{signature.title}")


def _signature(name: str) -> None:
    from epochzero.diagnose.catalog import BUILTIN, builtin, load_file

    if name not in {signature.name for signature in builtin()}:
        raise InputError(f"no signature {name!r}; `epochzero signatures list` shows all")
    signature = load_file(BUILTIN / f"{name}.toml", BUILTIN)
    click.secho(f"{signature.title} ({signature.name})", bold=True)
    click.echo(signature.meaning)
    for label, text in (
        ("Role", signature.role),
        ("Category", signature.category),
        ("Root cause", signature.root_cause),
        ("Phase", signature.phase),
        ("Retry", f"{signature.retry}. {signature.retry_reason}" if signature.retry else ""),
    ):
        if text:
            click.echo(f"{label + ':':<12}{text}")
    for number, fix in enumerate(signature.fixes, 1):
        click.echo(f"Fix {number}:      {fix}")
    click.echo(f"Example:    {signature.examples[0].log}")


def _rule(rule: Rule | Unread) -> None:
    click.secho(f"{rule.title} ({rule.id})", bold=True)
    click.echo(rule.why)
    for label, text in (
        ("Category", rule.category),
        ("Fix", rule.fix),
        ("Source", rule.source),
    ):
        click.echo(f"{label + ':':<12}{text}")


def _example(rule: Rule) -> None:
    case = next(case for case in rule.cases if case.is_caught)
    click.echo(
        f"Example:    {case.path}, line {case.line}" if case.line else f"Example:    {case.path}"
    )
    for number, line in enumerate(case.files.get(case.path, "").splitlines(), 1):
        mark = ">" if number == case.line else " "
        click.echo(f"  {mark} {line}")
