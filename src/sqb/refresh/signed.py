"""Every strategy as one thing: the signed change of the target's own rows.

What goes has a negative weight, what comes a positive one, equal rows cancel. The same steps then
write it, count it and keep the table's content hash, whatever strategy it came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqb.refresh.averages import AVERAGES, Average, average, averages, forbidden
from sqb.refresh.first_rows import first_rows_change
from sqb.refresh.ir import Aggregate, Call, Col, Expr, Node, columns, output
from sqb.refresh.netting import (
    Signed,
    Target,
    exact,
    grouped_by,
    kept_columns,
    listed,
    netted,
    not_there,
)
from sqb.refresh.script import COPIES, WEIGHT, Script, text
from sqb.refresh.strategies import (
    AffectedKey,
    Append,
    BagMerge,
    GroupMerge,
    Option,
    TopMerge,
)

#: How the value of a group and that of its change make the new value.
_MERGED_BY = {
    "count": "SUM",
    "count_if": "SUM",
    "sum": "SUM",
    "try_sum": "TRY_SUM",
    "min": "MIN",
    "max": "MAX",
    "bool_and": "BOOL_AND",
    "every": "BOOL_AND",
    "bool_or": "BOOL_OR",
    "some": "BOOL_OR",
    "any": "BOOL_OR",
    "bit_and": "BIT_AND",
    "bit_or": "BIT_OR",
}


def signed_change(option: Option, script: Script, root: Node, target: Target) -> Signed:
    """The change of the target that a strategy makes."""
    cols = output(root)
    items = ", ".join(f"{name} AS {col.name}" for name, col in zip(target.names, cols, strict=True))
    standing = script.add("rows", f"SELECT {items} FROM {target.relation}")
    match option:
        case Append():
            return Signed(netted(script, cols, [(option.change, WEIGHT)], target))
        case BagMerge():
            return _by_value(option, script, root, standing, target)
        case AffectedKey():
            going = script.among(root, standing, option.key, option.keys)
            return Signed(netted(script, cols, [(option.rows, "1"), (going, "-1")], target))
        case GroupMerge():
            return _groups(option, script, root, standing, target)
        case TopMerge():
            return first_rows_change(option, script, root, standing, target)


def _by_value(
    option: BagMerge, script: Script, root: Node, standing: str, target: Target
) -> Signed:
    """A change whose rows are found in the target by all of their values."""
    cols = output(root)
    net, there = option.change, standing
    if not target.small:
        net = netted(script, cols, [(option.change, WEIGHT)], target)
        keys = ", ".join(f"{col.name} AS k{i}" for i, col in enumerate(cols))
        gone = script.add("keys", f"SELECT DISTINCT {keys} FROM {net} WHERE {WEIGHT} < 0", (net,))
        there = script.among(root, standing, columns(cols), gone)
    names, grouped, kept = listed(cols), grouped_by(cols, target), kept_columns(cols, target)
    sql = (
        f"SELECT {kept}, SUM({WEIGHT}) AS {WEIGHT}, SUM({COPIES}) + SUM({WEIGHT}) AS {COPIES}"
        f" FROM (SELECT {names}, {WEIGHT}, 0 AS {COPIES} FROM {net}"
        f" UNION ALL SELECT {names}, 0 AS {WEIGHT}, 1 AS {COPIES} FROM {there}) AS sqb_all"
        f" GROUP BY {grouped} HAVING SUM({WEIGHT}) <> 0"
    )
    change = script.add("change", sql, (net, there))
    return Signed(change, not_there(f"{WEIGHT} < 0 AND {COPIES} < 0"))


def _groups(
    option: GroupMerge, script: Script, root: Node, standing: str, target: Target
) -> Signed:
    """Each group that changed as it is and as it shall be, found in one pass over both.

    A group has one row, so what it is can be told beside what it becomes.
    """
    node, cols = option.node, output(root)
    keys = [(cols[place], col) for place, (col, _) in zip(option.keys, node.keys, strict=True)]
    calls = [
        (cols[place], col, call)
        for place, (col, call) in zip(option.calls, node.calls, strict=True)
    ]
    kinds = dict(zip(cols, target.types, strict=True))
    if option.signed:
        sums = {mine: kinds[col] for col, mine, _ in calls}
        change = script.add("rows", _signed_groups(node, option.change, sums), (option.change,))
    else:
        change = script.apply(node, [option.change])
    searched = bool(keys) and not target.small
    going = _touched(script, root, standing, change, keys) if searched else standing
    pairs = [*keys, *((col, mine) for col, mine, _ in calls)]
    here = listed([col for col, _ in pairs])
    arriving = ", ".join(f"{mine.name} AS {col.name}" for col, mine in pairs)
    both = (
        f"SELECT {here}, 1 AS {_STANDS} FROM {going}"
        f" UNION ALL SELECT {arriving}, 0 AS {_STANDS} FROM {change}"
    )
    counts = {call.arguments: col for col, _, call in calls if call.function == "count"}
    shown_as = {mine: col for col, mine, _ in calls}
    averaged = {shown_as[mine]: found for mine, found in averages(node).items()}
    looked = {} if keys or not option.signed else _has_values(script, node, counts)
    grouped = ", ".join(col.name for col, _ in keys)
    items = [
        *(f"{col.name} AS {_NEW}{col.name}" for col, _ in keys),
        *(
            _averaged(col, averaged[col], shown_as, kinds)
            if col in averaged
            else _merged(col, call, kinds, counts, looked, signed=option.signed)
            for col, _, call in calls
        ),
        *(
            f"MAX(CASE WHEN {_STANDS} = 1 THEN {col.name} END) AS {_OLD}{col.name}"
            for col, _ in pairs
        ),
        f"MAX({_STANDS}) AS {_STANDS}",
    ]
    beside = "".join(f" CROSS JOIN {step}" for step in looked.values())
    merged = script.add(
        "rows",
        f"SELECT {', '.join(items)} FROM ({both}) AS sqb_both{beside}"
        + (f" GROUP BY {grouped} HAVING MIN({_STANDS}) = 0" if keys else ""),
        (going, change, *looked.values()),
    )
    total = counts.get(()) if option.signed else None
    left = f"{_NEW}{total.name} <> 0" if keys and total else "TRUE"
    same = " AND ".join(_unmoved(col.name, kinds[col]) for col, _ in pairs)
    shown = ", ".join(
        f"CASE WHEN {_SIDE} < 0 THEN {_OLD}{col.name} ELSE {_NEW}{col.name} END AS {col.name}"
        for col in cols
    )
    net = script.add(
        "change",
        f"SELECT {shown}, {_SIDE} AS {WEIGHT}, CASE WHEN {_SIDE} > 0 THEN 1 ELSE 0 END AS {COPIES}"
        f" FROM {merged} CROSS JOIN (VALUES (-1), (1)) AS sqb_sides({_SIDE})"
        f" WHERE CASE WHEN {_SIDE} < 0 THEN {_STANDS} = 1 ELSE {left} END"
        f" AND NOT ({_STANDS} = 1 AND {left} AND {same})",
        (merged,),
    )
    names = dict(zip(cols, target.names, strict=True))
    named = {mine: names[col] for mine, col in shown_as.items()}
    unless = [
        one
        for col, found in averaged.items()
        for one in forbidden(found, kinds[col], named, names[col])
    ]
    if total is not None:
        unless += not_there(f"{WEIGHT} > 0 AND {names[total]} < 0")
    return Signed(net, tuple(unless))


#: Names beside those of columns: what a group becomes, what it is, whether it is, which of the two.
_NEW, _OLD, _STANDS, _SIDE = "sqb_new_", "sqb_old_", "sqb_stands", "sqb_side"


def _unmoved(name: str, kind: str) -> str:
    """Is a value of a group what it was?"""
    new, old = f"{_NEW}{name}", f"{_OLD}{name}"
    same = f"{new} IS NOT DISTINCT FROM {old}"
    if exact(new, kind) is not None:
        same += f" AND {exact(new, kind)} IS NOT DISTINCT FROM {exact(old, kind)}"
    return same


def _touched(
    script: Script, root: Node, standing: str, change: str, keys: Sequence[tuple[Col, Col]]
) -> str:
    """The rows of the target that a change of groups meets."""
    items = ", ".join(f"{mine.name} AS k{i}" for i, (_, mine) in enumerate(keys))
    unique = [mine.name for _, mine in keys]
    touched = script.add("keys", f"SELECT {items} FROM {change}", (change,), unique)
    return script.among(root, standing, columns(col for col, _ in keys), touched)


def _has_values(
    script: Script, node: Aggregate, counts: Mapping[tuple[Expr, ...], Col]
) -> dict[tuple[Expr, ...], str]:
    """For each sum that nobody counts: one row that says whether it has a value left."""
    found: dict[tuple[Expr, ...], str] = {}
    for _, call in node.calls:
        if call.function == "sum" and call.arguments not in {*counts, *found}:
            rows = script.state(node.child, "new")
            test = f"({text(call.arguments[0])}) IS NOT NULL"
            sql = (
                f"SELECT COUNT(*) AS n{len(found)}"
                f" FROM (SELECT 1 AS one FROM {rows} WHERE {test} LIMIT 1) AS sqb_one"
            )
            found[call.arguments] = script.add("rows", sql, (rows,))
    return found


def _merged(
    col: Col,
    call: Call,
    kinds: Mapping[Col, str],
    counts: Mapping[tuple[Expr, ...], Col],
    looked: Mapping[tuple[Expr, ...], str],
    *,
    signed: bool,
) -> str:
    value = f"{_MERGED_BY[call.function]}({col.name})"
    kept = counts.get(call.arguments)
    if signed and call.function in ("sum", "try_sum") and kept is not None:
        value = f"CASE WHEN SUM({kept.name}) = 0 THEN NULL ELSE {value} END"
    elif call.arguments in looked:
        place = list(looked).index(call.arguments)
        value = f"CASE WHEN MAX(n{place}) = 0 THEN NULL ELSE {value} END"
    return f"CAST({value} AS {kinds[col]}) AS {_NEW}{col.name}"


def _averaged(
    col: Col, found: Average, shown_as: Mapping[Col, Col], kinds: Mapping[Col, str]
) -> str:
    total, count = f"TRY_SUM({shown_as[found.total].name})", f"SUM({shown_as[found.count].name})"
    return f"CAST({average(total, count, kinds[col])} AS {kinds[col]}) AS {_NEW}{col.name}"


def _signed_groups(node: Aggregate, change: str, kinds: Mapping[Col, str]) -> str:
    """The aggregates of a signed change; no product with the weight, which would widen decimals."""
    keys = [f"{text(expr)} AS {col.name}" for col, expr in node.keys]
    below = ", ".join([*(col.name for col in output(node.child)), *keys, WEIGHT])
    items = [col.name for col, _ in node.keys]
    for col, call in node.calls:
        if call.function == "count":
            tests = " AND ".join(f"({text(a)}) IS NOT NULL" for a in call.arguments)
            value = f"CASE WHEN {tests} THEN {WEIGHT} ELSE 0 END" if tests else WEIGHT
            items.append(f"SUM({value}) AS {col.name}")
        elif call.function == "count_if":
            test = text(call.arguments[0])
            items.append(f"SUM(CASE WHEN {test} THEN {WEIGHT} ELSE 0 END) AS {col.name}")
        elif call.function in AVERAGES:  # follows from the sum and the count
            items.append(f"CAST(NULL AS {kinds[col]}) AS {col.name}")
        else:
            value = text(call.arguments[0])
            less = negated(value, kinds[col])
            function = _MERGED_BY[call.function]
            items.append(
                f"{function}(CASE WHEN {WEIGHT} < 0 THEN {less} ELSE ({value}) END) AS {col.name}"
            )
    sql = f"SELECT {', '.join(items)} FROM (SELECT {below} FROM {change}) AS sqb_d"
    return f"{sql} GROUP BY {listed([col for col, _ in node.keys])}" if node.keys else sql


#: Spark keeps so many digits of a decimal that it negates.
_NEGATED = 34


def negated(value: str, kind: str) -> str:
    """A value with the other sign and all of its digits; ``kind`` is the type of its sum.

    >>> negated("x", "decimal(28,2)"), negated("x", "bigint")
    ('-(x)', '-CAST(x AS BIGINT)')
    """
    if kind == "bigint":  # the smallest INT has no counterpart
        return f"-CAST({value} AS BIGINT)"
    digits = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", kind)
    if digits is None or int(digits[1]) <= _NEGATED:
        return f"-({value})"
    largest, text = "9" * (_NEGATED - int(digits[2])) or "0", f"CAST({value} AS STRING)"
    return (
        f"CASE WHEN ({value}) BETWEEN CAST('-{largest}' AS {kind}) AND CAST('{largest}' AS {kind})"
        f" THEN -({value}) ELSE CAST(CASE WHEN ({value}) < 0 THEN SUBSTRING({text}, 2)"
        f" ELSE CONCAT('-', {text}) END AS {kind}) END"
    )
