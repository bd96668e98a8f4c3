"""AVG from TRY_SUM and COUNT of the same values, to the last digit as Spark computes it.

Of whole numbers Spark adds up doubles: as long as no value is beyond 2^52 and the sum is below 2^53
there is an order of the rows in which every sum on the way is exact. Of decimals it divides once
and rounds half up; the quotient is taken apart here, so that no digit is rounded twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from sqb.refresh.ir import Aggregate, Call, Col, Expr, joined
from sqb.refresh.netting import Forbidden
from sqb.refresh.script import WEIGHT

AVERAGES = frozenset({"avg", "mean"})
#: The sum that an average follows from: NULL where it overflows, as an average does not.
TOTAL = "try_sum"
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
#: Digits behind the point of a quotient of two numbers of 20 digits before it.
_DIGITS = 18
#: Whole numbers up to this are doubles; a sum of them is one if it is below the second.
_LARGEST, _EXACT = 1 << 52, 1 << 53


class Average(msgspec.Struct, frozen=True):
    """The columns that an average is computed from; ``large`` counts values beyond 2^52."""

    total: Col
    count: Col
    large: Col | None


def too_large(value: Expr) -> Expr:
    """What is counted where a value is beyond 2^52."""
    test = f" AS DOUBLE) NOT BETWEEN -{_LARGEST} AND {_LARGEST} THEN 1 END"
    return Expr(joined(("CASE WHEN CAST((", *value.parts, f"){test}")))


def averages(node: Aggregate) -> dict[Col, Average]:
    """The averages of groups beside which their sums and counts stand."""
    beside = {(c.function, c.arguments): col for col, c in node.calls if not c.filtered}
    found: dict[Col, Average] = {}
    for col, call in node.calls:
        total, count = (beside.get((name, call.arguments)) for name in (TOTAL, "count"))
        if _plain(call) and total is not None and count is not None:
            large = beside.get(("count", (too_large(call.arguments[0]),)))
            found[col] = Average(total, count, large)
    return found


def not_averaged(node: Aggregate, col: Col, types: Mapping[Col, str]) -> tuple[str, str] | None:
    """Why an average can't be computed from what stands beside it: a code and a sentence."""
    found = averages(node).get(col)
    if found is None:
        return "AGG_NOT_MERGEABLE", "avg without the sum and the count of the same values"
    total, made = types.get(found.total, ""), types.get(col, "")
    if total == "bigint" and made == "double":
        if found.large is None:
            return "AGG_NOT_MERGEABLE", "avg adds up whole numbers as doubles"
        return None
    digits = _DECIMAL.fullmatch(made)
    if digits is None or not total.startswith("decimal"):
        return "FLOAT_SUM", f"the type of avg is {made or 'not known'}"
    scale = int(digits[2])
    if scale >= _DIGITS or int(digits[1]) - scale > _DIGITS:
        return "AGG_NOT_MERGEABLE", f"avg of so many digits as {made}"
    return None


def average(total: str, count: str, kind: str) -> str:
    """The average as SQL, from the sum and the count; ``kind`` is its type.

    >>> average("s", "n", "double")
    'CASE WHEN n = 0 THEN NULL ELSE CAST(s AS DOUBLE) / CAST(n AS DOUBLE) END'
    """
    digits = _DECIMAL.fullmatch(kind)
    if digits is None:
        value = f"CAST({total} AS DOUBLE) / CAST({count} AS DOUBLE)"
    else:
        scale = int(digits[2])
        number = f"CAST({count} AS DECIMAL(20,0))"
        # what is left of a division is less than the count, so its digits are known
        rest = f"CAST(({total}) % {number} AS DECIMAL({20 + scale - 4},{scale - 4}))"
        value = (
            f"CAST(({total}) div {number} AS {kind})"
            f" + CAST({rest} / {number} AS DECIMAL({scale + 1},{scale}))"
        )
    return f"CASE WHEN {count} = 0 THEN NULL ELSE {value} END"


def forbidden(
    found: Average, kind: str, named: Mapping[Col, str], average_name: str
) -> list[Forbidden]:
    """The rows of a change whose average would not be Spark's."""
    total, count = named[found.total], named[found.count]
    digits = _DECIMAL.fullmatch(kind)
    if digits is None:
        large = f" OR {named[found.large]} > 0" if found.large is not None else ""
        beyond = f"{total} NOT BETWEEN -{_EXACT - 1} AND {_EXACT - 1}{large}"
        why = "a sum of whole numbers that is no double"
    else:
        beyond = f"{count} >= {10 ** (_DIGITS - int(digits[2]))}"
        why = "a group of so many rows that its average has too many digits"
    beyond += f" OR ({count} > 0 AND {average_name} IS NULL)"
    overflown = f"({count} > 0 AND {total} IS NULL)"
    rows = f"{overflown} OR ({WEIGHT} > 0 AND ({beyond}))"
    return [Forbidden(rows, "AGG_NOT_MERGEABLE", why)]


def _plain(call: Call) -> bool:
    return call.function in AVERAGES and not call.filtered and len(call.arguments) == 1
