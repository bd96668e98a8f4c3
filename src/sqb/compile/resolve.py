"""What each name in a query means, or an error that suggests what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqb.compile.nodes import Binding, CompiledModel, CompiledSeed, SourceTable
from sqb.errors import SqbError, did_you_mean
from sqb.sql.analysis import Analysis, Reference


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
    ) -> None:
        self.models = models
        self.disabled = frozenset(disabled)
        self.seeds = seeds
        self.sources = sources
        self.relations = relations
        self.catalog = catalog
        self.tables = {(s.namespace, s.table): s.name for s in sources.values()}

    def bind(self, reference: Reference, file: str) -> tuple[Binding, SourceTable | None]:
        """The node that ``reference`` means, and the source it is if nothing declares it."""
        if reference.kind == "table":
            return self._table(reference, file)
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
        if len(parts) > 2:
            raise SqbError(
                "C011",
                f"`{'.'.join(reference.parts)}`: tables of other catalogs arrive in release 0.2",
                file=file,
                line=reference.line,
            )
        namespace, table = parts
        owner = self.relations.get((namespace, table))
        if owner is not None:
            raise SqbError(
                "P014",
                f"`{namespace}.{table}` names a model of this project by its schema",
                file=file,
                line=reference.line,
                help=f"write just {owner}",
            )
        declared = self.tables.get((namespace, table))
        if declared is not None:
            return Binding(reference, declared), None
        name = ".".join(part if "." not in part else f"`{part}`" for part in (namespace, table))
        return (
            Binding(reference, name),
            SourceTable(name, namespace, table, False, file, reference.line),
        )


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
