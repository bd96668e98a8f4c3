"""A lake behind a REST catalog: relations, leases and staged work.

Metadata comes with the server's answers and is remembered by its location, so a relation is asked
for once per look. Publishing is in ``rest_publish``, clean-up in ``rest_cleanup``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sqb import cachefile
from sqb.errors import SqbError
from sqb.hashing import digest
from sqb.lake import rest_cleanup, rest_publish
from sqb.lake.catalog import Head, Kind
from sqb.lake.facts import FactsCache
from sqb.lake.failpoints import reached
from sqb.lake.io import is_local, read_bytes
from sqb.lake.lake import Key, MakeStamp, Mode
from sqb.lake.metadata import TableFacts, parse_facts
from sqb.lake.rest_cleanup import BRANCH
from sqb.lake.rest_client import Answer, RestClient, UnknownOutcome
from sqb.lake.rest_updates import main_of, on_branch
from sqb.lake.shape import Shape, fits
from sqb.lake.staging import Staged, alias_name, refuse_deleting, stage_schema

_THREADS = 8
_LAYOUT = 1

T = TypeVar("T")


class Loaded(msgspec.Struct, frozen=True):
    """A relation as the server describes it."""

    head: Head
    document: dict[str, Any]


class RestLake:
    """One REST catalog."""

    warehouse = ""
    swaps_kinds = False
    path: Path | None = None

    def __init__(self, client: RestClient, memory: Path | None) -> None:
        self.client = client
        self.name = client.name
        self._memory = memory
        self._key = digest(client.name, client.place)
        self._mode: Mode | None = None
        self._known: dict[str, bytes] = {}
        self._there: set[str] = set()
        self._lock = threading.Lock()
        #: Staged work that the server may still publish: a commit whose outcome nobody knows.
        self.in_doubt: set[Key] = set()

    def __repr__(self) -> str:
        return f"RestLake({self.name!r}, {self.place!r})"

    @property
    def place(self) -> str:
        """The address as it may be shown."""
        return self.client.place

    @property
    def mode(self) -> Mode | None:
        """How rebuilt tables are published, as earlier builds found out."""
        if self._mode is None:
            self._mode = self._modes().get(self._key)
        return self._mode

    def close(self) -> None:
        """Let go of connections."""
        self.client.close()

    # Relations

    @property
    def keeps_house(self) -> bool:
        """The server's own maintenance does."""
        return False

    def read(self, location: str) -> bytes:
        """The metadata document at a location: from an answer, else from the file itself."""
        with self._lock:
            found = self._known.get(location)
        if found is not None:
            return found
        if not is_local(location):
            raise FileNotFoundError(location)
        return read_bytes(location)

    def heads(self, namespaces: Collection[str] | None = None) -> dict[Key, Head]:
        """Every relation, or those of some namespaces: a call for each."""
        if namespaces is None:
            namespaces = self.namespaces()
        return self._load_all(self.names(namespaces))

    def look(self, relations: Collection[Key], whole: Collection[str]) -> dict[Key, Head]:
        """Two lists for each namespace, then a call for each relation that is there."""
        listed = self.names({namespace for namespace, _ in relations} | {*whole})
        wanted = [item for item in listed if item[:2] in relations or item[0] in whole]
        return self._load_all(wanted)

    def head(self, namespace: str, name: str) -> Head | None:
        """One relation, or None."""
        found = self.load(namespace, name)
        return found.head if found is not None else None

    def load(self, namespace: str, name: str, kind: Kind | None = None) -> Loaded | None:
        """A relation with its document; without ``kind`` it may be either."""
        for each in ("table", "view") if kind is None else (kind,):
            answer = self.client.get(self.url(namespace, f"{each}s", name))
            # Servers without views answer with one of these.
            if answer.status in {404, 405, 406, 501}:
                continue
            return self.remember(namespace, name, each, self._good(answer, f"load {name}"))
        return None

    def remember(self, namespace: str, name: str, kind: str, answer: dict[str, Any]) -> Loaded:
        """What an answer says about a relation."""
        document = answer["metadata"]
        data = msgspec.json.encode(document)
        # Always there but for tables that were never committed; a document of its own names itself.
        location = answer.get("metadata-location") or f"rest:{digest(data.decode())}"
        with self._lock:
            self._known[location] = data
        return Loaded(
            Head(namespace, name, "view" if kind == "view" else "table", location), document
        )

    def document(self, head: Head) -> dict[str, Any]:
        """The document behind a head that was loaded before."""
        return msgspec.json.decode(self.read(head.location), type=dict[str, Any])

    def drop(self, namespace: str, name: str, kind: Kind) -> bool:
        """Drop a name, never its files; False if it was gone."""
        params = {"purgeRequested": "false"} if kind == "table" else {}
        answer = self.client.delete(self.url(namespace, f"{kind}s", name), **params)
        if answer.status == 404:
            return False
        self._good(answer, f"drop {namespace}.{name}")
        return True

    @staticmethod
    def url(namespace: str, *rest: str) -> str:
        """The path of something in a namespace."""
        from urllib.parse import quote

        parts = "\x1f".join(namespace.split("."))
        return "/".join(["namespaces", quote(parts, safe=""), *(quote(p, safe="") for p in rest)])

    def namespaces(self) -> list[str]:
        """All namespaces of the top level."""
        found = self._pages("namespaces", "namespaces")
        return [".".join(parts) for parts in found or []]

    def names(self, namespaces: Collection[str]) -> list[tuple[str, str, Kind]]:
        """What is in some namespaces, without loading it."""

        def one(item: tuple[str, Kind]) -> list[tuple[str, str, Kind]]:
            namespace, kind = item
            found = self._pages(self.url(namespace, f"{kind}s"), "identifiers")
            return [(namespace, entry["name"], kind) for entry in found or []]

        kinds: tuple[Kind, Kind] = ("table", "view")
        asked = [(namespace, kind) for namespace in sorted(namespaces) for kind in kinds]
        return [entry for page in _parallel(one, asked) for entry in page]

    def _pages(self, path: str, key: str) -> list[Any] | None:
        """All pages of a list; None if there is nothing to list."""
        out: list[Any] = []
        params: dict[str, str] = {}
        while True:
            answer = self.client.get(path, **params)
            if answer.status in {404, 405, 406, 501}:
                return None
            body = self._good(answer, f"list {path}")
            out += body.get(key) or []
            if not body.get("next-page-token"):
                return out
            params = {"pageToken": body["next-page-token"]}

    def _load_all(self, items: list[tuple[str, str, Kind]]) -> dict[Key, Head]:
        found = _parallel(lambda item: self.load(*item), items)
        return {(f.head.namespace, f.head.name): f.head for f in found if f is not None}

    def _good(self, answer: Answer, doing: str) -> dict[str, Any]:
        return self.client.expect(answer, doing)

    # Namespaces

    def ensure_namespace(self, namespace: str) -> None:
        """Create a namespace if it is missing."""
        if namespace in self._there:
            return
        if not self._has_namespace(namespace):
            body = {"namespace": namespace.split("."), "properties": {}}
            try:
                answer = self.client.post("namespaces", body, again=True)
                if answer.status != 409:
                    self._good(answer, f"create the schema {namespace}")
            except SqbError:
                # A server may break when two make one at the same moment.
                if not self._has_namespace(namespace):
                    raise
        self._there.add(namespace)

    def _has_namespace(self, namespace: str) -> bool:
        return self.client.get(self.url(namespace)).good

    def namespace_properties(self, namespace: str) -> dict[str, str]:
        """The properties of a namespace; empty if there is no such namespace."""
        answer = self.client.get(self.url(namespace))
        if answer.status == 404:
            return {}
        found = self._good(answer, f"read the schema {namespace}").get("properties")
        return {str(k): str(v) for k, v in (found or {}).items()}

    def set_namespace_property(self, namespace: str, key: str, value: str) -> None:
        """Set one property, whatever it was before."""
        self._change(namespace, {"updates": {key: value}, "removals": []})

    def remove_namespace_property(self, namespace: str, key: str) -> None:
        """Remove one property if it is there."""
        self._change(namespace, {"updates": {}, "removals": [key]})

    def _change(self, namespace: str, body: object) -> None:
        answer = self.client.post(self.url(namespace, "properties"), body, again=True)
        self._good(answer, f"note a lease in the schema {namespace}")

    # Staging

    def stage(self, schema: str, table: str, run_id: str, shape: Shape) -> Staged:
        """Remember the target's head and say where its successor of this shape is built."""
        base = self.load(schema, table)
        reached("publish:1")
        namespace, name = stage_schema(schema), alias_name(table, run_id)
        self.ensure_namespace(namespace)
        if base is None or base.head.kind == "view":
            head = base.head if base is not None else None
            location = self._new_location(schema, table)
            return Staged(head, None, namespace, name, run_id, location)
        refuse_deleting(base.document.get("properties", {}), base.head)
        if self.mode in {None, "alias"}:
            body = {"name": name, "metadata-location": base.head.location}
            answer = self.client.post(self.url(namespace, "register"), body)
            if not answer.refused:
                body = self._good(answer, f"register a second name for {schema}.{table}")
                alias = self.remember(namespace, name, "table", body).head
                self._remember_mode("alias")
                reached("publish:2")
                return Staged(base.head, alias, namespace, name, run_id)
            self._remember_mode("branch")
        facts = parse_facts(msgspec.json.encode(base.document), base.head.location)
        if self.mode == "branch" and main_of(base.document) is not None and fits(shape, facts):
            branch = f"sqb_{run_id.replace('-', '_')}"
            self.set_namespace_property(namespace, BRANCH + name, branch)
            if self._branch(base, branch):
                reached("publish:2")
                return Staged(base.head, None, schema, table, run_id, branch=branch)
            self.remove_namespace_property(namespace, BRANCH + name)
            self._remember_mode("replace")
        reached("publish:2")
        return Staged(base.head, None, schema, table, run_id, in_place=True)

    def staged_facts(self, staged: Staged, facts: FactsCache) -> TableFacts | None:  # noqa: ARG002
        """What stands there now that rows were written; None if it was taken away."""
        found = self.load(staged.namespace, staged.name, "table")
        if found is None:
            return None
        document = found.document
        if staged.branch is not None:
            if staged.branch not in document.get("refs", {}):
                return None
            document = on_branch(document, staged.branch)
        return parse_facts(msgspec.json.encode(document), found.head.location)

    def _new_location(self, schema: str, table: str) -> str | None:
        """Where the server would put a new table of this name; None if it does not tell."""
        self.ensure_namespace(schema)
        column = {"id": 1, "name": "c", "type": "int", "required": False}
        body = {
            "name": table,
            "schema": {"type": "struct", "schema-id": 0, "fields": [column]},
            "stage-create": True,
        }
        try:
            answer = self.client.post(self.url(schema, "tables"), body, again=True)
        except UnknownOutcome:
            return None
        found = answer.body.get("metadata", {}).get("location") if answer.good else None
        return str(found) if found else None

    def _branch(self, base: Loaded, branch: str) -> bool:
        """Make a branch at the base's snapshot; False if the server has no branches."""
        ref = {"type": "branch", "ref-name": branch, "snapshot-id": main_of(base.document)}
        updates = [{"action": "set-snapshot-ref", **ref}]
        uuid = {"type": "assert-table-uuid", "uuid": base.document["table-uuid"]}
        answer = self.commit(base.head, [uuid], updates)
        if answer.refused and answer.status not in {404, 409}:
            return False
        self._good(answer, f"make a branch of {base.head.name}")
        return True

    def commit(self, head: Head, requirements: list[Any], updates: list[Any]) -> Answer:
        """One commit on a table or view."""
        place = {"namespace": head.namespace.split("."), "name": head.name}
        body = {"identifier": place, "requirements": requirements, "updates": updates}
        return self.client.post(self.url(head.namespace, f"{head.kind}s", head.name), body)

    def _modes(self) -> dict[str, Mode]:
        found = cachefile.read(self._memory, dict[str, Mode], _LAYOUT) if self._memory else None
        return found or {}

    def _remember_mode(self, mode: Mode) -> None:
        if self.mode == mode:
            return
        self._mode = mode
        if self._memory is not None:
            cachefile.write(self._memory, {**self._modes(), self._key: mode}, _LAYOUT)

    # Clean-up

    def discard(self, staged: Staged, facts: FactsCache | None = None) -> None:  # noqa: ARG002
        """Take away what is left of staged work: names first, then files that only it reaches."""
        rest_cleanup.discard(self, staged)

    def leftovers(self, stage_schemas: Collection[str], heads: Mapping[Key, Head]) -> bool:
        """Did a build leave staged work behind?"""
        if any(namespace in stage_schemas for namespace, _ in heads):
            return True
        if self.mode != "branch":
            return False
        found = _parallel(self.namespace_properties, sorted(stage_schemas))
        return any(key.startswith(BRANCH) for properties in found for key in properties)

    def sweep(self, stage_schema: str, now: float, *, facts: FactsCache | None = None) -> list[str]:  # noqa: ARG002
        """Discard all staged work without a live lease, and the dead leases; their names."""
        return rest_cleanup.sweep(self, stage_schema, now)

    # Publishing

    def publish_table(
        self,
        *,
        namespace: str,
        table: str,
        staged: Staged,
        properties: Mapping[str, str],
        make_stamp: MakeStamp,
        sort_order: tuple[str, ...] | None = None,
    ) -> Head:
        """Make the staged table the target's own, with exactly these properties and a stamp."""
        way = rest_publish.first_table if staged.creates else rest_publish.next_table
        return way(self, namespace, table, staged, properties, make_stamp, sort_order)

    def publish_properties(
        self,
        *,
        namespace: str,
        table: str,
        base: Head,
        run_id: str,
        properties: Mapping[str, str],
        make_stamp: MakeStamp,
        sort_order: tuple[str, ...] | None = None,
    ) -> Head:
        """Give a table other properties or another stamp, its rows untouched."""
        staged = Staged(base, base, namespace, table, run_id)
        return rest_publish.next_table(
            self, namespace, table, staged, properties, make_stamp, sort_order
        )

    def publish_view(
        self,
        *,
        namespace: str,
        name: str,
        base: Head | None,
        run_id: str,  # noqa: ARG002 - a view is not staged here
        sql: str,
        schema: Mapping[str, Any],
        properties: Mapping[str, str],
        make_stamp: MakeStamp,
    ) -> Head:
        """Make or replace a view; a table of that name is dropped first."""
        return rest_publish.view(self, namespace, name, base, sql, schema, properties, make_stamp)


def _parallel(call: Callable[[Any], T], items: Collection[Any]) -> list[T]:
    """One answer for each item, in order; a few at a time."""
    if len(items) < 2:
        return [call(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(call, items))
