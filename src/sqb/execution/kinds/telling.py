"""How a model's table would be brought up to date, as far as that is known without Spark."""

from __future__ import annotations

from sqb.execution.kinds.append import declared_keys
from sqb.execution.kinds.build import kind_in
from sqb.execution.reading import tables_read
from sqb.execution.run import Run
from sqb.execution.understanding import at_moment
from sqb.planning.plan import PlannedNode, Strategy
from sqb.planning.row_gates import at_once
from sqb.refresh.drivers import below
from sqb.refresh.ir import scans
from sqb.sql.fragments import Unsupported


def foretold(run: Run, node: PlannedNode) -> Strategy | None:
    """Of a log: which tables drive it and which ones it only looks things up in."""
    name = node.name
    if name not in run.compiled.models:
        return None
    kind = kind_in(run, name)
    if kind.name != "append":
        return None
    begins = name not in run.situation.relations or node.reason == "full_refresh"
    whole = at_once(node.reason) if begins else None
    tables = tables_read(run, name)
    named = {wanted.lower() for wanted in kind.append_from}
    if named:
        lookups = {table: "" for table in tables if not _is_named(run, name, table, named)}
    else:
        lookups = _lookups(run, name)
    drivers = [table for table in tables if table not in lookups]
    code, why = whole or (None, "what entered the result is added")
    why += f"; drivers: {', '.join(drivers) or 'none'}"
    if lookups:
        told = (f"{table} {note}".rstrip() for table, note in lookups.items())
        why += f"; lookups: {', '.join(told)}"
    return Strategy("full" if whole else "append", why, code=code)


def _is_named(run: Run, name: str, table: str, wanted: set[str]) -> bool:
    """Does ``append_from`` mean this table, or a view over it?"""
    for given in (*run.expected(name).inputs, table):
        source = run.compiled.sources.get(given)
        words = {given.lower()}
        if source is not None and source.is_table:
            words.add(f"{source.namespace}.{source.table}".lower())
        if wanted & words and table in tables_read(run, name, below=given):
            return True
    return False


def _lookups(run: Run, name: str) -> dict[str, str]:
    """Tables that are joined on a key, with what is still to be checked on their rows."""

    def ask(source: str) -> tuple[str, ...]:
        raise Unsupported(f"the columns of {source}")

    try:
        plan = at_moment(run, name, "2001-01-01 00:00:00Z", ask)
    except Unsupported:
        return {}
    order = [scan.source for scan in scans(plan.root)]
    declared, found = declared_keys(run), dict[str, str]()
    # as if all keys were unique but those of the table that the query begins with
    hanging = below(plan.root, declared, lambda table, *_: table != order[0])
    for table in dict.fromkeys(order):
        by = [hanging.get(number) for number, name in enumerate(order) if name == table]
        if by[0] is not None and all(by):
            columns = ", ".join(sorted(by[0]))
            found[table] = "" if table in declared else f"(if {columns} is unique in it)"
    return found
