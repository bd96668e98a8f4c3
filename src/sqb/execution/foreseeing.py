"""How a table would be brought up to date, as far as metadata tells: no Spark is asked.

A run may find otherwise: rows that were written again as they were cancel, a type is another than
was thought. What can't be known beforehand is not guessed.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from sqb.compile.row_state import with_row_state
from sqb.errors import SqbError
from sqb.execution.change_sets import Bound
from sqb.execution.content_hash import quote
from sqb.execution.kinds.telling import foretold
from sqb.execution.reading import definition
from sqb.execution.run import Run
from sqb.execution.sizes import is_small, sizes_of
from sqb.execution.source_changes import Source, column_types, old_versions, sources_of
from sqb.execution.telling import full, numbers, refusals, told
from sqb.execution.understanding import understand
from sqb.lake.metadata import TableFacts
from sqb.lake.types import spark_type
from sqb.planning.plan import Plan as RunPlan
from sqb.planning.plan import PlannedNode, PlanWarning, Strategy
from sqb.planning.row_gates import refuse
from sqb.refresh.advice import Laid, advise, advise_volatile
from sqb.refresh.build import Plan
from sqb.refresh.changes import TableChange
from sqb.refresh.cost import Estimate, Sizes, affordable, estimate_full, worth_looking
from sqb.refresh.derive import moves
from sqb.refresh.ir import Col, output
from sqb.refresh.netting import Target
from sqb.refresh.reasons import Refused, Rejected
from sqb.refresh.scalars import singles
from sqb.refresh.script import Script
from sqb.refresh.signed import signed_change
from sqb.refresh.strategies import Option, Situation, choose
from sqb.refresh.types import known_types
from sqb.sql.fragments import Unsupported
from sqb.sql.tokens import split
from sqb.state.record import Record, untouched


class Moved(msgspec.Struct, frozen=True):
    """A table that a model reads, and what happened to it since."""

    name: str
    change: TableChange


class Foreseen(msgspec.Struct, frozen=True):
    """A strategy, None where only the run can tell; the tables it rests on; its SQL by name.

    ``failed`` says what went wrong while it was looked for.
    """

    strategy: Strategy | None = None
    sources: tuple[Moved, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()
    failed: str = ""


class _UnknownError(Exception):
    """Only Spark could tell."""


def with_strategies(plan: RunPlan, run: Run) -> RunPlan:
    """The plan with the strategy of every table for which it can be told."""
    work = {node.name for node in plan.work}
    nodes, warnings = list[PlannedNode](), list(plan.warnings)
    for node in plan.nodes:
        found = foresee(run, node, work) if node.strategy is None else Foreseen(node.strategy)
        nodes.append(msgspec.structs.replace(node, strategy=found.strategy))
        if found.failed:
            text = f"how `{node.name}` will be refreshed could not be foreseen: {found.failed}"
            warnings.append(PlanWarning("S314", node.name, text))
    return msgspec.structs.replace(plan, nodes=tuple(nodes), warnings=tuple(warnings))


def foresee(run: Run, node: PlannedNode, work: Collection[str]) -> Foreseen:
    """How a node that runs would be refreshed; ``work`` are all nodes that run."""
    kinds = ("table", "append")
    if (
        node.action != "run"
        or node.materialized not in kinds
        or node.name not in run.compiled.models
    ):
        return Foreseen(node.strategy)
    above = run.situation.graph.ancestors([node.name]) - {node.name}
    if not above.isdisjoint(work):
        return Foreseen(node.strategy)
    try:
        if node.materialized == "append":
            return Foreseen(node.strategy or foretold(run, node))
        return _foreseen(run, node)
    except Refused as refused:
        return Foreseen(full(refused.code, refused.why, refusals(None, refused)))
    except Unsupported as found:
        strategy = full(found.code, found.what, [Rejected("rows", found.code, found.what)])
        if found.code == "VOLATILE":
            strategy = msgspec.structs.replace(strategy, advice=advise_volatile(found.what))
        return Foreseen(strategy)
    except (_UnknownError, SqbError):
        return Foreseen(node.strategy)
    except Exception as error:  # noqa: BLE001 - a plan is more than this; the run will tell
        why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return Foreseen(node.strategy, failed=why)


def _foreseen(run: Run, node: PlannedNode) -> Foreseen:
    name, mode = node.name, run.refresh_of(node.name)
    record, base = run.situation.recorded.get(name), run.situation.relations.get(name)
    now = definition(run, name)
    refuse(node.reason, record, mode, run.catalog.mode, run.input_states(name), now)
    if record is None or base is None or not untouched(record, base):
        raise Refused("TARGET_MODIFIED_OUTSIDE", "the table was written by someone else")
    plan = understand(run, name, record.clock, _ask)
    sources = sources_of(run, record, plan)
    moved = tuple(Moved(source.name, source.change) for source in sources.values())
    for source in sources.values():
        if source.change.way == "unknown":
            refused = Refused("NO_CHANGE_SET", f"{source.name}: {source.change.reason}")
            return Foreseen(full(refused.code, refused.why, refusals(None, refused)), moved)
    changed = frozenset(n for n, s in sources.items() if s.change.way != "none")
    if any(moves(single.child, changed) for single in singles(plan.root)):
        # whether the value of a sub-query moved is known when it was computed
        return Foreseen(None, moved)
    found = [_Judged(run, record, base, plan, sources, fill) for fill in _FILLS]
    if len({(j.strategy.name, j.strategy.code, j.strategy.key) for j in found}) > 1:
        return Foreseen(None, moved)
    return Foreseen(found[0].strategy, moved, found[0].steps(run))


#: What a type that is not known is taken for, in turn: only what does not depend on it is told.
_FILLS = ("int", "double", "")


class _Judged:
    """What would be decided if unknown types were ``fill``."""

    def __init__(
        self,
        run: Run,
        record: Record,
        base: TableFacts,
        plan: Plan,
        sources: dict[str, Source],
        fill: str,
    ) -> None:
        self.name, self.base, self.plan = record.node, base, plan
        bound = Bound(run, None, record, sources)
        changes = bound.written()
        self.script = Script(bound.relation, quote)
        sizes = sizes_of(base, record, sources)
        types = _types(plan, sources, fill)
        situation = Situation(plan, changes, types, old_versions(sources), run.ansi)
        self.option: Option | None = None
        self.able: Option | None = None
        self.strategy = self._strategy(run, record, situation, sizes, sources)

    def _strategy(
        self,
        run: Run,
        record: Record,
        situation: Situation,
        sizes: Sizes,
        sources: dict[str, Source],
    ) -> Strategy:
        root, mode, limits = self.plan.root, run.refresh_of(self.name), run.config.refresh
        if not situation.moves:
            why = "what changed in the inputs is not read by the query"
            return Strategy("skip", why, code="NET_CHANGE_EMPTY")
        choice = choose(situation, self.script)
        self.able = choice.options[0] if choice.options else None
        way: Estimate | None = None
        whole = estimate_full(root, sizes, record.spent)
        try:
            if not choice.options:
                last = choice.rejected[-1]
                raise Refused(last.code, last.why)
            worth_looking(root, sizes, record.spent, limits, mode)
            found = affordable(choice, root, sizes, record.spent, limits, mode)
            self.option, way = found.option, found.way
            strategy = told(found.option, choice, self.plan, self.base)
        except Refused as refused:
            strategy = full(refused.code, refused.why, refusals(choice, refused))
        laid = {name: _laid(source) for name, source in sources.items()}
        return msgspec.structs.replace(
            strategy,
            estimate=numbers(way, whole, sizes.moved),
            advice=advise(self.option, situation, sizes, laid, _may_keep_groups(run, self.name)),
        )

    def steps(self, run: Run) -> tuple[tuple[str, str], ...]:
        """The SQL of the way that is taken, or that would be if no rebuild were cheaper."""
        option = self.option or self.able
        if option is None:
            return ()
        names = tuple(quote(column.name) for column in self.base.columns)
        kinds = tuple(spark_type(column.type).lower() for column in self.base.columns)
        if len(names) != len(output(self.plan.root)):
            return ()
        target = Target(f"{run.table(self.name)}", names, kinds, is_small(self.base))
        signed = signed_change(option, self.script, self.plan.root, target)
        return tuple((step.name, step.sql) for step in self.script.needed(signed.change))


def _types(plan: Plan, sources: dict[str, Source], fill: str) -> dict[Col, str]:
    known = known_types(plan.root, column_types(sources))
    return _Filled(known, fill) if fill else known


class _Filled(dict[Col, str]):
    """Types of which none is missing."""

    def __init__(self, known: dict[Col, str], fill: str) -> None:
        super().__init__(known)
        self.fill = fill

    def __missing__(self, _: Col) -> str:
        return self.fill

    def get(self, col: Col, default: object = None) -> str:
        del default
        return self[col]


def _may_keep_groups(run: Run, name: str) -> bool:
    """Could the model have a row state, and has it none?"""
    model = run.compiled.models[name]
    if model.row_state is not None or model.settings.state_of:
        return False
    tokens = split(model.sql, file=model.path, first_line=model.first_line)
    found = with_row_state(model, tokens, asked=False).row_state
    return found is not None and found.groups is not None


def _laid(source: Source) -> Laid:
    facts = source.facts
    if facts is None:
        return Laid()
    words = {word for text in (*facts.partitioning, *facts.sort_order[:1]) for word in _names(text)}
    return Laid(frozenset(c.name for c in facts.columns if c.name in words))


def _names(text: str) -> list[str]:
    return text.replace("(", " ").replace(")", " ").replace(",", " ").split()


def _ask(_: str) -> tuple[str, ...]:
    raise _UnknownError


__all__ = ["Foreseen", "Moved", "foresee", "with_strategies"]
