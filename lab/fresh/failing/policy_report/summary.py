"""A page of Markdown about a finished run."""

from datetime import datetime, timezone

HEAD = "| episode | return | length |\n|---|---|---|"


def row(record):
    return f"| {record['episode']} | {record['return']:.1f} | {record['length']} |"


def page(title, records, settings):
    best = max(records, key=lambda record: record["return"])
    lines = [f"# {title}", "", f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC", ""]
    lines.append(f"Settings: {", ".join(f"{key}={value}" for key, value in settings.items())}")
    lines.append(f"Best: {best['return']:.1f} in episode {best['episode']}")
    lines += ["", HEAD, *map(row, records[-10:])]
    return "\n".join(lines) + "\n"
