"""Who a dbt node is: its text, and all that dbt's checksum of the text misses.

Pure: the values of variables and of the environment are arguments. ``full`` is the checksum and the
parts, ``normalised`` the same with the text's comments and white space left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from sqb.dbt.asked import NOTHING, asked_by, united
from sqb.dbt.macros import Macros, values_asked
from sqb.dbt.manifest import Manifest, RawNode, RawSource, RawUnitTest
from sqb.dbt.nodes import (
    BUILT,
    TESTS,
    DbtNode,
    Freshness,
    through_ephemeral,
)
from sqb.dbt.normal import normalised
from sqb.graph.graph import Graph
from sqb.hashing import digest
from sqb.identity.expected import compose_version
from sqb.identity.hashes import Hashes

#: Keys of a node's config that can't change what is built, or that other parts stand for; every
#: other key counts, so that a new one is never overlooked.
_NOT_IDENTITY = frozenset(
    {
        # where it stands: the relation's name says it
        *("alias", "schema", "database", "target_schema", "target_database", "quoting"),
        # a disabled node is not there
        "enabled",
        # words for people, and who may refer to it; counted where code reads them (below)
        *("tags", "meta", "description", "docs", "group", "access"),
        # when and how to run, not what: dbt's own scheduling and its linting
        *("freshness", "concurrent_batches", "static_analysis"),
        # counted as a contract with its columns, if it is enforced
        "contract",
    }
)
#: Keys with a default value that only one kind of model reads.
_MICROBATCH_ONLY = frozenset({"lookback", "batch_size", "begin"})
_HOOKS = ("pre-hook", "post-hook")
#: Parts are compared one by one only to name a cause, so a short form will do.
_SHORT = 16


class Surroundings(msgspec.Struct, frozen=True):
    """What a project is read with, beside its files.

    ``vars`` has the variables that each package sees, as canonical JSON; ``env`` the variables of
    the environment that the project may read, since a text that computes a name gets all of them;
    ``target`` the fields of the target that code may read; ``files`` the hash of each seed whose
    checksum is only a path; ``before`` the nodes of an earlier look, to save work.
    """

    vars: Mapping[str, Mapping[str, str]] = {}
    env: Mapping[str, str] = {}
    target: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    before: Mapping[str, DbtNode] = {}


def large_seeds(manifest: Manifest) -> dict[str, tuple[str, str]]:
    """Seeds whose checksum is only a path: root folder and path of each, by unique id."""
    return {
        unique_id: (node.root_path or "", node.original_file_path)
        for unique_id, node in manifest.nodes.items()
        if node.resource_type == "seed" and node.checksum.name == "path"
    }


def identify(manifest: Manifest, around: Surroundings) -> dict[str, DbtNode]:
    """Every node of a manifest that sqb plans or observes, parents first."""
    raw = {
        unique_id: node
        for unique_id, node in (manifest.nodes | manifest.functions).items()
        if node.resource_type in BUILT or node.resource_type in TESTS
    }
    reads = {unique_id: node.depends_on.nodes for unique_id, node in raw.items()}
    reads |= {unique_id: test.depends_on.nodes for unique_id, test in manifest.unit_tests.items()}
    reads |= dict.fromkeys(manifest.sources, ())
    reads = {
        unique_id: tuple(dict.fromkeys(n for n in above if n in reads and n != unique_id))
        for unique_id, above in reads.items()
    }
    ephemeral = [u for u, node in raw.items() if _is_ephemeral(node)]
    parents = through_ephemeral(reads, ephemeral)
    identifier = _Identifier(manifest, around)
    out: dict[str, DbtNode] = {}
    for unique_id in Graph(reads).order:
        if unique_id in manifest.sources:
            out[unique_id] = _source(manifest.sources[unique_id])
            continue
        above = [out[name] for name in sorted(reads[unique_id])]
        if unique_id in manifest.unit_tests:
            out[unique_id] = identifier.unit_test(manifest.unit_tests[unique_id], above)
        else:
            out[unique_id] = identifier.node(raw[unique_id], above)
        out[unique_id] = msgspec.structs.replace(out[unique_id], parents=parents[unique_id])
    return out


class _Identifier:
    def __init__(self, manifest: Manifest, around: Surroundings) -> None:
        self.macros = Macros(manifest)
        self.around = around
        # the same few values and calls stand in thousands of nodes
        self._hash = cache(digest)
        self._asked_by = cache(asked_by)

    def node(self, raw: RawNode, above: list[DbtNode]) -> DbtNode:
        """A model, seed, snapshot, function or data test with its hashes."""
        checksum = self._checksum(raw)
        parts = self._parts(raw, above)
        is_test = raw.resource_type in TESTS
        attached = raw.attached_node
        if is_test and attached is None and len(above) == 1:
            attached = above[0].unique_id
        version = None if raw.version is None else str(raw.version)
        return DbtNode(
            unique_id=raw.unique_id,
            name=raw.name,
            type=raw.resource_type,
            package=raw.package_name,
            path=raw.original_file_path,
            materialized=str(raw.config.get("materialized") or raw.resource_type),
            schema=raw.schema or "",
            alias=raw.alias or raw.name,
            relation_name=raw.relation_name,
            reads=tuple(node.unique_id for node in above),
            tags=raw.tags,
            hashes=self._hashes(raw, checksum, parts, above),
            file_format=str(raw.config.get("file_format") or ""),
            full_refresh=raw.config.get("full_refresh"),
            version=version,
            attached=attached if is_test else None,
            severity=str(raw.config.get("severity") or "error").lower() if is_test else "",
        )

    def unit_test(self, raw: RawUnitTest, above: list[DbtNode]) -> DbtNode:
        """A unit test: its rows are its text."""
        text = _canonical([raw.given, raw.expect, raw.overrides])
        checksum = digest(text)
        return DbtNode(
            unique_id=raw.unique_id,
            name=raw.name,
            type="unit_test",
            package=raw.package_name,
            path=raw.original_file_path,
            materialized="unit_test",
            reads=tuple(node.unique_id for node in above),
            tags=tuple(raw.config.get("tags") or ()),
            hashes=Hashes(checksum, normalised=checksum, full=checksum),
            version=None if raw.version is None else str(raw.version),
            attached=above[0].unique_id if above else None,
            severity="error",
        )

    def _checksum(self, raw: RawNode) -> str:
        if raw.checksum.name == "path":
            return self.around.files.get(raw.unique_id, f"path:{raw.checksum.checksum}")
        if raw.checksum.name == "none" or not raw.checksum.checksum:
            # generic tests have none: their text is what they are called with
            return digest(raw.raw_code, _canonical(raw.test_metadata))
        return raw.checksum.checksum

    def _hashes(
        self, raw: RawNode, checksum: str, parts: dict[str, str], above: list[DbtNode]
    ) -> Hashes:
        kind = raw.resource_type
        beside = digest(*(field for key in sorted(parts) for field in (key, parts[key])))
        hidden = [node for node in above if node.is_ephemeral]
        exact = [field for n in hidden for field in (n.unique_id, n.hashes.full)]
        full = digest(kind, checksum, beside, *exact)
        if kind in TESTS:
            return Hashes(checksum, normalised=full, full=full)
        body = self._body(raw, checksum)
        loose = [field for n in hidden for field in (n.unique_id, n.hashes.normalised)]
        inlined = [f for n in hidden for f in (n.unique_id, n.hashes.checksum, n.hashes.inlined)]
        local = (
            digest(kind, checksum, *inlined) if hidden else checksum,
            digest(kind, body, beside, *loose),
            full,
        )
        versions = tuple(
            compose_version(own, {n.unique_id: n.hashes.versions[i] for n in above if _counts(n)})
            for i, own in enumerate(local)
        )
        shown = {key: value[:_SHORT] for key, value in parts.items()}
        shown |= {f"ref:{n.label}": n.hashes.full[:_SHORT] for n in hidden}
        return Hashes(
            checksum,
            inlined=digest(*inlined) if hidden else "",
            normalised=local[1],
            full=full,
            versions=(versions[0], versions[1], versions[2]),
            parts=shown,
            body=body,
        )

    def _body(self, raw: RawNode, checksum: str) -> str:
        if raw.language != "sql" or not raw.raw_code or raw.resource_type in TESTS:
            return checksum
        before = self.around.before.get(raw.unique_id)
        if before is not None and before.hashes.checksum == checksum and before.hashes.body:
            return before.hashes.body
        return digest(normalised(raw.raw_code))

    def _parts(self, raw: RawNode, above: list[DbtNode]) -> dict[str, str]:
        """A hash of everything beside the text, by kind and name."""
        texts = [raw.raw_code] if raw.language == "sql" else []
        texts += [_canonical(raw.config.get(hook)) for hook in _HOOKS if raw.config.get(hook)]
        if raw.test_metadata is not None:
            texts.append(_canonical(raw.test_metadata.kwargs))
        asked = [self._asked_by(text) for text in texts]
        used: set[str] = set()
        for i, each in enumerate(asked or [NOTHING]):
            used |= self.macros.used_by(raw.depends_on.macros if i == 0 else (), each)
        if raw.resource_type in BUILT and not _is_ephemeral(raw):
            used |= self.macros.materializing(str(raw.config.get("materialized") or ""))
        macros = self.macros.together(frozenset(used))
        all_asked = united([*asked, macros.asked])

        parts = {f"macro:{name}": value for name, value in macros.hashes.items()}
        variables = self.around.vars.get(raw.package_name, {})
        for name, value in values_asked(all_asked.vars, variables).items():
            parts[f"var:{name}"] = self._hash(value)
        for name, value in values_asked(all_asked.env, self.around.env).items():
            parts[f"env:{name}"] = self._hash(value)
        for name, value in values_asked(all_asked.target, self.around.target).items():
            parts[f"config:target.{name}"] = self._hash(value)
        for name, value in _config_texts(raw, all_asked.notes).items():
            parts[f"config:{name}"] = self._hash(value)
        for node in above:
            if node.type == "source":
                parts[f"source:{node.name}"] = self._hash(node.relation_name or "")
            elif node.relation_name is not None:
                parts[f"ref:{node.label}"] = self._hash(node.relation_name)
        return parts


def _counts(node: DbtNode) -> bool:
    """Whether a parent has a version; sources have only a name."""
    return node.type in BUILT


def _config_texts(raw: RawNode, notes: frozenset[str]) -> dict[str, str]:
    """The config that counts, as canonical texts."""
    config = raw.config
    found: dict[str, str] = {}
    microbatch = config.get("incremental_strategy") == "microbatch"
    for key, value in config.items():
        if key in _NOT_IDENTITY and key not in notes:
            continue
        if key in _MICROBATCH_ONLY and not microbatch:
            continue
        # a key that is empty says as much as one that is absent
        if not _is_empty(value):
            found[key] = _canonical(value)
    contract = config.get("contract")
    if isinstance(contract, dict) and contract.get("enforced"):
        found["contract"] = _canonical([contract, list(raw.columns.values()), raw.constraints])
    if raw.relation_name is not None:
        found["relation"] = raw.relation_name
    return found


def _is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_empty(item) for item in value.values())
    return value is None or value in ([], "")


def _is_ephemeral(raw: RawNode) -> bool:
    return raw.resource_type == "model" and raw.config.get("materialized") == "ephemeral"


def _source(raw: RawSource) -> DbtNode:
    age = raw.freshness
    freshness = Freshness(
        loaded_at_field=raw.loaded_at_field,
        loaded_at_query=raw.loaded_at_query,
        filter=age.filter if age else None,
        warn_after=_threshold(age.warn_after) if age else None,
        error_after=_threshold(age.error_after) if age else None,
    )
    name = raw.relation_name or f"{raw.schema}.{raw.identifier}"
    return DbtNode(
        unique_id=raw.unique_id,
        name=f"{raw.source_name}.{raw.name}",
        type="source",
        package=raw.package_name,
        path=raw.original_file_path,
        materialized="source",
        schema=raw.schema or "",
        alias=raw.identifier or raw.name,
        relation_name=name,
        tags=raw.tags,
        hashes=Hashes(digest(name)),
        freshness=freshness if age is not None or raw.loaded_at_query else None,
    )


def _threshold(value: Any) -> tuple[int, str] | None:
    if value is None or value.count is None or value.period is None:
        return None
    return value.count, value.period


def _canonical(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
