"""Spark SQL's type names, as they may be declared for columns, in one spelling each."""

from __future__ import annotations

import re

_SYNONYMS = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "CHARACTER": "CHAR",
}
_PLAIN = frozenset(
    {
        *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY"),
        *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"),
    }
)
#: What to suggest for a type that is not one.
TYPE_NAMES = tuple(sorted(_PLAIN | {"DECIMAL", "CHAR", "VARCHAR"}))

_TYPE = re.compile(r"\s*([A-Za-z_]+)\s*(?:\(\s*([0-9]{1,9})\s*(?:,\s*([0-9]{1,9})\s*)?\))?\s*")
_FIELD = re.compile(r"\s*(`(?:[^`]|``)+`|[A-Za-z_]\w*)\s*(?::|\s)\s*(.+)", re.DOTALL)
_NESTED = re.compile(r"\s*(ARRAY|MAP|STRUCT)\s*<(.*)>\s*", re.DOTALL | re.IGNORECASE)
_MAX_PRECISION = 38


def simple_type(text: str) -> str | None:
    """The usual spelling of a type that a CSV field can be cast to; None if there is none.

    >>> simple_type("numeric(10, 2)"), simple_type("integer"), simple_type("text")
    ('DECIMAL(10,2)', 'INT', None)
    """
    found = _TYPE.fullmatch(text)
    if found is None:
        return None
    name = _SYNONYMS.get(found[1].upper(), found[1].upper())
    first, second = found[2], found[3]
    if name in _PLAIN:
        return name if first is None else None
    if name in ("CHAR", "VARCHAR"):
        sized = first is not None and second is None and int(first) > 0
        return f"{name}({int(first)})" if sized else None
    if name == "DECIMAL":
        precision, scale = int(first or 10), int(second or 0)
        fits = 1 <= precision <= _MAX_PRECISION and scale <= precision
        return f"DECIMAL({precision},{scale})" if fits else None
    return None


def column_type(text: str, depth: int = 0) -> str | None:
    """The usual spelling of any column type, nested ones too; None if there is none.

    >>> column_type("struct<a: integer, b array<string>>")
    'STRUCT<a: INT, b: ARRAY<STRING>>'
    """
    nested = _NESTED.fullmatch(text)
    if nested is None:
        return simple_type(text)
    if depth > 16:
        return None
    kind, parts = nested[1].upper(), _split(nested[2])
    if kind == "STRUCT":
        fields = [_FIELD.fullmatch(part) for part in parts]
        inner = [f and column_type(f[2], depth + 1) for f in fields]
        named = [f"{f[1]}: {i}" for f, i in zip(fields, inner, strict=True) if f and i]
        return f"STRUCT<{', '.join(named)}>" if named and len(named) == len(parts) else None
    types = [column_type(part, depth + 1) for part in parts]
    if len(types) != (1 if kind == "ARRAY" else 2) or None in types:
        return None
    return f"{kind}<{', '.join(t for t in types if t)}>"


def _split(text: str) -> list[str]:
    """``text`` cut at the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
