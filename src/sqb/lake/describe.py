"""Descriptions as comments: of a table or view in its properties, of columns in its schema.

``sqb.described`` keeps what sqb wrote, so that it can be compared without reading a schema, and
taken away again when the project no longer says it. What others wrote stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

DESCRIBED = "sqb.described"
COMMENT = "comment"


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the project says about a relation and its columns."""

    comment: str = ""
    columns: dict[str, str] = {}


def encode(description: Description) -> str:
    """The text of the property; empty if nothing is described."""
    if description == Description():
        return ""
    ordered = dict(sorted(description.columns.items()))
    return msgspec.json.encode(Description(description.comment, ordered)).decode()


def decode(text: str | None) -> Description:
    """The description in a property; one that can't be read describes nothing."""
    try:
        return msgspec.json.decode(text, type=Description) if text else Description()
    except msgspec.MsgspecError:
        return Description()


def properties(text: str) -> dict[str, str]:
    """The properties that carry a description."""
    if not text:
        return {}
    comment = decode(text).comment
    return {DESCRIBED: text} | ({COMMENT: comment} if comment else {})


def with_docs(
    fields: Sequence[Mapping[str, Any]], before: Description, wanted: Description
) -> list[dict[str, Any]]:
    """The fields of a schema with the wanted comments, and without those written before."""
    old = {name.lower(): text for name, text in before.columns.items()}
    new = {name.lower(): text for name, text in wanted.columns.items()}
    out: list[dict[str, Any]] = []
    for field in fields:
        name, changed = field["name"].lower(), dict(field)
        if name in new:
            changed["doc"] = new[name]
        elif name in old and changed.get("doc") == old[name]:
            del changed["doc"]
        out.append(changed)
    return out


def described_table(
    document: dict[str, Any], before: str | None, wanted: str | None
) -> dict[str, Any]:
    """A table's metadata with the comments of its columns; another comment is another schema."""
    current = document["current-schema-id"]
    schema = next(s for s in document["schemas"] if s["schema-id"] == current)
    fields = with_docs(schema["fields"], decode(before), decode(wanted))
    if fields == schema["fields"]:
        return document
    known = next((s["schema-id"] for s in document["schemas"] if s["fields"] == fields), None)
    if known is not None:
        return {**document, "current-schema-id": known}
    fresh = max(s["schema-id"] for s in document["schemas"]) + 1
    added = {**schema, "schema-id": fresh, "fields": fields}
    return {**document, "schemas": [*document["schemas"], added], "current-schema-id": fresh}
