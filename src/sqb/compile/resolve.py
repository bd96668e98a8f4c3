"""What each name in a query means, or an error that suggests what was meant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal

from sqb.compile.nodes import (
    Binding,
    CompiledModel,
    CompiledSeed,
    DbtRefs,
    Query,
    SourceTable,
    SqlText,
)
from sqb.errors import SqbError, did_you_mean
from sqb.sql.analysis import Analysis, Reference

#: What these references, each package and name, mean in the dbt project beside this one.
FindDbt = Callable[[Collection[tuple[str, str]]], DbtRefs]


def dbt_references(models: Iterable[CompiledModel]) -> set[tuple[str, str]]:
    """The nodes of a dbt project that models refer to: package and name."""
    return {
        (reference.parts[0], reference.parts[1])
        for model in models
        for reference in model.analysis.references
        if reference.kind == "dbt"
    }


class Names:
    """Every name of the project that a query may use.

    ``relations`` are the tables and views that sqb itself writes; naming a model through one of
    them is refused, because it would read what stands there instead of what this run builds.
    """

    def __init__(
        self,
        models: Mapping[str, CompiledModel],
        disabled: Iterable[str],
        seeds: Mapping[str, CompiledSeed],
        sources: Mapping[str, SourceTable],
        relations: Mapping[tuple[str, str], str],
        catalog: str,
        others: frozenset[str] | None = frozenset(),
        dbt: DbtRefs | None = None,
    ) -> None:
        self.models = models
        self.disabled = frozenset(disabled)
        self.seeds = seeds
        self.sources = sources
        self.relations = relations
        self.catalog = catalog
        self.others = others
        self.dbt = dbt or DbtRefs()
        self.tables = {
            (s.catalog, s.namespace, s.table): s.name for s in sources.values() if s.is_table
        }
        for source in sources.values():
            self._check_catalog(source.catalog, source.file, source.line)

    def bind(self, reference: Reference, file: str) -> tuple[Binding, SourceTable | None]:
        """The node that ``reference`` means, and the source it is if nothing declares it."""
        if reference.kind == "table":
            return self._table(reference, file)
        if reference.kind == "dbt":
            return Binding(reference, self._dbt_node(reference, file)), None
        name = reference.parts[0]
        kinds = {
            "model": name in self.models,
            "seed": name in self.seeds,
            "source": name in self.sources,
        }
        if reference.kind == "name":
            if any(kinds.values()):
                return Binding(reference, name), None
            raise self._unknown(name, [*self.models, *self.seeds, *self.sources], reference, file)
        if kinds[reference.kind]:
            return Binding(reference, name), None
        for kind, here in kinds.items():
            if here:
                call = {"model": "__ref", "seed": "__seed", "source": "__source"}[kind]
                raise SqbError(
                    "P015",
                    f"`{name}` is a {kind}, not a {reference.kind}",
                    file=file,
                    line=reference.line,
                    help=f'write {call}("{name}") or just {name}',
                )
        pool: Mapping[str, object] = {
            "model": self.models,
            "seed": self.seeds,
            "source": self.sources,
        }[reference.kind]
        raise self._unknown(name, pool, reference, file)

    def _dbt_node(self, reference: Reference, file: str) -> str:
        package, name = reference.parts
        found = self.dbt.names.get((package, name))
        if found is not None:
            return found
        why = self.dbt.why.get((package, name))
        raise SqbError(
            "P005",
            f"`__dbt_ref`: {why or f'there is no node `{name}` in the dbt package `{package}`'}",
            file=file,
            line=reference.line,
            help="name a model, seed or snapshot that dbt builds as a table or view",
        )

    def _unknown(self, name: str, pool: Iterable[str], reference: Reference, file: str) -> SqbError:
        if name in self.disabled:
            return SqbError(
                "P005",
                f"model `{name}` is disabled",
                file=file,
                line=reference.line,
                help="remove `enabled false` from its header, or the reference",
            )
        return SqbError(
            "P005",
            f"there is no model, seed or source named `{name}`",
            file=file,
            line=reference.line,
            help=did_you_mean(name, pool)
            or f"write it as schema.table if `{name}` is a table that someone else loads",
        )

    def _table(self, reference: Reference, file: str) -> tuple[Binding, SourceTable | None]:
        parts = reference.parts
        if len(parts) == 3 and parts[0] == self.catalog:
            parts = parts[1:]
        catalog = parts[0] if len(parts) == 3 else None
        if len(parts) > 3:
            raise SqbError(
                "P005",
                f"`{'.'.join(reference.parts)}` has more parts than catalog.schema.table",
                file=file,
                line=reference.line,
            )
        self._check_catalog(catalog, file, reference.line)
        namespace, table = parts[-2:]
        owner = self.relations.get((namespace, table)) if catalog is None else None
        if owner is not None:
            raise SqbError(
                "P014",
                f"`{namespace}.{table}` names a model of this project by its schema",
                file=file,
                line=reference.line,
                help=f"write just {owner}",
            )
        declared = self.tables.get((catalog, namespace, table))
        if declared is not None:
            return Binding(reference, declared), None
        name = ".".join(part if "." not in part else f"`{part}`" for part in parts)
        return (
            Binding(reference, name),
            SourceTable(name, namespace, table, False, file, reference.line, catalog),
        )

    def _check_catalog(self, catalog: str | None, file: str | None, line: int | None) -> None:
        if catalog is None or self.others is None or catalog in self.others:
            return
        raise SqbError(
            "P005",
            f"there is no catalog `{catalog}`",
            file=file,
            line=line,
            help=did_you_mean(catalog, [self.catalog, *self.others])
            or f"configure it in [spark.conf]: spark.sql.catalog.{catalog} = its class",
        )

    # Sources

    def refuse_files(self, bindings: Iterable[Binding], file: str) -> None:
        """A view is read by whoever reads it, without sqb: nothing keeps how its files are read."""
        for binding in bindings:
            source = self.sources.get(binding.name)
            if source is not None and source.files is not None:
                raise SqbError(
                    "P019",
                    f"a view can't read the files of source `{source.name}`",
                    file=file,
                    line=binding.reference.line,
                    help="make it a table: MODEL (materialized table);",
                )
            behind = source.expression if source is not None else None
            if source is not None and behind is not None:
                self.refuse_files(self._inside(source, behind), file)

    def inside_sources(
        self, part: Literal["expression", "probe"], used: dict[str, SourceTable]
    ) -> dict[str, Query]:
        """The queries inside sources, resolved; tables that only they name go into ``used``."""
        out: dict[str, Query] = {}
        for source in self.sources.values():
            text: SqlText | None = getattr(source, part)
            if text is not None:
                bindings = self._inside(source, text, used)
                out[source.name] = Query(text.sql, text.analysis, bindings)
        return out

    def _inside(
        self, source: SourceTable, text: SqlText, used: dict[str, SourceTable] | None = None
    ) -> tuple[Binding, ...]:
        """A source can be made of sources alone: models are built from it, later."""
        file = source.file or ""
        bound: list[Binding] = []
        for reference in text.analysis.references:
            parts = reference.parts
            if len(parts) == 3 and parts[0] == self.catalog:
                parts = parts[1:]
            owner = self.relations.get((parts[0], parts[1])) if len(parts) == 2 else parts[0]
            if owner is not None and (owner in self.models or owner in self.seeds):
                raise SqbError(
                    "P015",
                    f"source `{source.name}` reads `{'.'.join(reference.parts)}`, which this "
                    "project builds",
                    file=file,
                    line=reference.line,
                    help="a query inside a source can only read sources",
                )
            binding, undeclared = self.bind(reference, file)
            if undeclared is not None and used is not None:
                used.setdefault(undeclared.name, undeclared)
            bound.append(binding)
        return tuple(bound)

    def refuse_circles(self, expressions: Mapping[str, Query]) -> None:
        """Sources by expression that are made of each other have no beginning."""

        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in path:
                source = self.sources[name]
                circle = " -> ".join((*path[path.index(name) :], name))
                raise SqbError(
                    "P006",
                    f"sources are made of each other in a circle: {circle}",
                    file=source.file,
                    line=source.line,
                    help="remove one of these references",
                )
            query = expressions.get(name)
            for binding in query.bindings if query is not None else ():
                visit(binding.name, (*path, name))

        for name in expressions:
            visit(name, ())


def rebind(
    sql: str, names: Names, sources: Mapping[str, SourceTable], file: str
) -> tuple[Analysis, tuple[Binding, ...], dict[str, SourceTable]]:
    """Analyse a text that is not a model's own now (an older definition, a query of the user).

    Also gives the sources it reads that the project does not know.
    """
    from sqb.sql.references import analyse

    analysis = analyse(sql, file=file)
    bound: list[Binding] = []
    extra: dict[str, SourceTable] = {}
    for reference in analysis.references:
        binding, undeclared = names.bind(reference, file)
        if undeclared is not None and undeclared.name not in sources:
            extra[undeclared.name] = undeclared
        bound.append(binding)
    return analysis, tuple(bound), extra
