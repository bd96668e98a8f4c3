"""The content hash: what a bag of rows is, whatever their order, files or compression.

Each row is hashed twice, the hashes are summed in limbs that can't overflow, and the sums are
joined modulo 2^64 in Python. Spark's ``xxhash64`` skips NULLs, flattens arrays and takes -0.0 for
0.0, so every value goes in together with what tells such cases apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: Set before the second hash of a row, to make it independent of the first.
_SALT = "x'9e3779b97f4a7c15'"
#: Sums of limbs of this many bits stay below 2^63 for 2^39 rows.
_BITS = 24
_MASK = (1 << _BITS) - 1

_PLAIN = frozenset(
    {"boolean", "byte", "short", "integer", "long", "binary", "string"}
    | {"date", "timestamp", "timestamp_ntz"}
)


def row_hashes(schema: Mapping[str, Any]) -> tuple[str, str] | None:
    """Two SQL expressions that hash a row of this schema (``df.schema.jsonValue()``).

    None where a column's type can't be hashed (maps have no order, variants no stable bytes).
    """
    parts: list[str] = []
    for field in schema["fields"]:
        inputs = _inputs(quote(field["name"]), field["type"], 0)
        if inputs is None:
            return None
        parts += inputs
    joined = ", ".join(parts) or "0"
    return f"xxhash64({joined})", f"xxhash64({_SALT}, {joined})"


def sums(hashes: tuple[str, str], weight: str | None = None) -> dict[str, str]:
    """The aggregates over two hashes: name -> SQL; of a change, ``weight`` is its rows' weight.

    Each hash is named three times; Spark computes it once per row.
    """
    times = f"{weight} * " if weight else ""
    out = {"n": f"sum({weight})" if weight else "count(1)"}
    for which, column in enumerate(hashes):
        out[f"h{which}_0"] = f"sum({times}({column} & {_MASK}))"
        out[f"h{which}_1"] = f"sum({times}(shiftright({column}, {_BITS}) & {_MASK}))"
        out[f"h{which}_2"] = f"sum({times}shiftrightunsigned({column}, {2 * _BITS}))"
    return out


def combine(metrics: Mapping[str, int | None]) -> tuple[int, int, int]:
    """Row count and the two sums modulo 2^64, from what ``sums`` gave.

    >>> limbs = {"h0_0": 2**63, "h0_1": 1, "h0_2": None, "h1_0": 0, "h1_1": 0, "h1_2": 0}
    >>> combine({"n": 2**40, **limbs})
    (1099511627776, 9223372036871553024, 0)
    """
    totals = []
    for which in range(2):
        total = 0
        for limb in range(3):
            total += int(metrics[f"h{which}_{limb}"] or 0) << (_BITS * limb)
        totals.append(total % (1 << 64))
    return int(metrics["n"] or 0), totals[0], totals[1]


def data_id(columns: str, count: int, first: int, second: int) -> str:
    """The data id of a table that sqb wrote: its columns and the hash of its rows."""
    return f"t:{columns[:32]}:{count}:{first:016x}:{second:016x}"


def after(before: str, change: tuple[int, int, int]) -> str | None:
    """The data id of a table after a change of its rows; None if it had none of this form.

    >>> after("t:ab:3:0000000000000001:ffffffffffffffff", (-1, -1, 2))
    't:ab:2:0000000000000000:0000000000000001'
    """
    kind, *parts = before.split(":")
    if kind != "t" or len(parts) != 4:
        return None
    columns, count, first, second = parts
    sums = (int(first, 16) + change[1], int(second, 16) + change[2])
    return data_id(columns, int(count) + change[0], *(total % (1 << 64) for total in sums))


def unused(columns: Iterable[str]) -> str:
    """A name that no column has."""
    return "_" * (1 + max(map(len, columns)))


def quote(name: str) -> str:
    """An identifier as Spark SQL reads it.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _inputs(value: str, kind: Any, depth: int) -> list[str] | None:
    """What goes into the hash for one value: never ambiguous, never skipped."""
    null = f"isnull({value})"
    if isinstance(kind, str):
        if kind in ("float", "double"):
            return [null, value, f"if({value} = 0, cast({value} as string), null)"]
        if kind in _PLAIN or kind.startswith("decimal"):
            return [null, value]
        if kind.startswith(("string collate", "char", "varchar")):
            return [null, f"collate({value}, 'UTF8_BINARY')"]
        return None
    if kind["type"] == "struct":
        out = [null]
        for field in kind["fields"]:
            inner = _inputs(f"{value}.{quote(field['name'])}", field["type"], depth)
            if inner is None:
                return None
            out += inner
        return out
    if kind["type"] == "array":
        element = f"x{depth}"
        inner = _inputs(element, kind["elementType"], depth + 1)
        if inner is None:
            return None
        hashed = f"transform({value}, {element} -> xxhash64({', '.join(inner)}))"
        return [null, f"size({value})", hashed]
    return None
