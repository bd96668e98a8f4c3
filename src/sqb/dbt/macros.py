"""The macros that a node's text runs, and those that run for its materialization.

dbt lists a model's direct macros, as far as it met them while parsing, and each macro's callees.
The closure over both is what a change of a macro reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sqb.dbt.asked import ANY, NOTHING, Asked, asked_by, united
from sqb.dbt.manifest import Manifest, RawMacro
from sqb.hashing import digest

#: Their whole effect is in the names of relations, which are compared themselves.
_NAMING = frozenset({"generate_schema_name", "generate_alias_name", "generate_database_name"})


class Together(msgspec.Struct, frozen=True):
    """A set of macros: a hash of each by its name for people, and what their texts ask for.

    A macro of another package is ``package.name``.
    """

    hashes: dict[str, str]
    asked: Asked


class Macros:
    """The macros of one manifest. Those of dbt and of its adapter are *built in*."""

    def __init__(self, manifest: Manifest) -> None:
        adapter = manifest.metadata.adapter_type or "spark"
        self._builtin = frozenset({"dbt", f"dbt_{adapter}"})
        self._adapter = adapter
        self._root = manifest.metadata.project_name
        self._macros = manifest.macros
        self._own: dict[str, list[str]] = {}
        for unique_id, macro in manifest.macros.items():
            if macro.package_name not in self._builtin:
                self._own.setdefault(macro.name, []).append(unique_id)
        self._closed: dict[str, frozenset[str]] = {}
        self._asked: dict[str, Asked] = {}
        self._hashes: dict[str, str] = {}
        self._for_kind: dict[str, frozenset[str]] = {}
        self._together: dict[frozenset[str], Together] = {}

    def used_by(self, listed: Iterable[str], asked: Asked) -> frozenset[str]:
        """All macros that run for a text: those that dbt lists, those it names, and theirs."""
        found: set[str] = set()
        for unique_id in listed:
            found |= self._closure(unique_id)
        for name in asked.calls & self._own.keys():
            for unique_id in self._own[name]:
                found |= self._closure(unique_id)
        return frozenset(found)

    def materializing(self, materialized: str) -> frozenset[str]:
        """The project's and its packages' own macros that take part in a materialization."""
        known = self._for_kind.get(materialized)
        if known is None:
            names = {f"materialization_{materialized}_{self._adapter}"}
            names.add(f"materialization_{materialized}_default")
            found: set[str] = set()
            for unique_id, macro in self._macros.items():
                if macro.name in names:
                    found |= self._closure(unique_id)
            known = frozenset(m for m in found if not self._is_builtin(m))
            self._for_kind[materialized] = known
        return known

    def together(self, unique_ids: frozenset[str]) -> Together:
        """What a set of macros is and asks for; those built in are one, called ``dbt``."""
        known = self._together.get(unique_ids)
        if known is None:
            asked = united([self._asked_by(unique_id) for unique_id in unique_ids])
            known = self._together[unique_ids] = Together(self._parts(unique_ids), asked)
        return known

    def _parts(self, unique_ids: Iterable[str]) -> dict[str, str]:
        builtin: list[str] = []
        parts: dict[str, str] = {}
        for unique_id in sorted(unique_ids):
            macro = self._macros[unique_id]
            if macro.package_name in self._builtin:
                builtin.append(unique_id)
            elif macro.name not in _NAMING:
                own = macro.package_name == self._root
                name = macro.name if own else f"{macro.package_name}.{macro.name}"
                parts[name] = self._hash(unique_id)
        if builtin:
            parts["dbt"] = digest(*(field for m in builtin for field in (m, self._hash(m))))
        return parts

    def _is_builtin(self, unique_id: str) -> bool:
        return self._macros[unique_id].package_name in self._builtin

    def _closure(self, start: str) -> frozenset[str]:
        known = self._closed.get(start)
        if known is None:
            reached: set[str] = set()
            waiting = [start]
            while waiting:
                unique_id = waiting.pop()
                if unique_id in reached or unique_id not in self._macros:
                    continue
                reached.add(unique_id)
                waiting.extend(self._callees(self._macros[unique_id]))
            known = self._closed[start] = frozenset(reached)
        return known

    def _callees(self, macro: RawMacro) -> Iterable[str]:
        yield from macro.depends_on.macros
        if macro.package_name not in self._builtin:
            return
        # a macro of the root project stands in for one of the same name that is built in
        for unique_id in self._own.get(macro.name, ()):
            if self._macros[unique_id].package_name == self._root:
                yield unique_id

    def _asked_by(self, unique_id: str) -> Asked:
        known = self._asked.get(unique_id)
        if known is None:
            # dbt's own speak of a target relation and of tags without reading the user's
            own = not self._is_builtin(unique_id)
            known = asked_by(self._macros[unique_id].macro_sql) if own else NOTHING
            self._asked[unique_id] = known
        return known

    def _hash(self, unique_id: str) -> str:
        known = self._hashes.get(unique_id)
        if known is None:
            known = self._hashes[unique_id] = digest(self._macros[unique_id].macro_sql)
        return known


def values_asked(names: frozenset[str], known: Mapping[str, str]) -> dict[str, str]:
    """The values of names, each behind a sign that tells an empty one from none.

    For a name that is computed, they are those of all that are known.

    >>> values_asked(frozenset({"a", "b"}), {"a": "1", "c": "3"})
    {'a': '=1', 'b': ''}
    """
    wanted = (names - {ANY}) | (known.keys() if ANY in names else frozenset())
    return {name: f"={known[name]}" if name in known else "" for name in sorted(wanted)}
