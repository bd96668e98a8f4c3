"""What a build does for the lake at its end: expire, trim and pack what this build made grow.

Only tables that the build published, and the state tables it appended to, are looked at, and only
those that have grown enough. A failure here is a note: the build itself is done.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqb.errors import SqbError
from sqb.lake.catalog import Head
from sqb.lake.expiry import expire
from sqb.lake.metadata import read_document
from sqb.lake.publish import folder_and_version
from sqb.spark.session import name_jobs
from sqb.upkeep.census import Lake, is_excluded, is_state, stamp_of
from sqb.upkeep.compaction import choose, compact, counted, files_of
from sqb.upkeep.needed import Needs, is_due, pays_off, removable
from sqb.upkeep.state_tables import KEEP, is_scattered, pack

if TYPE_CHECKING:
    from sqb.spark.pool import SessionPool


def tidy(
    lake: Lake,
    published: Sequence[Head],
    schemas: Iterable[str],
    run_id: str,
    pool: SessionPool | None = None,
    seconds: float = 60.0,
) -> list[str]:
    """Expire and pack what has grown; what went wrong, in words.

    Small files of models are packed only where Spark runs already: ``pool``. After about
    ``seconds`` the rest is left to the next build.
    """
    if not lake.settings.automatic:
        return []
    try:
        return list(_tidy(lake, published, schemas, run_id, pool, time.monotonic() + seconds))
    except Exception as error:  # noqa: BLE001 - the build is done, whatever happens here
        return [_sentence(error)]


def _tidy(
    lake: Lake,
    published: Sequence[Head],
    schemas: Iterable[str],
    run_id: str,
    pool: SessionPool | None,
    until: float,
) -> Iterator[str]:
    keep = lake.settings.keep_snapshots
    if pool is not None:
        try:
            published = [*_compacted(lake, published, pool, run_id)]
        except Exception as error:  # noqa: BLE001 - whatever Spark says; expiry goes on
            yield _sentence(error)
    states = [h for (_, name), h in lake.catalog.heads(schemas).items() if is_state(name)]
    spared = lake.settings.exclude_patterns
    due = [
        h
        for h in published
        if h.kind == "table"
        and not is_excluded(h.namespace, h.name, spared)
        and _is_due(lake, h, keep)
    ]
    due_states = [h for h in states if _is_due(lake, h, KEEP)]
    scattered = [h for h in states if is_scattered(_document(lake, h))]
    if due or due_states:
        needs = lake.census().needs
        for head in due:
            if time.monotonic() > until:
                break
            if stamp_of(lake.facts.get(head.location)) is not None:
                yield from _expire(lake, head, needs, keep)
        for head in due_states:
            yield from _expire(lake, head, needs, KEEP)
    for head in scattered:
        now = lake.catalog.head(head.namespace, head.name)
        if now is not None:
            pack(lake.catalog, lake.store, lake.facts, now, f"{run_id}-pack")


def _compacted(
    lake: Lake, published: Sequence[Head], pool: SessionPool, run_id: str
) -> Iterator[Head]:
    """The heads after packing the most scattered of the tables."""
    mine = [h for h in published if h.kind == "table" and lake.settings.compact]
    candidates = [files_of(head, _document(lake, head)) for head in mine]
    likely = [counted(c) for c in choose(candidates, lake.settings)]
    chosen = {c.head for c in choose(likely, lake.settings)}
    for head in published:
        moved = None
        if head in chosen and stamp_of(lake.facts.get(head.location)) is not None:
            with pool.acquire() as session:
                name_jobs(session, f"sqb compact {head.name}")
                arguments = (lake.catalog, lake.facts, session, head, lake.settings)
                moved = compact(*arguments, f"{run_id}-pack")
        yield moved or head


def _is_due(lake: Lake, head: Head, keep: int) -> bool:
    # The number of a metadata file counts commits: a young table needs no look inside.
    if folder_and_version(head.location)[1] <= keep:
        return False
    return is_due(_document(lake, head), keep)


def _expire(lake: Lake, head: Head, needs: Needs, keep: int) -> Iterator[str]:
    try:
        document = _document(lake, head)
        if document.get("properties", {}).get("gc.enabled", "true").lower() == "false":
            return
        found = removable(document, needs, keep=keep)
        if not pays_off(document, found):
            return
        done = expire(lake.catalog, head, found.snapshots, found.metadata, lake.facts)
        if done is not None:
            lake.store.carry(head.location, done.head.location)
    except (SqbError, OSError) as error:
        yield f"{head.namespace}.{head.name}: {_sentence(error)}"


def _document(lake: Lake, head: Head) -> dict[str, Any]:
    return read_document(head.location, warehouse=lake.catalog.warehouse)


def _sentence(error: Exception) -> str:
    if isinstance(error, SqbError):
        return f"upkeep left something for later: {error.message}"
    first = str(error).strip().partition("\n")[0]
    return f"upkeep left something for later: {type(error).__name__}: {first}"
