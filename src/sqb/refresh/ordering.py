"""ORDER BY with LIMIT at the end of a query: the first rows of its result.

Names in ORDER BY mean results first. What is not a result, nor computed from results alone, is not
in the table, so its rows could not be put in order again.
"""

from __future__ import annotations

import msgspec

from sqb.refresh.block import Plan
from sqb.refresh.ir import Expr, Order, Top, column, output
from sqb.refresh.scope import expression
from sqb.sql.fragments import ColumnUse, Fragment, Unsupported
from sqb.sql.query import Body, FirstRows, Select
from sqb.sql.tokens import compared, split


def first_rows(sql: str, plan: Plan, body: Body, first: FirstRows) -> Plan:
    """The plan of a query whose result is the first rows of another plan."""
    order = tuple(
        Order(_ordered_by(sql, plan, body, one.expr), one.descending, one.nulls_first)
        for one in first.order
    )
    return msgspec.structs.replace(plan, root=Top(plan.root, order, first.count))


def _ordered_by(sql: str, plan: Plan, body: Body, piece: Fragment) -> Expr:
    cols = output(plan.root)
    if piece.literal is not None:
        if not 0 < piece.literal <= len(cols):
            raise Unsupported(f"ORDER BY {piece.literal}", "LIMIT_ORDER")
        return column(cols[piece.literal - 1])
    names = [name.lower() for name in plan.names]
    named = [use for use in piece.columns if use.parts[0].lower() in names]
    if piece.queries:
        raise Unsupported("a sub-query in ORDER BY", "LIMIT_ORDER")
    if len(named) == len(piece.columns) and not piece.calls:

        def result(use: ColumnUse) -> tuple[Expr, int]:
            name = use.parts[0].lower()
            if len(use.parts) > 1 or names.count(name) != 1:
                raise Unsupported(f"ORDER BY {'.'.join(use.parts)}", "LIMIT_ORDER")
            return column(cols[names.index(name)]), 1

        return expression(sql, piece, result)
    if not named and isinstance(body, Select):
        wanted = _words(sql, piece)
        for col, item in zip(cols, body.items, strict=False):
            if item.expr is None or item.aliases:  # from here on places are others
                break
            if _words(sql, item.expr) == wanted:
                return column(col)
    why = f"ORDER BY {sql[piece.start : piece.end]}, which is not a result"
    raise Unsupported(why, "LIMIT_ORDER")


def _words(sql: str, piece: Fragment) -> list[str]:
    """An expression without white space and case, but for what is quoted."""
    return [compared(raw) for raw in split(sql[piece.start : piece.end]).raws]
