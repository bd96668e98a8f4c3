"""Files in, compiled project out; unchanged files come from the cache."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sqb import cachefile
from sqb.compile.cache import LAYOUT, CompileCache, fingerprint
from sqb.compile.nodes import (
    Binding,
    Compiled,
    CompiledModel,
    CompiledSeed,
    DbtRefs,
    ModelSettings,
    SourceTable,
)
from sqb.compile.resolve import FindDbt, Names, dbt_references
from sqb.errors import SqbError
from sqb.hashing import digest
from sqb.project.config import Config
from sqb.project.layout import ProjectFiles
from sqb.project.names import check_name, stem
from sqb.sql.version import scheme
from sqb.version import __version__

if TYPE_CHECKING:
    from sqb.sql.expand import Scope

#: Below this many files a second process costs more than it saves.
_WORTH_FORKING = 300


def compile_project(
    config: Config,
    files: ProjectFiles,
    environ: Mapping[str, str],
    cache_path: Path | None,
    find_dbt: FindDbt | None = None,
) -> Compiled:
    """Compile what changed since the cache was written; ``find_dbt`` knows what dbt builds."""
    key = _key(config, files)
    cache = cachefile.read(cache_path, CompileCache, LAYOUT) if cache_path else None
    root = Path(config.root)
    if cache is None or cache.key != key or cache.imports != _imports(root, cache.imports):
        cache = CompileCache(key=key)
    models, changed_models = _models(config, files, environ, cache)
    seeds, changed_seeds = _seeds(files, environ, cache)
    sources, changed_sources = _sources(files, environ, cache)
    if cache_path is not None and (changed_models or changed_seeds or changed_sources):
        cachefile.write(cache_path, cache, LAYOUT)
    wanted = dbt_references(models)
    dbt = find_dbt(wanted) if wanted and find_dbt is not None else DbtRefs()
    return link(config, models, seeds, sources, dbt)


#: What the schema of groups that sqb keeps for itself is called behind the model's own.
STATE_SUFFIX = "__sqb_state"


def place_of(config: Config, model: CompiledModel) -> tuple[str, str]:
    """The physical schema and name of a model's relation."""
    settings = model.settings
    suffix = STATE_SUFFIX if settings.state_of is not None else ""
    return namespace_of(config, settings.schema) + suffix, settings.alias or model.name


def namespace_of(config: Config, schema: str | None) -> str:
    """The physical schema of a node: the target's own, or ``<target schema>_<header schema>``."""
    return f"{config.target.schema}_{schema}" if schema else config.target.schema


def _key(config: Config, files: ProjectFiles) -> bytes:
    settings = json.dumps(
        [config.defaults, config.path_defaults, config.vars], sort_keys=True, default=str
    )
    parts = [__version__, scheme(), settings, config.root if files.macros else ""]
    encoded = [part.encode() for part in parts]
    for path, content in files.macros.items():
        encoded += [path.encode(), content]
    return fingerprint(*encoded)


def _models(
    config: Config, files: ProjectFiles, environ: Mapping[str, str], cache: CompileCache
) -> tuple[list[CompiledModel], bool]:
    out: list[CompiledModel] = []
    kept: dict[str, tuple[bytes, CompiledModel]] = {}
    stale: list[tuple[str, bytes, bytes]] = []
    for path, content in files.models.items():
        mark = fingerprint(content)
        entry = cache.models.get(path)
        if entry is not None and entry[0] == mark and _same_env(entry[1].env, environ):
            kept[path] = entry
            out.append(entry[1])
        else:
            stale.append((path, content, mark))
    if stale:
        scope = _scope(config, files, environ)
        if files.macros:
            from sqb.compile.macros import own_modules

            root = Path(config.root)
            cache.imports = _imports(root, (path for _, path in own_modules(root)))
        compiled = compile_all([(path, content) for path, content, _ in stale], config, scope)
        for (path, _, mark), model in zip(stale, compiled, strict=True):
            kept[path] = (mark, model)
            out.append(model)
    changed = bool(stale) or len(kept) != len(cache.models)
    cache.models = kept
    return out, changed


def _imports(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    """Fingerprints of the project's own modules that macros import; a lost file has none."""
    out: dict[str, bytes] = {}
    for path in paths:
        file = root / path
        out[path] = fingerprint(file.read_bytes()) if file.is_file() else b""
    return out


def _same_env(env: dict[str, str], environ: Mapping[str, str]) -> bool:
    return all(environ.get(name) == value for name, value in env.items())


def _scope(config: Config, files: ProjectFiles, environ: Mapping[str, str]) -> Scope:
    from sqb.compile.macros import load_macros
    from sqb.sql.expand import Scope

    return Scope(load_macros(Path(config.root), list(files.macros)), config.vars, environ)


def compile_model(path: str, content: bytes, config: Config, scope: Scope) -> CompiledModel:
    """One file: header, expansion, references, identity."""
    from sqb.project.header import split_model
    from sqb.project.keys import check_available, model_config
    from sqb.project.kind_keys import check_kind
    from sqb.sql.expand import expand
    from sqb.sql.references import analyse_tokens
    from sqb.sql.tokens import canonical_of, split_query

    name = check_name(stem(path), "model", file=path)
    text = split_model(decode(content, path), path)
    header = model_config(
        text.values, text.lines, path, config.defaults, config.path_defaults, path
    )
    check_available(header, path, text.lines)
    check_kind(header, path, text.lines)
    expanded = expand(text.body, scope, file=path, first_line=text.body_line)
    tokens = split_query(expanded.spliced.text, file=path, first_line=text.body_line)
    analysis = analyse_tokens(tokens, path)
    settings = ModelSettings(
        materialized=header.materialized,
        tags=header.tags,
        description=header.description,
        schema=header.schema,
        alias=header.alias,
        enabled=header.enabled,
        partitioned_by=header.partitioned_by,
        sorted_by=header.sorted_by,
        table_properties=header.table_properties,
        identity=header.identity,
        column_descriptions={
            column: str(declared["description"])
            for column, declared in header.columns.items()
            if declared.get("description")
        },
        options=header.options,
    )
    model = CompiledModel(
        name=name,
        path=path,
        settings=settings,
        sql=tokens.sql,
        pieces=expanded.spliced.pieces,
        body=text.body,
        first_line=text.body_line,
        analysis=analysis,
        query_hash=digest(canonical_of(tokens)),
        env=expanded.env,
    )
    if settings.options.get("row_state") != "auto":
        return model
    from sqb.compile.row_state import with_row_state

    return with_row_state(model, tokens, asked="row_state" in text.values)


def compile_all(
    files: list[tuple[str, bytes]], config: Config, scope: Scope
) -> list[CompiledModel]:
    """Compile many files, on all cores where that pays and is safe.

    Forking is safe only while this is the only thread, so a notebook compiles on one core. An
    error is raised by the file that comes first, as on one core.
    """
    cores = os.cpu_count() or 1
    alone = sys.platform == "linux" and threading.active_count() == 1
    if len(files) < _WORTH_FORKING or cores == 1 or not alone:
        return [compile_model(path, content, config, scope) for path, content in files]
    from sqb.compile.parallel import fork_map

    def some(chunk: list[tuple[str, bytes]]) -> list[CompiledModel]:
        return [compile_model(path, content, config, scope) for path, content in chunk]

    from sqb.sql import expand, references  # noqa: F401 - loaded once, before the fork

    return fork_map(some, files, min(cores, 8))


def decode(content: bytes, path: str) -> str:
    """The text of a project file."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SqbError(
            "P017", "the file is not valid UTF-8", file=path, line=line, help="save it as UTF-8"
        ) from error


def _seeds(
    files: ProjectFiles, environ: Mapping[str, str], cache: CompileCache
) -> tuple[list[CompiledSeed], bool]:
    specs_mark = _mark_yaml(files.seed_yaml, environ)
    marks = {path: fingerprint(specs_mark, content) for path, content in files.seeds.items()}
    kept = {
        path: entry
        for path, mark in marks.items()
        if (entry := cache.seeds.get(path)) is not None and entry[0] == mark
    }
    changed = len(kept) < len(marks) or len(cache.seeds) != len(marks)
    if changed or (files.seed_yaml and not marks):
        from sqb.project.seeds import load_seed_specs, match_specs, read_seed, seed_identity

        specs = load_seed_specs(files.seed_yaml, environ)
        match_specs(specs, files.seeds)
        for path, mark in marks.items():
            if path in kept:
                continue
            spec = specs.get(stem(path))
            seed = read_seed(path, files.seeds[path], spec)
            kept[path] = (
                mark,
                CompiledSeed(
                    name=seed.name,
                    path=path,
                    schema=seed.schema,
                    tags=seed.tags,
                    description=seed.description,
                    columns=seed.columns,
                    rows=len(seed.rows),
                    content_hash=digest(seed_identity(seed)),
                    column_descriptions=spec.column_descriptions if spec else {},
                ),
            )
    cache.seeds = {path: kept[path] for path in marks}
    return [entry[1] for entry in cache.seeds.values()], changed


def _mark_yaml(files: Mapping[str, bytes], environ: Mapping[str, str]) -> bytes:
    """The fingerprint of YAML files and of the environment they name."""
    parts = [part for path, content in files.items() for part in (path.encode(), content)]
    if any(b"${ENV:" in content for content in files.values()):
        parts.append(json.dumps(sorted(environ.items())).encode())
    return fingerprint(*parts)


def _sources(
    files: ProjectFiles, environ: Mapping[str, str], cache: CompileCache
) -> tuple[dict[str, SourceTable], bool]:
    mark = _mark_yaml(files.sources, environ)
    if cache.sources_key == mark:
        return cache.sources, False
    from sqb.compile.source_texts import source_table
    from sqb.project.sources import check_sources_available, load_sources

    declared = load_sources(files.sources, environ)
    check_sources_available(declared)
    cache.sources_key = mark
    cache.sources = {source.name: source_table(source) for source in declared.values()}
    return cache.sources, True


def link(
    config: Config,
    models: list[CompiledModel],
    seeds: list[CompiledSeed],
    sources: dict[str, SourceTable],
    dbt: DbtRefs | None = None,
) -> Compiled:
    """Check that names are unique, then resolve every reference to a node."""
    dbt = dbt or DbtRefs()
    models = [part for model in models for part in _parts(model)]
    enabled = _unique(models, seeds, sources)
    sources = {name: _at_home(config, source) for name, source in sources.items()}
    seed_names = {seed.name: seed for seed in seeds}
    disabled = frozenset(m.name for m in models if not m.settings.enabled)
    names = _names(config, enabled, seed_names, {**sources, **dbt.sources}, disabled, dbt)
    used = {**sources, **dbt.sources}
    expressions = names.inside_sources("expression", used)
    probes = names.inside_sources("probe", used)
    names.refuse_circles(expressions)
    bindings: dict[str, tuple[Binding, ...]] = {}
    parents: dict[str, tuple[str, ...]] = {}
    for name, model in enabled.items():
        bound: list[Binding] = []
        for reference in model.analysis.references:
            binding, undeclared = names.bind(reference, model.path)
            if undeclared is not None:
                used.setdefault(undeclared.name, undeclared)
            bound.append(binding)
        if model.settings.materialized == "view":
            names.refuse_files(bound, model.path)
        bindings[name] = tuple(bound)
        parents[name] = tuple(dict.fromkeys(b.name for b in bound))
    for name in (*seed_names, *used):
        parents[name] = ()
    return Compiled(
        enabled, seed_names, used, bindings, parents, disabled, expressions, probes, dbt
    )


def _parts(model: CompiledModel) -> tuple[CompiledModel, ...]:
    """A model, or its groups and the query over them."""
    state = model.row_state
    if state is None or state.groups is None or state.over is None:
        return (model,)
    return state.over, state.groups


def _at_home(config: Config, source: SourceTable) -> SourceTable:
    """A source that names the project's own catalog is one of the lake."""
    if source.catalog is None or source.catalog != config.catalog.name:
        return source
    return msgspec.structs.replace(source, catalog=None)


def other_catalogs(config: Config) -> frozenset[str] | None:
    """The catalogs beside the lake that queries may name; None: only the server knows them."""
    if config.spark.remote is not None:
        return None
    prefix = "spark.sql.catalog."
    names = {key.removeprefix(prefix) for key in config.spark.conf if key.startswith(prefix)}
    return frozenset({n for n in names if "." not in n} | {"spark_catalog"}) - {config.catalog.name}


def names_of(config: Config, compiled: Compiled) -> Names:
    """The names that a text outside the project's files may use."""
    return _names(
        config,
        compiled.models,
        compiled.seeds,
        compiled.sources,
        compiled.disabled,
        compiled.dbt,
    )


def _names(
    config: Config,
    models: Mapping[str, CompiledModel],
    seeds: Mapping[str, CompiledSeed],
    sources: Mapping[str, SourceTable],
    disabled: frozenset[str],
    dbt: DbtRefs,
) -> Names:
    relations = {place_of(config, m): m.name for m in models.values()}
    relations |= {(namespace_of(config, s.schema), s.name): s.name for s in seeds.values()}
    for source in sources.values():
        owner = relations.get((source.namespace, source.table))
        if owner is not None and source.in_lake:
            raise SqbError(
                "P014",
                f"source `{source.name}` is the table that `{owner}` of this project writes",
                file=source.file,
                line=source.line,
                help=f"remove the source and write just {owner}",
            )
    return Names(
        models,
        disabled,
        seeds,
        sources,
        relations,
        config.catalog.name,
        other_catalogs(config),
        dbt,
    )


def _unique(
    models: list[CompiledModel], seeds: list[CompiledSeed], sources: dict[str, SourceTable]
) -> dict[str, CompiledModel]:
    seen: dict[str, str] = {}
    relations: dict[tuple[str, str], str] = {}
    for model in models:
        _claim(seen, model.name, model.path)
    for seed in seeds:
        _claim(seen, seed.name, seed.path)
    for source in sources.values():
        _claim(seen, source.name, source.file or "sources", source.line)
    enabled = {m.name: m for m in models if m.settings.enabled}
    for model in enabled.values():
        hidden = STATE_SUFFIX if model.settings.state_of is not None else ""
        name = (model.settings.alias or model.name).lower()
        place = ((model.settings.schema or "") + hidden, name)
        _claim_relation(relations, place, model.path)
    for seed in seeds:
        _claim_relation(relations, (seed.schema or "", seed.name.lower()), seed.path)
    return enabled


def _claim(seen: dict[str, str], name: str, path: str, line: int | None = None) -> None:
    folded = name.lower()
    if folded in seen:
        raise SqbError(
            "P007",
            f"two things are named `{name}`: {seen[folded]} and {path}",
            file=path,
            line=line or 1,
            help="names are unique across models, seeds and sources: rename one of the files",
        )
    seen[folded] = path


def _claim_relation(seen: dict[tuple[str, str], str], place: tuple[str, str], path: str) -> None:
    if place in seen:
        raise SqbError(
            "P007",
            f"two nodes would write the table `{place[1]}`: {seen[place]} and {path}",
            file=path,
            line=1,
            help="give one of them another `alias` or `schema`",
        )
    seen[place] = path
