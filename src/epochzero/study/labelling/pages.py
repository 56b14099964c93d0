"""The page of the labelling screen: one record, one question, forms that work without scripts."""

from __future__ import annotations

from html import escape

from epochzero.study.labelling.scheme import Choice, Scheme
from epochzero.study.labelling.session import View

LONGEST_SHOWN = 400_000
"""Characters of a text in the page; the whole text has an address of its own."""


def page(view: View, scheme: Scheme, annotator: str, message: str = "") -> str:
    """The page for what is asked now.

    Args:
        view: what to show.
        scheme: the questions.
        annotator: who labels.
        message: above all, maybe empty.

    Raises:
        InputError: a log cannot be read any more.
    """
    name = f"{view.item.id} {view.item.title}" if view.item else "All are labelled"
    told = f'<p class="message" role="alert">{escape(message)}</p>' if message else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(name)}</title>\n"
        '<link rel="stylesheet" href="label.css">\n<script src="label.js" defer></script>\n'
        f"</head>\n<body>\n{_header(view, scheme, annotator)}\n<main>\n{told}"
        f"{_record(view, scheme)}\n{_question(view, scheme)}\n</main>\n</body>\n</html>\n"
    )


def _header(view: View, scheme: Scheme, annotator: str) -> str:
    skipped = f", {view.skipped:,} skipped" if view.skipped else ""
    return (
        f"<header><h1>{escape(scheme.title)}</h1>"
        f'<label>{view.labelled:,} of {view.total:,} labelled{skipped} <progress max="{view.total}" '
        f'value="{view.labelled}"></progress></label><span>{escape(annotator)}</span></header>'
    )


def _record(view: View, scheme: Scheme) -> str:
    if view.item is None:
        return '<section class="record"><h2>All are labelled</h2></section>'
    text = view.item.text
    shown, left = text, ""
    if len(text) > LONGEST_SHOWN:
        at_end = scheme.begin == "end"
        shown = text[-LONGEST_SHOWN:] if at_end else text[:LONGEST_SHOWN]
        left = (
            f'<p class="soft">The {"last" if at_end else "first"} {LONGEST_SHOWN:,} of {len(text):,} '
            'characters. <a href="text" target="_blank">All of it</a></p>'
        )
    return (
        f'<section class="record" aria-label="Record"><h2><code>{escape(view.item.id)}</code> '
        f'{escape(view.item.title)}</h2>{left}<pre tabindex="0" data-begin="{scheme.begin}" '
        f'aria-label="Text of the record">{escape(shown)}</pre></section>'
    )


def _question(view: View, scheme: Scheme) -> str:
    undo = (
        '<form method="post" action="undo"><button data-key="u"><kbd>u</kbd> Undo</button></form>'
    )
    if view.item is None or view.question is None:
        return f'<section class="question"><div class="more">{undo}</div></section>'
    item = f'<input type="hidden" name="item" value="{escape(view.item.id)}">'
    question = f'<input type="hidden" name="question" value="{escape(view.question.name)}">'
    answered = "".join(f"<li>{escape(title)}</li>" for title in view.answers.values())
    choices = "\n".join(_choice(key, one, view) for key, one in view.choices.items())
    return (
        '<section class="question" aria-label="Question">'
        f"{f'<ul class=answered aria-label=Answered>{answered}</ul>' if answered else ''}"
        f"<h2>{escape(view.question.title)}</h2>"
        f'<p class="soft">{escape(scheme.rule)}</p>'
        f'<form method="post" action="answer" class="choices">{item}{question}{choices}</form>'
        f'<div class="more">{undo}<form method="post" action="skip">{item}<button data-key="s">'
        "<kbd>s</kbd> Skip</button></form>"
        '<button type="button" data-key="?" hidden><kbd>?</kbd> Definitions</button></div>'
        f'<form method="post" action="note" class="note">{item}<label for="note">Note <kbd>n</kbd></label>'
        f'<input id="note" name="note" maxlength="2000" autocomplete="off" value="{escape(view.note)}">'
        "<button>Keep</button></form>"
        f'<p class="soft">Source: {escape(scheme.source)}</p></section>'
    )


def _choice(key: str, choice: Choice, view: View) -> str:
    names = ", ".join(view.said.get(choice.name, ()))
    said = f' <span class="said">{escape(names)}</span>' if names else ""
    example = f" <em>Such as: {escape(choice.example)}</em>" if choice.example else ""
    return (
        f'<button name="answer" value="{escape(choice.name)}" data-key="{key}"><kbd>{key}</kbd> '
        f"<strong>{escape(choice.title)}</strong>{said}"
        f"<small>{escape(choice.definition)}{example}</small></button>"
    )
