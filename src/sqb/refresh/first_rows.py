"""The change of a table that holds the first rows of an order."""

from __future__ import annotations

from sqb.refresh.ir import Node, Top, output
from sqb.refresh.netting import (
    Forbidden,
    Signed,
    Target,
    grouped_by,
    kept_columns,
    listed,
    netted,
    not_there,
)
from sqb.refresh.restrict import restrict
from sqb.refresh.script import COPIES, WEIGHT, Script, keys_of, ordered
from sqb.refresh.strategies import TopMerge

#: What a row of an order is told by where its copies are not: no choice is right, the rows that
#: follow are not known, the target does not hold what the change takes away.
_TIED, _SHORT, _BROKEN = -1, -2, -3


def first_rows_change(
    option: TopMerge, script: Script, root: Node, standing: str, target: Target
) -> Signed:
    """The first rows of those that stand and of the change, if it reaches them.

    All rows before the last one of a full table stand in it. Those that tie with the last one
    need not; where they may differ from it, all of them are looked for in the sources.
    """
    if not isinstance(root, Top):
        raise TypeError("only the first rows of an order are merged with a change")
    cols, count = output(root), root.count
    reached = _reached(option, script, root, standing, target)
    parts, reads = [f"SELECT * FROM {reached}"], [reached]
    if option.looked:
        tied = _tied(script, root, reached)
        parts[0] += " WHERE sqb_e IS NULL OR sqb_r < sqb_e OR sqb_s = 1"
        last = f"(SELECT MAX(sqb_e) FROM {reached})"
        parts.append(
            f"SELECT {listed(cols)}, 1 AS sqb_w, 0 AS sqb_s, {last} AS sqb_r, {last} AS sqb_e"
            f" FROM {tied}"
        )
        reads.append(tied)
    # the standing ones among the rows that tie are counted with all of them
    weight = "CASE WHEN sqb_r = sqb_e AND sqb_s = 1 THEN 0 ELSE sqb_w END"
    known = (
        f"SELECT {kept_columns(cols, target)}, sqb_r, sqb_e, SUM(sqb_s) AS sqb_s,"
        f" SUM({weight if option.looked else 'sqb_w'}) AS sqb_w"
        f" FROM ({' UNION ALL '.join(parts)}) AS sqb_rows"
        f" GROUP BY {grouped_by(cols, target)}, sqb_r, sqb_e"
    )
    there = "GREATEST(sqb_w, 0)"
    counted = (
        f"SELECT *, SUM({there}) OVER (ORDER BY sqb_r) AS sqb_upto,"
        f" SUM({there}) OVER (PARTITION BY sqb_r) AS sqb_here,"
        " SUM(CASE WHEN sqb_w > 0 THEN 1 ELSE 0 END) OVER (PARTITION BY sqb_r) AS sqb_kinds,"
        f" SUM({there}) OVER () AS sqb_total FROM ({known}) AS sqb_known"
    )
    left = f"{count} - (sqb_upto - sqb_here)"
    shall = (
        f"CASE WHEN sqb_e IS NOT NULL AND sqb_total < {count} THEN {_SHORT}"
        f" WHEN sqb_w < 0 AND (sqb_e IS NULL OR sqb_r < sqb_e) THEN {_BROKEN}"
        f" WHEN sqb_upto <= {count} THEN {there} WHEN {left} <= 0 OR sqb_w <= 0 THEN 0"
        f" WHEN sqb_kinds = 1 THEN {left} ELSE {_TIED} END"
    )
    change = script.add(
        "change",
        f"SELECT {listed(cols)}, {COPIES} - sqb_s AS {WEIGHT}, {COPIES}"
        f" FROM (SELECT *, {shall} AS {COPIES} FROM ({counted}) AS sqb_counted) AS sqb_shall"
        f" WHERE {COPIES} <> sqb_s",
        reads,
    )
    tie = "rows that ORDER BY does not tell apart stand on both sides of the limit"
    short = "rows within the limit went, and those that follow are not in the table"
    return Signed(
        change,
        (
            Forbidden(f"{COPIES} = {_TIED}", "LIMIT_ORDER", tie),
            Forbidden(f"{COPIES} = {_SHORT}", "LIMIT_ORDER", short),
            *not_there(f"{COPIES} = {_BROKEN}"),
        ),
    )


def _reached(option: TopMerge, script: Script, root: Top, standing: str, target: Target) -> str:
    """The rows that stand and those of the change up to the last one of a full table.

    None where no row of the change is among them. ``sqb_r`` is a row's place in the order,
    ``sqb_e`` that of the last one, NULL where the table is not full.
    """
    cols = output(root)
    names = listed(cols)
    net = netted(script, cols, [(option.change, WEIGHT)], target)
    both = (
        f"SELECT {names}, 1 AS sqb_w, 1 AS sqb_s FROM {standing}"
        f" UNION ALL SELECT {names}, {WEIGHT} AS sqb_w, 0 AS sqb_s FROM {net}"
    )
    placed = (
        f"SELECT *, CASE WHEN SUM(sqb_s) OVER () >= {root.count}"
        " THEN MAX(CASE WHEN sqb_s = 1 THEN sqb_r END) OVER () END AS sqb_e"
        f" FROM (SELECT *, DENSE_RANK() OVER (ORDER BY {ordered(root.order)}) AS sqb_r"
        f" FROM ({both}) AS sqb_both) AS sqb_ranked"
    )
    columns = f"{names}, sqb_w, sqb_s, sqb_r, sqb_e"
    inside = (
        f"SELECT {columns}, MIN(sqb_s) OVER () AS sqb_any FROM ({placed}) AS sqb_placed"
        " WHERE sqb_e IS NULL OR sqb_r <= sqb_e"
    )
    sql = f"SELECT {columns} FROM ({inside}) AS sqb_inside WHERE sqb_any = 0"
    return script.add("change", sql, (standing, net))


def _tied(script: Script, root: Top, reached: str) -> str:
    """All rows that are equal, by the order, to the last one of a table that is full."""
    exprs = tuple(one.expr for one in root.order)
    sql = f"SELECT DISTINCT {keys_of(exprs)} FROM {reached} WHERE sqb_r = sqb_e AND sqb_s = 1"
    return restrict(script, root.child, exprs, script.add("keys", sql, (reached,)), "new")
