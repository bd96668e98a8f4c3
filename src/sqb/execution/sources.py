"""Sources of every kind: one look at all of them, and the SQL that reads each.

The look takes heads, metadata and file listings, never data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path

import msgspec

from sqb.compile.nodes import Compiled, Query, SourceTable
from sqb.errors import SqbError
from sqb.execution.content_hash import quote
from sqb.execution.statement import full_name, pinned, render
from sqb.freshness.age import age_of
from sqb.freshness.files import Listing, list_files
from sqb.freshness.sighting import Physical, Reading, Sighting
from sqb.freshness.values import Answer, Probe, moment_us
from sqb.hashing import digest
from sqb.identity.data_id import (
    UNKNOWN,
    InputState,
    files_data,
    source_data,
    value_data,
)
from sqb.lake.catalog import Head
from sqb.lake.facts import FactsCache
from sqb.lake.foreign import open_foreign
from sqb.lake.metadata import Column, TableFacts
from sqb.lake.versions import Snapshot, schemas_of, versions
from sqb.project.source_specs import Freshness
from sqb.sql.analysis import BOUND, DAYS, NOW, VOLATILE

_MILLISECOND = 1000
#: Words in the text of a view with which it may give other rows at another time.
_MOMENTS = re.compile(
    rf"\b(?:{'|'.join(sorted(BOUND | VOLATILE))})\b|['\"]\s*(?:{'|'.join((NOW, *DAYS))})\b",
    re.IGNORECASE,
)


#: A source of more files than this is read in full: what is recorded of a table stays small.
_MOST_MARKS = 1000


class SourceLook:
    """All sources as they are at one moment, as far as can be told without Spark."""

    def __init__(
        self,
        compiled: Compiled,
        catalog: str,
        heads: Mapping[tuple[str, str], Head],
        facts: FactsCache,
        foreign: FactsCache,
        conf: Mapping[str, str],
        root: Path,
    ) -> None:
        self.compiled = compiled
        self.catalog = catalog
        self.listings: dict[str, Listing] = {}
        self.facts: dict[str, TableFacts] = {}
        self._heads, self._lake_facts = heads, facts
        self._former: dict[str, SourceTable] = {}
        self._documents: dict[str, tuple[FactsCache, str]] = {}
        self._histories: dict[str, tuple[dict[int, Snapshot], dict[int, tuple[Column, ...]]]] = {}
        self._why: dict[str, str] = {}
        self._physical: dict[str, Physical] = {}
        others = _foreign_heads(compiled, conf, self._why)
        for name, source in compiled.sources.items():
            if source.files is not None:
                self._list(name, source.files.path, root)
            elif source.is_table:
                there = heads if source.catalog is None else others.get(source.catalog, {})
                head = there.get((source.namespace, source.table))
                if head is not None and source.catalog is None:
                    self.facts[name] = facts.get(head.location)
                    self._documents[name] = (facts, head.location)
                elif head is not None:
                    self._read_foreign(name, head, foreign)
        self._openable = frozenset(others)

    def _list(self, name: str, path: str, root: Path) -> None:
        try:
            self.listings[name] = list_files(path, root)
        except OSError as error:
            self.listings[name] = Listing("", ())
            self._why[name] = f"its files can't be listed: {error}"

    def _read_foreign(self, name: str, head: Head, facts: FactsCache) -> None:
        """Someone else's metadata may lie where only Spark can read it."""
        try:
            self.facts[name] = facts.get(head.location)
            self._documents[name] = (facts, head.location)
        except SqbError as error:
            self._why[name] = error.message

    def adopt(self, former: Mapping[str, SourceTable]) -> None:
        """Take in sources that only an older definition names, such as that of a view not built."""
        for name, source in former.items():
            self._former[name] = source
            head = self._heads.get((source.namespace, source.table)) if source.in_lake else None
            if head is not None:
                self.facts[name] = self._lake_facts.get(head.location)
                self._documents[name] = (self._lake_facts, head.location)

    def marks(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The files of those sources among ``names`` whose files never change, if they are few."""
        found: dict[str, list[str]] = {}
        for name in names:
            source, listing = self.compiled.sources.get(name), self.listings.get(name)
            kept = source is not None and source.files is not None and source.files.immutable
            if kept and listing is not None and len(listing.files) <= _MOST_MARKS:
                found[name] = listing.marks()
        return found

    def versions(self, name: str) -> dict[int, Snapshot]:
        """The versions that a table's metadata tells of."""
        return self._history(name)[0]

    def schemas(self, name: str) -> dict[int, tuple[Column, ...]]:
        """The columns that a table has and had."""
        return self._history(name)[1]

    def _history(self, name: str) -> tuple[dict[int, Snapshot], dict[int, tuple[Column, ...]]]:
        cache, location = self._documents[name]
        if location not in self._histories:
            document = cache.document(location)
            self._histories[location] = (versions(document), schemas_of(document))
        return self._histories[location]

    def table(self, name: str) -> str:
        """The full name of a source that is a table."""
        return _table(self.compiled.sources.get(name) or self._former[name], self.catalog)

    def stands(self, name: str) -> str:
        """Where a source's rows are, and how they are read."""
        source = self.compiled.sources.get(name) or self._former.get(name)
        if source is None:
            return name
        spec = msgspec.json.encode(source.files, order="sorted").decode() if source.files else ""
        return f"{'' if source.expression is not None else source.place}{spec}"

    # What is there

    def physical(self, name: str) -> Physical:
        """A source as its place shows it."""
        known = self._physical.get(name)
        if known is None:
            known = self._physical[name] = self._look(name, self.compiled.sources[name])
        return known

    def _look(self, name: str, source: SourceTable) -> Physical:
        place = source.place
        if source.files is not None:
            listing = self.listings[name]
            if not listing.files:
                why = self._why.get(name) or f"no file is at {place}"
                return Physical(None, place=place, why=why)
            spec = digest(msgspec.json.encode(source.files, order="sorted").decode())[:32]
            data = files_data(spec, listing.version)
            # what columns there are is known only when the files are read
            return Physical(data, digest(data), spec, place, "pinned", listing.newest_us)
        if source.expression is not None:
            return self._expression(name, source)
        facts = self.facts.get(name)
        if facts is None:
            unread = self._why.get(name)
            if unread is None and (source.catalog is None or source.catalog in self._openable):
                return Physical(None, place=place, why=f"there is no table {place}")
            why = (
                unread
                or self._why.get(f"{source.catalog}.")
                or (f"sqb can't see versions in the catalog `{source.catalog}`")
            )
            return Physical(UNKNOWN, place=place, why=why)
        if facts.kind == "view":
            return self._view(source, facts)
        data = source_data(facts.uuid, facts.shape, facts.data_snapshot_id) + self._refs(name)
        stamp = facts.data_timestamp_ms
        moment = None if stamp is None else stamp * _MILLISECOND
        return Physical(data, facts.shape, facts.shape, place, "pinned", moment)

    def _refs(self, name: str) -> str:
        """What the branches and tags are by which queries of the project read a table."""
        if name not in self._read_refs:
            return ""
        cache, location = self._documents[name]
        refs = cache.document(location).get("refs", {})
        wanted = sorted(self._read_refs[name])
        found = (f"{ref}={refs.get(ref, {}).get('snapshot-id')}" for ref in wanted)
        return "+" + digest(*found)[:16]

    @cached_property
    def _read_refs(self) -> dict[str, set[str]]:
        """The branches and tags that queries name, by their source."""
        every = [*self.compiled.bindings.values()]
        every += [query.bindings for query in self.compiled.expressions.values()]
        out: dict[str, set[str]] = {}
        for binding in chain.from_iterable(every):
            if binding.reference.ref:
                out.setdefault(binding.name, set()).add(binding.reference.ref)
        return out

    def _view(self, source: SourceTable, facts: TableFacts) -> Physical:
        """A view of someone else has no version, unless it is known what it reads."""
        shape, why = facts.shape, "it is a view that someone else wrote, which has no version"
        if source.through is not None and _MOMENTS.search(facts.sql or ""):
            why = "it is a view that may give other rows each time"
        elif source.through:
            found = self._over(shape, source.through, source.place)
            # whoever reads it reads what stands, not a version
            reading: Reading = "observed" if found.reading == "pinned" else found.reading
            return msgspec.structs.replace(found, reading=reading)
        return Physical(UNKNOWN, shape, shape, source.place, why=why)

    def _expression(self, name: str, source: SourceTable) -> Physical:
        """An expression over known sources is as good as a view of them."""
        query = self.compiled.expressions[name]
        text = source.expression.canonical if source.expression is not None else ""
        found = self._over(text, [b.name for b in query.bindings], source.place)
        if found.reading == "pinned" and not _lasting(query):
            why = "its expression may give other rows each time"
            return Physical(UNKNOWN, found.schema, found.declared, source.place, why=why)
        return found

    def _over(self, text: str, names: Iterable[str], place: str) -> Physical:
        """What a query over other sources is, as far as those are known."""
        inputs = {name: self.physical(name) for name in names}
        gone = next((p for p in inputs.values() if p.data is None), None)
        if gone is not None:
            return Physical(None, place=place, why=gone.why)
        schema = digest(text, *(p.schema for p in inputs.values()))
        declared = digest(text, *(p.declared for p in inputs.values()))
        if unknown := next((n for n, p in inputs.items() if p.data == UNKNOWN), None):
            why = f"it reads {unknown}, and {inputs[unknown].why}"
            return Physical(UNKNOWN, schema, declared, place, why=why)
        if not inputs:
            why = "its expression may give other rows each time"
            return Physical(UNKNOWN, schema, declared, place, why=why)
        data = "e:" + digest(text, *(f"{n}={p.data}" for n, p in sorted(inputs.items())))
        moments = [p.moment_us for p in inputs.values() if p.moment_us is not None]
        return Physical(data, schema, declared, place, "pinned", max(moments, default=None))

    # Values

    def spec_of(self, name: str, session: str) -> str:
        """What a source's value is the answer to: the question, of whom, in which session."""
        source = self.compiled.sources[name]
        probe, freshness = source.probe, source.freshness
        if probe is None or freshness is None:
            return ""
        kind = freshness.type or ""
        inside = source.expression.canonical if source.expression is not None else ""
        return digest(freshness.strategy, kind, probe.canonical, source.place, inside, session)

    def version_read(self, name: str) -> str:
        """The version of all that a source's value is read from; empty if it can't be named."""
        query = self.compiled.probes[name]
        inputs = {b.name: self.physical(b.name).data for b in query.bindings}
        if not inputs or not _lasting(query) or UNKNOWN in inputs.values():
            return ""
        return digest(*(f"{n}={data}" for n, data in sorted(inputs.items())))

    def sight(
        self,
        name: str,
        now_us: int,
        session: str,
        answer: Answer | None,
    ) -> Sighting:
        """A source with its freshness; ``answer`` is its value, if it is watched by one."""
        source, physical = self.compiled.sources[name], self.physical(name)
        freshness = source.freshness or Freshness()
        policy = freshness.age_policy
        kind = freshness.type or ("files" if source.files is not None else "snapshot")
        if physical.data is None:
            return Sighting(
                name,
                freshness.strategy,
                kind,
                "unknown",
                None,
                why=physical.why,
                age=age_of(None, now_us, policy),
            )
        if source.probe is None:
            known = physical.data != UNKNOWN
            return Sighting(
                name,
                freshness.strategy,
                kind,
                physical.reading,
                InputState(physical.data, physical.schema, place=physical.place),
                physical.data if known else None,
                physical.why,
                age=age_of(physical.moment_us, now_us, policy),
            )
        answer = answer or Answer(None, "its freshness value was not asked for")
        data, moment = UNKNOWN, None
        reading: Reading = "unknown"
        if answer.value is not None:
            data = value_data(self.spec_of(name, session), physical.declared, kind, answer.value)
            moment = moment_us(answer.value) if kind == "timestamp" else None
            reading = "pinned" if physical.reading == "pinned" else "observed"
        return Sighting(
            name,
            freshness.strategy,
            kind,
            reading,
            InputState(data, physical.schema, place=physical.place),
            answer.value,
            answer.why,
            self.version_read(name),
            age_of(moment, now_us, policy),
            freshness.lag_tolerance,
            watched=True,
        )

    # Reading

    def read(
        self, name: str, travels: bool, *, pin: bool, constants: Mapping[str, str] | None = None
    ) -> tuple[str, bool]:
        """SQL that reads a source, and whether it is a sub-select."""
        facts = self.facts if pin else {}
        return read_source(
            self.compiled, self.catalog, name, travels, facts, constants or {}, self._former
        )

    def probe(self, name: str, constants: Mapping[str, str]) -> Probe:
        """The query for a source's value, at the very versions that models read."""
        query, freshness = self.compiled.probes[name], self.compiled.sources[name].freshness
        text = render(
            query.sql,
            query.analysis,
            query.bindings,
            lambda parent, travels: self.read(parent, travels, pin=True, constants=constants),
            constants,
        ).text
        return Probe(text, (freshness and freshness.type) or "string")


def read_source(
    compiled: Compiled,
    catalog: str,
    name: str,
    travels: bool,
    facts: Mapping[str, TableFacts],
    constants: Mapping[str, str],
    extra: Mapping[str, SourceTable] | None = None,
) -> tuple[str, bool]:
    """SQL that reads a source: pinned where ``facts`` knows it, and whether it is a sub-select."""
    source = compiled.sources.get(name) or (extra or {})[name]
    if source.files is not None:
        return quote(files_view(name)), False
    if source.expression is not None:
        query = compiled.expressions[name]
        body = render(
            query.sql,
            query.analysis,
            query.bindings,
            lambda parent, travels: read_source(
                compiled, catalog, parent, travels, facts, constants
            ),
            constants,
        ).text
        return f"(\n{body}\n)", True
    table, found = _table(source, catalog), facts.get(name)
    if travels or found is None or found.kind == "view":
        return table, False
    return pinned(table, found)


def _table(source: SourceTable, catalog: str) -> str:
    parts = (source.catalog or catalog, source.namespace, source.table)
    return full_name(*(part for part in parts if part))


def files_view(name: str) -> str:
    """The temp view under which a session reads the files of a source."""
    return f"__sqb_files_{name}"


def files_below(compiled: Compiled, names: Iterable[str]) -> list[str]:
    """The sources of files among ``names``, also inside expressions."""
    found: dict[str, None] = {}
    for name in names:
        source = compiled.sources.get(name)
        if source is not None and source.files is not None:
            found[name] = None
        elif name in compiled.expressions:
            inside = (b.name for b in compiled.expressions[name].bindings)
            found |= dict.fromkeys(files_below(compiled, inside))
    return list(found)


def _lasting(query: Query) -> bool:
    """Does a query give the same on the same tables, at any time?"""
    return not query.analysis.volatile and not query.analysis.constants


def _foreign_heads(
    compiled: Compiled, conf: Mapping[str, str], why: dict[str, str]
) -> dict[str, dict[tuple[str, str], Head]]:
    """Heads of the other catalogs that sqb can open itself, of the schemas that are read."""
    wanted: dict[str, set[str]] = {}
    for source in compiled.sources.values():
        if source.is_table and source.catalog is not None:
            wanted.setdefault(source.catalog, set()).add(source.namespace)
    out: dict[str, dict[tuple[str, str], Head]] = {}
    for name, namespaces in wanted.items():
        catalog = open_foreign(name, conf)
        if catalog is None:
            continue
        try:
            out[name] = catalog.heads(namespaces)
        except SqbError as error:
            why[f"{name}."] = f"the catalog `{name}` can't be opened: {error.message}"
    return out
