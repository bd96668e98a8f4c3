"""Many small files of a model's table become few, through the publish protocol.

The rows stay, and so do the data id and the stamp: a compaction is a ``replace`` snapshot, which
the stamp looks through, so nobody below becomes stale. Deciding is pure; Spark does the rewrite,
in a build that has it running anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.execution.statement import full_name, literal
from sqb.lake.catalog import Head, SqlCatalog
from sqb.lake.cleanup import discard, partitions_in
from sqb.lake.facts import FactsCache
from sqb.lake.metadata import DEFINITION, MANAGED, STAMP, read_document
from sqb.lake.publish import Overtaken, publish_table
from sqb.lake.staging import Lease, stage, stage_schema
from sqb.project.config import JanitorConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A build packs at most so many tables: the next one goes on.
MOST_PER_BUILD = 3


class Candidate(msgspec.Struct, frozen=True):
    """A table's files: how many, how large together, in how many partitions."""

    head: Head
    files: int
    bytes: int
    partitions: int = 1


def files_of(head: Head, document: Mapping[str, Any]) -> Candidate:
    """What the current snapshot says about its files; partitions are not counted yet."""
    summary = _current(document).get("summary") or {}
    return Candidate(
        head, int(summary.get("total-data-files", 0)), int(summary.get("total-files-size", 0))
    )


def counted(candidate: Candidate) -> Candidate:
    """The candidate with its partitions counted, which means reading its manifests."""
    document = read_document(candidate.head.location)
    return msgspec.structs.replace(candidate, partitions=partitions_in(_current(document)))


def _current(document: Mapping[str, Any]) -> Mapping[str, Any]:
    main = (document.get("refs") or {}).get("main", {}).get("snapshot-id")
    current = main or document.get("current-snapshot-id")
    for snapshot in document.get("snapshots") or []:
        if snapshot["snapshot-id"] == current:
            return dict(snapshot)
    return {}


def choose(candidates: Sequence[Candidate], settings: JanitorConfig) -> list[Candidate]:
    """The tables to pack: many files, far below the target size; the most scattered first.

    At least half of the files must go, or the rewrite is not worth it. Each partition keeps one.
    """
    if not settings.compact:
        return []
    target = settings.compact_target_mb << 20
    chosen = [
        c
        for c in candidates
        if c.files >= settings.compact_min_files
        and 2 * max(c.bytes // target + 1, c.partitions) <= c.files
    ]
    return sorted(chosen, key=lambda c: (-c.files, c.head))[:MOST_PER_BUILD]


def compact(
    catalog: SqlCatalog,
    facts: FactsCache,
    session: SparkSession,
    head: Head,
    settings: JanitorConfig,
    run_id: str,
) -> Head | None:
    """Rewrite a table into larger files; None if there was nothing to do or a build came first."""
    with Lease(catalog, [stage_schema(head.namespace)], run_id):
        staged = stage(catalog, head.namespace, head.name, run_id)
        try:
            if staged.base != head:
                return None
            properties = read_document(head.location)["properties"]
            alias = literal(full_name(staged.namespace, staged.name))
            size = settings.compact_target_mb << 20
            session.sql(
                f"CALL {full_name(catalog.name, 'system', 'rewrite_data_files')}("
                f"table => {alias}, options => map('target-file-size-bytes', '{size}', "
                "'min-input-files', '2'))"
            ).collect()
            written = catalog.head(staged.namespace, staged.name)
            if written is None or written.location == head.location:
                return None
            return publish_table(
                catalog,
                namespace=head.namespace,
                table=head.name,
                staged=staged,
                properties=_own(properties),
                make_stamp=lambda _: str(properties[STAMP]),
            )
        except Overtaken:
            return None
        finally:
            leftover = catalog.head(staged.namespace, staged.name)
            if leftover is not None:
                discard(catalog, leftover, facts=facts)


def _own(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that sqb had set, to be set again."""
    listed = msgspec.json.decode(properties.get(MANAGED, "[]"), type=list[str])
    return {key: properties[key] for key in (*listed, DEFINITION) if key in properties}
