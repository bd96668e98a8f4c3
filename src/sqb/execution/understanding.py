"""A model's query as a plan for row-level refresh: its tables by name, views seen through."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from sqb.compile.nodes import Binding, Query
from sqb.execution.content_hash import quote
from sqb.execution.reading import behind, is_view, moments, own
from sqb.execution.run import Run
from sqb.refresh.build import Lookup, Plan, TableRef, ViewRef, build
from sqb.refresh.constants import paired
from sqb.refresh.prune import pruned
from sqb.sql.analysis import MOMENT, NOW, TODAY, BoundConstant, bound
from sqb.sql.fragments import Unsupported
from sqb.sql.splice import Edit, splice
from sqb.sql.structure import structure
from sqb.sql.tokens import split
from sqb.sql.windows import written_out

#: Among the constants where it is only asked what depends on them.
ANY_DAY = "any_day"

#: The columns of a source whose metadata says nothing of them: only Spark knows.
AskColumns = Callable[[str], tuple[str, ...]]


def at_moment(run: Run, name: str, moment: str, ask: AskColumns, today: str | None = None) -> Plan:
    """The plan of a model's query with ``current_timestamp()`` and its kin bound to a moment."""
    constants = {**run.situation.constants, MOMENT: moment}
    if today is not None:
        constants |= {TODAY: today, ANY_DAY: today}
    plan = _plan(run, own(run, name), constants, ask)
    return msgspec.structs.replace(plan, root=pruned(plan.root))


def understand(run: Run, name: str, before: Mapping[str, str], ask: AskColumns) -> Plan:
    """The plan of a model's query; raises ``Unsupported`` where it is not understood.

    ``before`` are the bound constants that the table was made with. Where they moved, the plan's
    filters know what they were.
    """
    query = own(run, name)
    now = run.situation.constants
    plan = _plan(run, query, now, ask)
    if any(now.get(key) != value for key, value in before.items()):
        then = _plan(run, query, {**now, **before}, ask)
        plan = msgspec.structs.replace(plan, root=paired(then.root, plan.root))
    return msgspec.structs.replace(plan, root=pruned(plan.root))


def _plan(run: Run, query: Query, constants: Mapping[str, str], ask: AskColumns) -> Plan:
    if run.config.spark.conf.get("spark.sql.caseSensitive", "false").lower() == "true":
        raise Unsupported("names that differ in case alone")
    text, lookup = _prepared(run, query, constants, ask)
    return build(text, structure(split(text)), lookup)


def _prepared(
    run: Run, query: Query, constants: Mapping[str, str], ask: AskColumns
) -> tuple[str, Lookup]:
    """The text with its constants bound and its references plain, and what they stand for."""
    volatile = set(query.analysis.volatile)
    if MOMENT in constants:
        volatile -= {MOMENT, NOW}
    if volatile:
        raise Unsupported(min(volatile), "VOLATILE")
    found = [_surely(one, query.sql, constants) for one in moments(run, query)]
    edits = bound(found, constants)
    for binding in query.bindings:
        reference = binding.reference
        if reference.travels:
            raise Unsupported("a version that the query names itself")
        if reference.kind not in ("name", "table"):
            edits.append(Edit(reference.start, reference.end, quote(reference.parts[-1])))
    text = splice(query.sql, edits).text
    windows = written_out(split(text))
    places = {
        _moved(_moved(binding.reference.start, edits), windows): binding
        for binding in query.bindings
    }
    text = splice(text, windows).text

    def lookup(start: int) -> TableRef | ViewRef | None:
        binding = places.get(start)
        return None if binding is None else _meaning(run, binding, constants, ask)

    return text, lookup


def _surely(found: BoundConstant, sql: str, constants: Mapping[str, str]) -> BoundConstant:
    """A constant as it is bound; a string that may be a day is one where only ``ANY_DAY`` asks."""
    if found.certain:
        return found
    if ANY_DAY not in constants:
        raise Unsupported(sql[found.start : found.end], "VOLATILE")
    return msgspec.structs.replace(found, certain=True)


def _moved(start: int, edits: list[Edit]) -> int:
    """Where a place of the text is after the edits."""
    return start + sum(len(e.replacement) - (e.end - e.start) for e in edits if e.start < start)


def _meaning(
    run: Run, binding: Binding, constants: Mapping[str, str], ask: AskColumns
) -> TableRef | ViewRef:
    name = binding.name
    inner = None
    if is_view(run, name):
        inner = behind(run, name)
        if inner is None:
            raise Unsupported(f"the view {name}, whose text is not known")
    elif name in run.compiled.expressions:
        inner = run.compiled.expressions[name]
    if inner is not None:
        text, lookup = _prepared(run, inner, constants, ask)
        return ViewRef(text, structure(split(text)), lookup)
    facts = run.relation(name)
    if facts is not None and facts.kind == "view":
        raise Unsupported(f"{name}, a view that someone else wrote")
    columns = tuple(c.name for c in facts.columns) if facts is not None else ask(name)
    return TableRef(name, columns)
