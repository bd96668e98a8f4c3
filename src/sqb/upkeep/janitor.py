"""The janitor: what could be removed from the lake, and removing it.

``survey`` finds and touches nothing. ``remove`` looks again before it acts: of what the user has
seen, only what may still go is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from sqb.errors import SqbError
from sqb.lake.catalog import Head
from sqb.lake.cleanup import alias_files, discard, sweep
from sqb.lake.expiry import expire, left_behind, remove_files, without
from sqb.lake.io import at_once, file_size, is_within, normalised, remove_empty_folders
from sqb.lake.metadata import read_document
from sqb.lake.staging import STAGE_SUFFIX, lapsed, stage_schema
from sqb.project.durations import duration_seconds
from sqb.upkeep.census import Census, Lake, is_excluded, is_state
from sqb.upkeep.needed import Removable, removable
from sqb.upkeep.orphans import Reach, limit, orphans
from sqb.upkeep.relations import Kept, drop, files_of, has_clones, unowned
from sqb.upkeep.state_tables import KEEP, old_rows, pack, places

Kind = Literal["staged", "relation", "snapshots", "metadata", "state_rows", "orphans"]


class Scope(msgspec.Struct, frozen=True):
    """What the project has to do with the lake.

    ``nodes`` are the places of its relations, ``disabled`` the names of models that are switched
    off, ``now`` the clock of the command, which only ages are counted from. ``state_only``: the
    state tables of the schemas are all that is ours.
    """

    owner: str
    schemas: tuple[str, ...]
    nodes: frozenset[tuple[str, str]]
    disabled: frozenset[str]
    now: float
    state_only: bool = False


class Finding(msgspec.Struct, frozen=True):
    """Something that can go: how many of it, and the files and bytes behind it."""

    kind: Kind
    relation: str
    count: int
    files: int
    bytes: int
    items: frozenset[str] = frozenset()


class Survey(msgspec.Struct, frozen=True):
    """What could go, and what was left alone and why."""

    findings: tuple[Finding, ...]
    kept: tuple[Kept, ...]


def survey(lake: Lake, scope: Scope) -> Survey:
    """Everything that can be removed now."""
    look = _Look(lake, scope, lake.census())
    return Survey(tuple(look.findings()), tuple(look.kept))


def remove(lake: Lake, scope: Scope, seen: Survey, run_id: str) -> Survey:
    """Remove what was found, as far as it may still go; what really went."""
    shown = {(f.kind, f.relation): f for f in seen.findings}
    removed: list[Finding] = []
    kept: list[Kept] = []
    # In this order: what one step lets go of, the next one finds.
    steps: tuple[tuple[Kind, ...], ...] = (
        ("staged",),
        ("relation",),
        ("snapshots", "metadata"),
        ("state_rows",),
        ("orphans",),
    )
    for kinds in steps:
        if not any(f.kind in kinds for f in seen.findings):
            continue
        look = _Look(lake, scope, lake.census())
        removed += look.act(kinds, shown, run_id)
        kept += look.kept
    return Survey(tuple(removed), tuple({k.place: k for k in kept}.values()))


class _Look:
    """One look at the lake and what follows from it."""

    def __init__(self, lake: Lake, scope: Scope, census: Census) -> None:
        self.lake, self.scope, self.census = lake, scope, census
        self.kept: list[Kept] = []
        self._age = float(duration_seconds(lake.settings.orphan_age) or 259200)
        self._limit = scope.now - lake.settings.retention_days * 86_400

    # Finding

    def findings(self) -> Iterator[Finding]:
        """Everything that can go, kind by kind."""
        yield from self._staged()
        dropped = self._droppable()
        for head in dropped:
            yield self._relation(head)
        for head in self._tables():
            if head not in dropped:
                yield from self._old(head)
        for head in self._states():
            count = old_rows(self.lake.store, head, int(self._limit * 1e6))
            if count:
                yield Finding("state_rows", _place(head), count, 0, 0)
        yield from self._orphans({_place(head) for head in dropped})

    def _staged(self) -> Iterator[Finding]:
        for alias in self._lapsed():
            files: Collection[str] = [alias.location]
            if alias.kind == "table":
                files = alias_files(self.lake.catalog, alias, facts=self.lake.facts)
            yield Finding("staged", _place(alias), 1, *_measured(files))

    def _lapsed(self) -> Iterator[Head]:
        for schema in self.scope.schemas:
            yield from lapsed(self.lake.catalog, stage_schema(schema), self.census.now)

    def _droppable(self) -> list[Head]:
        scope = self.scope
        if scope.state_only:
            return []
        found, kept = unowned(self.census, scope.owner, scope.nodes, scope.disabled)
        chosen = []
        for head in found:
            if self._excluded(head):
                kept.append(Kept(_place(head), "exclude_patterns names it"))
            elif has_clones(head):
                kept.append(Kept(_place(head), "clones share its files"))
            else:
                chosen.append(head)
        self.kept += kept
        return chosen

    def _relation(self, head: Head) -> Finding:
        return Finding("relation", _place(head), 1, *_measured(files_of(head)))

    def _tables(self) -> Iterator[Head]:
        """The tables whose upkeep is ours."""
        records = {} if self.scope.state_only else self.census.records
        for key, record in records.items():
            head = self.census.heads[key]
            if head.namespace.endswith(STAGE_SUFFIX):
                continue  # an alias carries its table's stamp
            mine = record.owner == self.scope.owner
            older = not record.owner and head.namespace in self.scope.schemas
            if head.kind == "table" and (mine or older) and not self._excluded(head):
                yield head
        yield from self._states()

    def _states(self) -> Iterator[Head]:
        for (namespace, name), head in self.census.heads.items():
            if namespace in self.scope.schemas and is_state(name) and not self._excluded(head):
                yield head

    def _old(self, head: Head) -> Iterator[Finding]:
        try:
            found, document = self._removable(head)
            after = without(document, found.snapshots)
            if found.snapshots:
                files = left_behind(document, after)
                ids = frozenset(map(str, found.snapshots))
                count = len(found.snapshots)
                yield Finding("snapshots", _place(head), count, *_measured(files), ids)
            if found.metadata:
                names = frozenset(found.metadata)
                yield Finding("metadata", _place(head), len(names), *_measured(names), names)
        except (OSError, SqbError) as error:
            self.kept.append(Kept(_place(head), str(error)))

    def _removable(self, head: Head) -> tuple[Removable, dict[str, object]]:
        document = read_document(head.location, warehouse=self.lake.catalog.warehouse)
        if document.get("properties", {}).get("gc.enabled", "true").lower() == "false":
            return Removable(), document
        keep, limit_ms = self.lake.settings.keep_snapshots, int(self._limit * 1000)
        if is_state(head.name):
            keep = KEEP
        found = removable(document, self.census.needs, keep=keep, older_than_ms=limit_ms)
        return found, document

    def _orphans(self, leaving: Collection[str]) -> Iterator[Finding]:
        before = limit(self.census, self._age, self.lake.grace)
        reach = Reach(self.census)
        for place, location in sorted(self._folders().items()):
            if place in leaving:
                continue
            try:
                found = orphans(reach, location, before)
            except (OSError, SqbError) as error:
                self.kept.append(Kept(place, str(error)))
                continue
            if found.files:
                size = sum(f.size for f in found.files)
                names = frozenset(normalised(f.location) for f in found.files)
                yield Finding("orphans", place, len(names), len(names), size, names)

    def _folders(self) -> dict[str, str]:
        """Where relations that sqb made live, or lived: place -> location."""
        catalog, census = self.lake.catalog, self.census
        state_only = self.scope.state_only
        mine = {
            key
            for key, record in census.records.items()
            if (record.owner == self.scope.owner or key in self.scope.nodes)
            and not key[0].endswith(STAGE_SUFFIX)
            and not state_only
        }
        mine |= {(h.namespace, h.name) for h in self._states()}
        names = set(self.scope.nodes)
        for head in () if state_only else self._states():
            names |= places(self.lake.store, head)
        found = {key: census.facts[key].location for key in mine}
        found |= {key: catalog.default_location(*key) for key in names if key not in census.heads}
        return {
            ".".join(key): location
            for key, location in found.items()
            if is_within(location, catalog.warehouse) and not self._excluded_name(*key)
        }

    def _excluded(self, head: Head) -> bool:
        return self._excluded_name(head.namespace, head.name)

    def _excluded_name(self, namespace: str, name: str) -> bool:
        return is_excluded(namespace, name, self.lake.settings.exclude_patterns)

    # Acting

    def act(
        self, kinds: Collection[Kind], shown: Mapping[tuple[Kind, str], Finding], run_id: str
    ) -> Iterator[Finding]:
        """Do these kinds, for what was shown and still holds."""
        lake = self.lake
        if "staged" in kinds:
            for alias in list(self._lapsed()):
                seen = shown.get(("staged", _place(alias)))
                if seen is not None:
                    discard(lake.catalog, alias, facts=lake.facts)
                    yield seen
            for schema in self.scope.schemas:
                # the leases that ran out
                if not list(lapsed(lake.catalog, stage_schema(schema), self.census.now)):
                    sweep(lake.catalog, stage_schema(schema), self.census.now, facts=lake.facts)
        if "relation" in kinds:
            for head in self._droppable():
                if ("relation", _place(head)) in shown:
                    done = drop(lake.catalog, head, lake.facts)
                    if done is not None:
                        yield Finding("relation", _place(head), 1, *done)
        if "snapshots" in kinds:
            for head in self._tables():
                yield from self._expire(head, shown)
        if "state_rows" in kinds:
            for head in self._states():
                if ("state_rows", _place(head)) in shown:
                    yield from self._trim(head, run_id)
        if "orphans" in kinds:
            for finding in self._orphans(()):
                seen = shown.get(("orphans", finding.relation))
                if seen is not None:
                    files = finding.items & seen.items
                    done = remove_files(files)
                    yield Finding("orphans", finding.relation, done[0], *done)
                    if tuple(finding.relation.rpartition(".")[::2]) not in self.census.heads:
                        remove_empty_folders(self._folders()[finding.relation])

    def _expire(self, head: Head, shown: Mapping[tuple[Kind, str], Finding]) -> Iterator[Finding]:
        place = _place(head)
        old, log = shown.get(("snapshots", place)), shown.get(("metadata", place))
        try:
            found, _ = self._removable(head)
            ids = [i for i in found.snapshots if old is not None and str(i) in old.items]
            files = [f for f in found.metadata if log is not None and f in log.items]
            if not ids and not files:
                return
            count, size = _measured(files)
            done = expire(self.lake.catalog, head, ids, files, self.lake.facts)
            if done is None:
                self.kept.append(Kept(place, "it moved meanwhile"))
                return
            self.lake.store.carry(head.location, done.head.location)
        except (OSError, SqbError) as error:
            self.kept.append(Kept(place, str(error)))
            return
        if ids:
            yield Finding("snapshots", place, len(ids), done.files - count, done.bytes - size)
        if files:
            yield Finding("metadata", place, count, count, size)

    def _trim(self, head: Head, run_id: str) -> Iterator[Finding]:
        lake = self.lake
        limit_us = int(self._limit * 1e6)
        done = pack(lake.catalog, lake.store, lake.facts, head, run_id, older_than_us=limit_us)
        if done is None:
            self.kept.append(Kept(_place(head), "a build appended to it meanwhile"))
        elif done.trimmed:
            yield Finding("state_rows", _place(head), done.trimmed, 0, 0)


def _place(head: Head) -> str:
    return f"{head.namespace}.{head.name}"


def _measured(files: Iterable[str]) -> tuple[int, int]:
    sizes = [size for size in at_once(file_size, files) if size is not None]
    return len(sizes), sum(sizes)
