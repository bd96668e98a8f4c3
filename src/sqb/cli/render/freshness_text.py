"""The freshness of sources as text: one line each, and a last line with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqb.cli.output import Output
from sqb.cli.render.words import count, duration, wrapped
from sqb.planning.freshness import age_text

if TYPE_CHECKING:
    from sqb.execution.source_freshness import SourceFreshness

_COLOURS = {
    "observed": "green",
    "unchanged": "green",
    "tolerated": "cyan",
    "changed": "yellow",
    "unknown": "red",
    "error": "red",
}
_LONGEST_NAME = 40


def show_freshness(found: Sequence[SourceFreshness], out: Output, seconds: float) -> None:
    """Print the sources."""
    width = min(max((len(source.name) for source in found), default=0), _LONGEST_NAME)
    statuses = max((len(source.status) for source in found), default=0)
    values = max((len(_value(source)) for source in found), default=0)
    for source in found:
        start = f"{source.name:<{width}}  "
        status = out.style(f"{source.status:<{statuses}}", fg=_COLOURS[source.status])
        tail = f"{_value(source):<{values}}  {_age(source)}".rstrip()
        if source.current is None:
            indent = " " * (width + statuses + 4)
            first, *rest = wrapped(source.message, out.width - len(indent), "")
            out.important(f"{start}{status}  {first}")
            for line in rest:
                out.important(indent + line)
        else:
            out.important(f"{start}{status}  {tail}")
    counts: Counter[str] = Counter(source.status for source in found)
    told = ", ".join(
        out.style(f"{counts[status]} {status}", fg=colour)
        for status, colour in _COLOURS.items()
        if counts[status]
    )
    took = out.style(f"({duration(seconds)})", dim=True)
    out.line(f"{count(len(found), 'source')}: {told} {took}" if found else f"no sources {took}")


def _value(source: SourceFreshness) -> str:
    """The value, as far as people can make use of it."""
    value = source.current
    if value is None:
        return ""
    if source.value_kind == "timestamp":
        return f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M:%S} UTC"
    if source.value_kind == "files":
        return f"files {value.rpartition(':')[2][:8]}"
    if source.value_kind == "snapshot":
        _, colon, snapshot = value.rpartition(":")
        return f"snapshot {snapshot if colon and not value.startswith('e:') else value[2:10]}"
    return value if len(value) <= _LONGEST_NAME else value[: _LONGEST_NAME - 1] + "…"


def _age(source: SourceFreshness) -> str:
    age = source.age
    if age is None or age.seconds is None:
        return ""
    text = f"{age_text(age.seconds)} old"
    if age.limit is not None:
        which = "error_after" if age.status == "error" else "warn_after"
        text += f", more than {which} {age_text(age.limit)}"
    return text
