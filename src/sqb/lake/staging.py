"""Aliases, in which a run builds what it has not published yet, and the leases that protect them.

An alias is a catalog row in ``<schema>__sqb_stage`` named ``<table>__<run id>``. A run's lease is
a property of that namespace; an alias whose run has no live lease was left by a crash, and
``cleanup`` may take it away.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from types import TracebackType
from typing import Protocol

import msgspec

from sqb.errors import SqbError
from sqb.lake.catalog import Head, Point, SqlCatalog
from sqb.lake.failpoints import reached
from sqb.lake.metadata import read_facts

STAGE_SUFFIX = "__sqb_stage"
LEASE = "sqb.lease."
LEASE_TTL_S = 60.0

#: Iceberg would delete old metadata files on commit. Alias and target share their metadata log,
#: so a few commits on the alias would delete the target's live file.
DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"


class Staged(msgspec.Struct, frozen=True):
    """What a run remembers of its target, and where it stages the successor.

    ``base`` is the target's head when the work began, ``alias`` the name registered on it. There
    is none yet where a new table is to be created as ``namespace.name``, at ``location`` if that
    is known. Work on a ``branch`` or ``in_place`` has no alias: ``namespace.name`` is the target.
    """

    base: Head | None
    alias: Head | None
    namespace: str
    name: str
    run_id: str
    location: str | None = None
    branch: str | None = None
    in_place: bool = False

    @property
    def creates(self) -> bool:
        """Is a table to be created under a name of its own?"""
        return self.alias is None and self.branch is None and not self.in_place

    @property
    def parts(self) -> tuple[str, ...]:
        """The name under which Spark writes and reads it."""
        branch = (f"branch_{self.branch}",) if self.branch is not None else ()
        return (self.namespace, self.name, *branch)


class Leases(Protocol):
    """What leases and aliases are kept in: the part of a catalog that this module needs."""

    def heads(self, namespaces: Collection[str] | None = None) -> dict[tuple[str, str], Head]:
        """The relations of some namespaces."""

    def ensure_namespace(self, namespace: str) -> None:
        """Create a namespace if it is missing."""

    def namespace_properties(self, namespace: str) -> dict[str, str]:
        """The properties of a namespace."""

    def set_namespace_property(self, namespace: str, key: str, value: str) -> None:
        """Set one property."""

    def remove_namespace_property(self, namespace: str, key: str) -> None:
        """Remove one property if it is there."""


class LeaseRecord(msgspec.Struct, frozen=True):
    """Who holds a lease, since when and until when (seconds since the epoch).

    One of an older release does not say since when, so it counts as held for ever.
    """

    host: str
    pid: int
    started: int | None
    expires: float
    began: float = 0.0


def stage_schema(schema: str) -> str:
    """The namespace that holds the aliases of a schema's tables."""
    return f"{schema}{STAGE_SUFFIX}"


def alias_name(table: str, run_id: str) -> str:
    """The name of a run's alias of a table."""
    if not run_id or "__" in run_id or run_id.startswith("_"):
        raise ValueError(f"not a run id: {run_id!r}")
    return f"{table}__{run_id}"


def split_alias(name: str) -> tuple[str, str]:
    """Table and run id of an alias.

    >>> split_alias("fct__orders__20260101T000000-ab12")
    ('fct__orders', '20260101T000000-ab12')
    """
    table, _, run_id = name.rpartition("__")
    return table, run_id


def stage(catalog: SqlCatalog, schema: str, table: str, run_id: str) -> Staged:
    """Remember the target's head and register an alias on it.

    Where there is no table to start from (a first build, or the name is a view), nothing is
    registered: the caller creates a table under the alias's name.
    """
    base = catalog.head(schema, table)
    reached("publish:1")
    namespace, name = stage_schema(schema), alias_name(table, run_id)
    if base is None or base.kind == "view":
        catalog.ensure_namespace(namespace)
        location = catalog.default_location(schema, table)
        return Staged(base, None, namespace, name, run_id, location)
    refuse_deleting(read_facts(base.location, warehouse=catalog.warehouse).properties, base)
    alias = Head(namespace, name, "table", base.location)
    catalog.ensure_namespace(namespace)
    catalog.commit([Point(namespace, name, "table", base.location, expected=None)])
    reached("publish:2")
    return Staged(base, alias, namespace, name, run_id)


def refuse_deleting(properties: dict[str, str], head: Head) -> None:
    """Refuse a table whose commits delete metadata files."""
    if properties.get(DELETE_AFTER_COMMIT, "false").lower() == "true":
        raise SqbError(
            "C004",
            f"{head.namespace}.{head.name} has the table property {DELETE_AFTER_COMMIT}, with "
            "which a build could delete metadata that readers still need",
            help=f"ALTER TABLE {head.namespace}.{head.name} "
            f"UNSET TBLPROPERTIES ('{DELETE_AFTER_COMMIT}')",
            exit_code=1,
        )


class Lease:
    """Keeps a run's aliases safe from clean-up while the ``with`` block lasts.

    A thread renews it three times per ``ttl``. Renewal that fails is tried again at the next
    turn; the last failure is in ``error``.
    """

    def __init__(
        self,
        catalog: Leases,
        stage_schemas: Iterable[str],
        run_id: str,
        ttl: float = LEASE_TTL_S,
    ) -> None:
        self._catalog = catalog
        self._namespaces = [stage_schemas] if isinstance(stage_schemas, str) else [*stage_schemas]
        self._key = LEASE + run_id
        self._ttl = ttl
        self._began = time.time()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=self._key, daemon=True)
        self.error: SqbError | None = None

    def __enter__(self) -> Lease:  # noqa: PYI034 - Python 3.10 has no Self
        for namespace in self._namespaces:
            self._catalog.ensure_namespace(namespace)
        self._write()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        for namespace in self._namespaces:
            self._catalog.remove_namespace_property(namespace, self._key)

    def _renew(self) -> None:
        while not self._stop.wait(self._ttl / 3):
            try:
                self._write()
            except SqbError as error:  # noqa: PERF203 - the next turn tries again
                self.error = error

    def _write(self) -> None:
        record = LeaseRecord(
            _this_host(), os.getpid(), _started(os.getpid()), time.time() + self._ttl, self._began
        )
        text = msgspec.json.encode(record).decode()
        for namespace in self._namespaces:
            self._catalog.set_namespace_property(namespace, self._key, text)


def lapsed(catalog: Leases, stage_schema: str, now: float) -> list[Head]:
    """Aliases whose run has no lease, an expired one, or one of a dead process on this host."""
    # Aliases first: a lease is older than its aliases, so whose alias is seen has one by now.
    heads = catalog.heads([stage_schema]).values()
    live = live_runs(catalog, stage_schema, now)
    return [head for head in heads if split_alias(head.name)[1] not in live]


def live_runs(catalog: Leases, stage_schema: str, now: float) -> set[str]:
    """Run ids that hold a live lease on a stage schema."""
    return set(live_leases(catalog, stage_schema, now))


def live_leases(catalog: Leases, stage_schema: str, now: float) -> dict[str, LeaseRecord]:
    """The live leases on a stage schema by run id."""
    properties = catalog.namespace_properties(stage_schema)
    texts = {k.removeprefix(LEASE): v for k, v in properties.items() if k.startswith(LEASE)}
    leases = {run_id: _live(text, now) for run_id, text in texts.items()}
    return {run_id: lease for run_id, lease in leases.items() if lease is not None}


def _live(text: str, now: float) -> LeaseRecord | None:
    try:
        lease = msgspec.json.decode(text, type=LeaseRecord)
    except msgspec.DecodeError:
        return None
    if lease.expires <= now:
        return None
    # The processes of another host can't be seen from here: its lease stands until it expires.
    alive = lease.host != _this_host() or _is_alive(lease.pid, lease.started)
    return lease if alive else None


def _is_alive(pid: int, started: int | None) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # It exists, but belongs to someone else.
    return started is None or _started(pid) in {None, started}


def _this_host() -> str:
    """Host name and, where there is one, process-id namespace: containers may share the name."""
    try:
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None where /proc does not tell.

    A process id alone is used again after a while; id and start together are not.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field is the program's name, which may hold blanks and brackets.
    return int(text.rpartition(")")[2].split()[19])
