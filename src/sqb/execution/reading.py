"""What a node's query reads in this run: pinned tables, and upstream views spliced in.

A view that is met once becomes a sub-select where it stands; one that is met more often is put in
front as a CTE, so that the text grows with the number of views and not with the number of paths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import msgspec

from sqb.compile.compiler import names_of
from sqb.compile.nodes import Query
from sqb.compile.resolve import rebind
from sqb.execution.content_hash import quote
from sqb.execution.run import Definition, Run
from sqb.execution.sources import files_below
from sqb.execution.statement import render
from sqb.hashing import digest
from sqb.sql.analysis import BoundConstant
from sqb.sql.splice import Spliced
from sqb.sql.tokens import canonical
from sqb.state.definition import unpack

#: SQL that reads an input, and whether it is a sub-select.
Read = Callable[[str, bool], tuple[str, bool]]


def statement(run: Run, name: str, read: Read | None = None) -> Spliced:
    """The query of a model as it is sent to Spark to build a table.

    ``read`` says how its tables are read; without it they are as this run finds them.
    """
    query, read = own(run, name), read or run.read
    order, uses = _views(run, query)
    shared = {view for view in order if uses[view] > 1}
    body = _render(run, query, shared, read)
    if not shared:
        return body
    ctes = ",\n".join(
        f"{_cte(view)} AS (\n{_view_text(run, view, shared, read)}\n)"
        for view in order
        if view in shared
    )
    before = f"WITH {ctes}\nSELECT * FROM (\n"
    pieces = [(0, 0, False), *((len(before) + at, origin, v) for at, origin, v in body.pieces)]
    pieces.append((len(before) + len(body.text), len(query.sql), False))
    return Spliced(f"{before}{body.text}\n)", tuple(pieces))


def view_statement(run: Run, name: str) -> Spliced:
    """The query of a view as the catalog keeps it: full names, nothing pinned."""
    query = own(run, name)
    return render(
        query.sql,
        query.analysis,
        query.bindings,
        lambda parent, travels: (
            (run.place(parent), False)
            if parent in run.situation.expected
            else run.read_source(parent, travels, pin=False)
        ),
        {},
    )


def files_read(run: Run, name: str) -> list[str]:
    """The sources of files that a table reads, itself or through views."""
    query = own(run, name)
    queries = [query, *(behind(run, view) for view in _views(run, query)[0])]
    names = (b.name for found in queries if found is not None for b in found.bindings)
    return files_below(run.compiled, names)


def queries_read(run: Run, name: str) -> list[Query]:
    """A model's query with those of the views and expressions that it sees through."""
    found: list[Query] = []
    seen: set[str] = set()

    def visit(query: Query) -> None:
        found.append(query)
        for binding in query.bindings:
            if binding.name not in seen:
                seen.add(binding.name)
                view = behind(run, binding.name) if is_view(run, binding.name) else None
                inner = view or run.compiled.expressions.get(binding.name)
                if inner is not None:
                    visit(inner)

    visit(own(run, name))
    return found


def definition(run: Run, name: str) -> Definition:
    """What the rows of a model follow from, data aside, as far as it is seen through.

    A view may stand as it was though one below it was edited, and a name in a query may be the
    name of another table by now.
    """
    texts, places = list[str](), list[str]()
    for query in queries_read(run, name):
        texts.append(canonical(query.sql))
        texts += [binding.name for binding in query.bindings if is_view(run, binding.name)]
        for binding in query.bindings:
            places.append("" if is_view(run, binding.name) else run.stands(binding.name))
    return Definition(digest(*texts)[:32], digest(*places)[:32])


def volatile(run: Run, name: str) -> frozenset[str]:
    """The functions behind a model that give another value in every run, views seen through."""
    return frozenset(call for query in queries_read(run, name) for call in query.analysis.volatile)


def is_dated(run: Run, name: str) -> bool:
    """Does anything behind a model depend on the day or the moment of the run?"""
    return any(moments(run, query) for query in queries_read(run, name))


def tables_read(run: Run, name: str, below: str | None = None) -> list[str]:
    """The tables that a model reads, itself or through views; or only those ``below`` an input."""
    if below is not None and not is_view(run, below):
        return [below]
    query = own(run, name) if below is None else behind(run, below)
    found: dict[str, None] = {}
    for binding in query.bindings if query is not None else ():
        found |= dict.fromkeys(tables_read(run, name, below=binding.name))
    return list(found)


def own(run: Run, name: str) -> Query:
    """A model's query."""
    model = run.compiled.models[name]
    return Query(model.sql, model.analysis, run.compiled.bindings[name])


def _views(run: Run, query: Query) -> tuple[list[str], Counter[str]]:
    """The views below a query, those that others read first, and how often each is named."""
    order: list[str] = []
    uses: Counter[str] = Counter()

    def visit(query: Query) -> None:
        for binding in query.bindings:
            if not is_view(run, binding.name):
                continue
            uses[binding.name] += 1
            if uses[binding.name] == 1:
                inner = behind(run, binding.name)
                if inner is not None:
                    visit(inner)
                order.append(binding.name)

    visit(query)
    return order, uses


def is_view(run: Run, name: str) -> bool:
    """Is the input a view of this project? Someone else's is read by its name."""
    expected, facts = run.situation.expected.get(name), run.relation(name)
    if expected is None:
        return False
    return facts.kind == "view" if facts is not None else expected.materialized == "view"


def behind(run: Run, name: str) -> Query | None:
    """The query behind a view: the project's own, or the older one that the catalog holds."""
    expected, record = run.expected(name), run.record(name)
    if record is None or record.query == expected.query:
        return own(run, name)
    head = run.heads[(expected.namespace, expected.relation)]
    text = unpack(run.facts.definition(head.location))
    if text is None:
        return None
    names = names_of(run.config, run.compiled)
    analysis, bindings, former = rebind(text, names, run.compiled.sources, expected.path)
    run.sources.adopt(former)
    return Query(text, analysis, bindings)


def _render(run: Run, query: Query, shared: set[str], read: Read) -> Spliced:
    def input_sql(name: str, travels: bool) -> tuple[str, bool]:
        if name in shared:
            return _cte(name), True
        if is_view(run, name):
            return f"(\n{_view_text(run, name, shared, read)}\n)", True
        return read(name, travels)

    analysis = msgspec.structs.replace(query.analysis, constants=moments(run, query))
    return render(query.sql, analysis, query.bindings, input_sql, run.situation.constants)


def moments(run: Run, query: Query) -> tuple[BoundConstant, ...]:
    """What is bound to the day or the moment of the run.

    A bare ``current_date`` is a column where a table that is read has one of that name, or where
    the query itself calls something so.
    """
    tables = [run.relation(binding.name) for binding in query.bindings]
    columns = {column.name.lower() for facts in tables if facts for column in facts.columns}
    text = query.sql.lower()
    columns |= set(re.findall(r"\bas\s+(\w+)", text))
    for listed in re.findall(r"\w+\s*\(([\w\s,]+)\)\s*as\b", text):
        columns |= set(listed.replace(",", " ").split())
    found = query.analysis.constants
    return tuple(one for one in found if query.sql[one.start : one.end].lower() not in columns)


def _view_text(run: Run, name: str, shared: set[str], read: Read) -> str:
    query = behind(run, name)
    if query is None:
        return f"SELECT * FROM {run.place(name)}"
    return _render(run, query, shared, read).text


def _cte(name: str) -> str:
    return quote(f"__sqb_view_{name}")
