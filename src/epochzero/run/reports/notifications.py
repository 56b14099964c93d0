"""Tells a webhook how a job ended, in the form that its host reads.

Sources: Slack, "Sending messages using incoming webhooks", "Rich text block" and "Header block"; Mattermost, "Incoming webhooks"; Discord,
"Execute Webhook"; Microsoft Teams, "Create incoming webhooks with Workflows" (Adaptive Cards).
"""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero.run.reports.end_summary import Notice


_MOST_SLACK_HEADER = 150
_CODE = frozenset({"line", "code", "more"})
"""Facts that are shown in a monospaced font."""
_NO_ADDRESS = "a webhook is a URL such as https://hooks.example.org/x"
_DEADLINE_S = 12.0
"""Two tries; also looking up a name, or a server that answers a byte a second, takes no longer."""


def _plain(notice: Notice) -> Mapping[str, Any]:
    return notice.to_dict()


def _slack(notice: Notice) -> Mapping[str, Any]:
    """In rich text, Slack reads no markup; the header and the text of notifications need escapes."""
    (_, headline), *facts = notice.facts()
    header = headline
    while len(html.escape(header, quote=False)) > _MOST_SLACK_HEADER:
        header = header[:-1]
    title = {"type": "plain_text", "text": html.escape(header, quote=False), "emoji": False}
    parts: list[dict[str, Any]] = []
    for label, text in facts:
        parts.append({"type": "text", "text": f"{label}: ", "style": {"bold": True}})
        parts.append({"type": "text", "text": text, "style": {"code": label in _CODE}})
        parts.append({"type": "text", "text": "\n"})
    if notice.has_url:
        parts.append({"type": "link", "url": notice.link, "text": "Open"})
    section = {"type": "rich_text_section", "elements": parts}
    blocks = [{"type": "header", "text": title}, {"type": "rich_text", "elements": [section]}]
    fallback = "\n".join([headline, *(text for label, text in facts if label == "why")])
    return {"text": html.escape(fallback, quote=False), "blocks": blocks}


def _mattermost(notice: Notice) -> Mapping[str, Any]:
    return {"text": _block(notice)}


def _discord(notice: Notice) -> Mapping[str, Any]:
    return {"content": _block(notice, 2000), "allowed_mentions": {"parse": []}}


def _teams(notice: Notice) -> Mapping[str, Any]:
    """A text run, unlike a text block, has no markup."""
    (_, headline), *facts = notice.facts()
    rows = [[{"text": headline, "weight": "Bolder", "size": "Medium"}]]
    for label, text in facts:
        font = "Monospace" if label in _CODE else "Default"
        rows.append([{"text": f"{label}: ", "weight": "Bolder"}, {"text": text, "fontType": font}])
    body = [
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", **run} for run in runs]}
        for runs in rows
    ]
    card = {"type": "AdaptiveCard", "version": "1.4", "body": body}
    if notice.has_url:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": notice.link}]
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


def _block(notice: Notice, most: int = 30_000) -> str:
    """As it is: in a block of code no line of a log becomes a mention or a link. Our own link follows it."""
    end = f"\n```\n{notice.link}" if notice.has_url else "\n```"
    text = "\n".join(notice.lines()).replace("```", "'''")
    return f"```\n{text[: most - len(end) - 4]}{end}"


# What of an address, without its scheme, tells the form; the first that is found counts.
_FORMS: tuple[tuple[str, Callable[[Notice], Mapping[str, Any]]], ...] = (
    (r"hooks\.slack(-gov)?\.com/", _slack),
    (r"(\w+\.)?discord(app)?\.com/api/webhooks/", _discord),
    (r"[^/]+\.(webhook\.office|logic\.azure|powerplatform)\.com(:443)?/", _teams),
    (r"[^/]+/hooks/\w{26}", _mattermost),
)


class Webhook:
    """Where a team reads of its jobs.

    Attributes:
        host: for messages; the rest of an address is a secret.
    """

    def __init__(self, url: str, *, private: bool = True) -> None:
        """Looks at an address; https is meant where it names no scheme.

        Args:
            url: the address.
            private: whether it may lead into a private network; not where its writer is not the one in
                whose network it is asked.

        Raises:
            InputError: it is none.
        """
        if "://" not in url:
            # A word alone is a mistake more likely than a host.
            if not re.match(r"[^/]*[.:\[]|localhost(/|$)", url):
                raise InputError(_NO_ADDRESS)
            url = f"https://{url}"
        try:
            parts = urlsplit(url)
            known = parts.scheme in ("https", "http") and parts.hostname and parts.port != 0
        except ValueError:
            known = None
        if not known or parts.username or re.search(r"[\s\x00-\x1f]", url):
            raise InputError(_NO_ADDRESS)
        self.host = str(parts.hostname)
        self._url = url
        self._private = private
        address = url.partition("://")[2]
        found = (form for pattern, form in _FORMS if re.match(pattern, address))
        self._form = next(found, _plain)

    def check_address(self) -> None:
        """Looks the host up now; what is sent later is decided by its address then.

        Raises:
            InputError: the host has an address to which nothing may be sent.
        """
        from epochzero.run.reports.webhook_client import refusal

        parts = urlsplit(self._url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if problem := refusal(self.host, port, private=self._private):
            raise InputError(f"{self.host} is not allowed as a webhook: {problem}")

    def notify(self, notice: Notice, identity: str = "") -> None:
        """Sends a notice; takes 12 s at most.

        Args:
            notice: what is reported.
            identity: what the receiver tells it by from others, should it come twice; empty for none.

        Raises:
            InputError: the host could not be reached, or does not accept it.
        """
        # It takes 20 ms to import.
        from epochzero.run.reports.webhook_client import post

        answers: list[str] = []
        data = json.dumps(self._form(notice)).encode()
        # Not waited for at the end of the program: nothing interrupts looking up a name.
        sending = threading.Thread(
            target=lambda: answers.append(
                post(self._url, data, private=self._private, identity=identity)
            ),
            daemon=True,
        )
        sending.start()
        sending.join(_DEADLINE_S)
        problem = answers[0] if answers else "does not respond"
        if problem:
            raise InputError(f"{self.host} was not notified: {problem}")
