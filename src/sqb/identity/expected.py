"""What the project asks for: each node's local hash and its version.

local = the node itself (query, identity config, session settings that change results);
version = local composed with the versions of everything above it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from sqb.compile.compiler import namespace_of, place_of
from sqb.compile.nodes import Binding, Compiled, CompiledModel
from sqb.errors import SqbError
from sqb.graph.graph import CycleError, Graph
from sqb.hashing import digest
from sqb.identity.constants import bound_constants, clock
from sqb.lake.describe import Description, encode
from sqb.project.config import Config
from sqb.sql.analysis import TODAY
from sqb.sql.version import scheme

_SESSION_KEYS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")
_SESSION_DEFAULTS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}


class Expected(msgspec.Struct, frozen=True):
    """A buildable node as the project wants it.

    ``lines`` says where each input is named first; ``described`` is what the relation's comments
    shall say, which is no part of its identity. ``full_refresh`` is what its header says of
    rebuilding it, ``replay`` what becomes of its rows when its definition changes. An empty
    ``relation``: it has none, such as a function.
    """

    name: str
    type: str
    path: str
    materialized: str
    namespace: str
    relation: str
    tags: tuple[str, ...]
    inputs: tuple[str, ...]
    query: str
    config: str
    local: str
    version: str
    constants: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    described: str = ""
    full_refresh: bool | None = None
    replay: str | None = None
    #: The model whose groups it holds, for sqb's own use.
    state_of: str | None = None
    #: Why it has no row state although its header asks for one.
    stateless: str = ""

    @property
    def place(self) -> str:
        """Where its relation stands: ``schema.name``."""
        return f"{self.namespace}.{self.relation}"


def namespaces_of(config: Config, expected: Mapping[str, Expected]) -> list[str]:
    """The schemas that a target writes."""
    return sorted({e.namespace for e in expected.values()} | {config.target.schema})


def session_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """The session settings that change results, as every query of a build must find them."""
    chosen = {**_SESSION_DEFAULTS, **{k: v for k, v in conf.items() if k in _SESSION_KEYS}}
    return chosen | {k: v for k, v in conf.items() if k.startswith("spark.sql.legacy.")}


def session_settings(conf: Mapping[str, str]) -> str:
    """The same as canonical text: a part of every model's identity."""
    return json.dumps(session_conf(conf), sort_keys=True)


def settings_text(config: str) -> str:
    """``Expected.config`` for people: a line per setting.

    >>> settings_text('{"materialized":"table"}\\n{"spark.sql.ansi.enabled":"true"}')
    'materialized: "table"\\nspark.sql.ansi.enabled: "true"'
    """
    # a view's identity leaves its kind unsaid
    settings: dict[str, object] = {"materialized": "view"}
    for part in config.splitlines():
        settings |= json.loads(part)
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in settings.items())


def session_time_zone(conf: Mapping[str, str]) -> str:
    """The time zone that queries run in."""
    key = "spark.sql.session.timeZone"
    return conf.get(key, _SESSION_DEFAULTS[key])


def constants_of(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """The bound constants of a command, in the session's time zone."""
    return bound_constants(clock(environ), session_time_zone(config.spark.conf))


def compose_version(local: str, upstream: Mapping[str, str]) -> str:
    """A node's version: its own hash and the versions of the models and seeds it reads."""
    return digest(local, *(field for pair in sorted(upstream.items()) for field in pair))


def build_graph(compiled: Compiled) -> Graph:
    """The project's graph; a circle is an error that prints it."""
    graph = Graph(compiled.parents)
    try:
        _ = graph.order
    except CycleError as error:
        first = compiled.models[error.path[0]]
        raise SqbError(
            "P006",
            f"models depend on each other in a circle: {' -> '.join(error.path)}",
            file=first.path,
            line=first.first_line,
            help="remove one of these references",
        ) from error
    return graph


def expect(compiled: Compiled, graph: Graph, config: Config) -> dict[str, Expected]:
    """Every model and seed, in topological order."""
    session = session_settings(config.spark.conf)
    current = scheme()
    out: dict[str, Expected] = {}
    for name in graph.order:
        model = compiled.models.get(name)
        if model is not None:
            settings = model.settings
            namespace, relation = place_of(config, model)
            identity = f"{settings.identity}\n{session}"
            local = digest("model", current, model.query_hash, identity)
            inputs = compiled.parents[name]
            upstream = {parent: out[parent].version for parent in inputs if parent in out}
            out[name] = Expected(
                name=name,
                type="model",
                path=model.path,
                materialized=settings.materialized,
                namespace=namespace,
                relation=relation,
                tags=settings.tags,
                inputs=inputs,
                query=model.query_hash,
                config=identity,
                local=local,
                version=compose_version(local, upstream),
                constants=(TODAY,) * any(c.name == TODAY for c in model.analysis.constants),
                volatile=model.analysis.volatile,
                lines=_first_lines(compiled.bindings[name]),
                described=_described(settings.description, settings.column_descriptions),
                full_refresh=settings.options.get("full_refresh"),
                replay=_replay(settings.materialized, settings.options),
                state_of=settings.state_of,
                stateless=_stateless(model),
            )
        elif name in compiled.seeds:
            seed = compiled.seeds[name]
            local = digest("seed", seed.content_hash)
            out[name] = Expected(
                name=name,
                type="seed",
                path=seed.path,
                materialized="seed",
                namespace=namespace_of(config, seed.schema),
                relation=name,
                tags=seed.tags,
                inputs=(),
                query=seed.content_hash,
                config="",
                local=local,
                version=compose_version(local, {}),
                described=_described(seed.description, seed.column_descriptions),
            )
    return out


def _stateless(model: CompiledModel) -> str:
    state = model.row_state
    return state.why if state is not None and state.asked else ""


def _replay(materialized: str, options: Mapping[str, object]) -> str | None:
    """What a change of its definition does to the rows of a table that is not just its query."""
    declared = options.get("replay_on_change")
    history = materialized in ("append", "scd2") or options.get("deletes") == "keep"
    if declared is not None and (history or materialized == "merge"):
        return str(declared)
    return "forward" if history else None


def _described(description: str | None, columns: dict[str, str]) -> str:
    if not description and not columns:
        return ""
    return encode(Description(description or "", columns))


def _first_lines(bindings: tuple[Binding, ...]) -> tuple[int, ...]:
    lines: dict[str, int] = {}
    for binding in bindings:
        lines.setdefault(binding.name, binding.reference.line)
    return tuple(lines.values())
