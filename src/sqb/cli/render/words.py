"""The words for reasons and states, and the few ways text is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqb.planning.plan import PlannedNode

#: reason -> the heading of its group, in the order in which groups are shown.
TITLES: dict[str, str] = {
    "first_run": "First run",
    "full_refresh": "Full refresh",
    "forced": "Forced",
    "query_changed": "Query changed",
    "config_changed": "Config changed",
    "schema_changed": "Schema changed",
    "function_changed": "Function changed",
    "seed_changed": "Seed changed",
    "identity_changed": "Identity changed",
    "source_changed": "Source changed",
    "source_unknown": "Source unknown",
    "constant_changed": "Constant changed",
    "source_freshness_error": "Source too old",
    "relation_missing": "Relation missing",
    "relation_changed": "Relation changed",
    "upstream_changed": "Upstream changed",
    "upstream_unchanged": "Upstream unchanged",
    "run_despite_unchanged": "Run despite unchanged",
    "no_change": "Normal",
}

#: What a heading alone does not tell.
NOTES: dict[str, str] = {
    "relation_missing": "built before, but gone from the lake",
    "relation_changed": "written or altered by someone else",
    "constant_changed": "current_date() moved",
}


#: The heading of nodes whose `alias` or `schema` was edited.
MOVED = "Moved, the relation at the old place stays until you drop it"


def moved_from(node: PlannedNode) -> str | None:
    """Where a node's relation stood before its alias or schema was edited."""
    detail = node.detail
    return detail["name"] if detail is not None and detail["kind"] == "moved" else None


def title(reason: str) -> str:
    """The heading of a reason."""
    return TITLES.get(reason) or words(reason).capitalize()


def words(reason: str) -> str:
    """A reason inside a sentence.

    >>> words("query_changed")
    'query changed'
    """
    return reason.replace("_", " ")


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "row"), count(1204, "row")
    ('1 row', '1,204 rows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: wide signs take two, accents none.

    >>> columns("order"), columns("注文"), columns("cafe\\u0301")
    (5, 4, 4)
    """
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )


def fit(text: str, width: int, *, right: bool = False) -> str:
    """A text in exactly ``width`` columns: padded, or cut with an ellipsis.

    >>> fit("orders", 8), fit("orders", 4), fit("7", 3, right=True)
    ('orders  ', 'ord…', '  7')
    """
    taken = columns(text)
    if taken > width:
        while text and taken > width - 1:
            taken -= columns(text[-1])
            text = text[:-1]
        text, taken = text + "…", taken + 1
    blank = " " * (width - taken)
    return blank + text if right else text + blank


def size(number: int) -> str:
    """
    >>> size(0), size(999), size(123_456), size(5_000_000_000)
    ('0 B', '999 B', '123.5 kB', '5.0 GB')
    """
    value, unit = float(number), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{number} B" if unit == "B" else f"{value:.1f} {unit}"


def some(names: Sequence[str], width: int) -> str:
    """As many names as fit into ``width`` columns, then how many are left.

    >>> some(["orders", "customers", "payments"], 20)
    'orders and 2 more'
    """
    text = ", ".join(names)
    if len(text) <= width:
        return text
    for shown in range(len(names) - 1, 0, -1):
        text = f"{', '.join(names[:shown])} and {len(names) - shown} more"
        if len(text) <= width or shown == 1:
            return text
    return text


def duration(seconds: float) -> str:
    """
    >>> duration(0.21), duration(12.34), duration(135)
    ('0.21s', '12.3s', '2m 15s')
    """
    if seconds < 10:
        return f"{seconds:.2f}s"
    if seconds < 100:
        return f"{seconds:.1f}s"
    return f"{int(seconds // 60)}m {int(seconds % 60):02d}s"


def wrapped(text: str, width: int, indent: str) -> list[str]:
    """A sentence over as many lines as it needs; the first is not indented."""
    import textwrap

    return textwrap.wrap(
        text, max(width, 30), subsequent_indent=indent, break_long_words=False
    ) or [""]
