"""``row_state auto``: a model as two, the groups that sqb keeps for itself and a query over them.

Pure, and made when the model is compiled: other models pay nothing for it, and the compile cache
keeps what came of it.
"""

from __future__ import annotations

import msgspec

from sqb.compile.nodes import CompiledModel, ModelSettings, RowState
from sqb.hashing import digest
from sqb.project.keys import TABLE, canonical
from sqb.sql.references import analyse_tokens
from sqb.sql.row_state import split_groups
from sqb.sql.splice import Spliced
from sqb.sql.state_columns import Whole
from sqb.sql.tokens import Tokens, canonical_of, split


def with_row_state(model: CompiledModel, tokens: Tokens, *, asked: bool) -> CompiledModel:
    """The model, with what its row state is or why it has none."""
    return msgspec.structs.replace(model, row_state=_row_state(model, tokens, asked=asked))


def _row_state(model: CompiledModel, tokens: Tokens, *, asked: bool) -> RowState:
    if model.settings.materialized != TABLE:
        return RowState(why=f"it is a {model.settings.materialized}, not a table", asked=asked)
    if model.analysis.volatile:
        why = f"{model.analysis.volatile[0]}() is another value each time"
        return RowState(why=why, asked=asked)
    name = f"{model.name}__s1"
    try:
        found = split_groups(tokens, model.analysis.constants, name)
    except Whole as error:
        return RowState(why=str(error), asked=asked)
    groups = _part(model, found.groups)
    hashed = digest(canonical_of(split(groups.sql)))
    settings = _settings(model.name, model.settings)
    groups = msgspec.structs.replace(groups, name=name, settings=settings, query_hash=hashed)
    over = msgspec.structs.replace(_part(model, found.over), written=model.sql)
    return RowState(groups, over, asked=asked)


def _settings(name: str, settings: ModelSettings) -> ModelSettings:
    """Those of a plain table, beside the model's own."""
    refresh = settings.options.get("refresh")
    return ModelSettings(
        materialized=TABLE,
        tags=settings.tags,
        description=None,
        schema=settings.schema,
        alias=f"{settings.alias or name}__s1",
        enabled=settings.enabled,
        partitioned_by=(),
        sorted_by=(),
        table_properties={},
        identity=canonical({"materialized": TABLE}),
        options={"refresh": refresh} if refresh is not None else {},
        state_of=name,
    )


def _part(model: CompiledModel, made: Spliced) -> CompiledModel:
    """The model with another query, each piece of which knows the line it came from."""
    pieces = _through(made, Spliced(model.sql, model.pieces))
    part = msgspec.structs.replace(model, sql=made.text, pieces=pieces)
    tokens = split(made.text, file=model.path, first_line=model.first_line)
    analysis = analyse_tokens(tokens, model.path)
    references = tuple(
        msgspec.structs.replace(reference, line=part.line_of(reference.start))
        for reference in analysis.references
    )
    analysis = msgspec.structs.replace(analysis, references=references)
    return msgspec.structs.replace(part, analysis=analysis)


def _through(made: Spliced, before: Spliced) -> tuple[tuple[int, int, bool], ...]:
    """The pieces of a text that was made of a text that was made of another one."""
    out: list[tuple[int, int, bool]] = []
    ends = [here for here, _, _ in made.pieces[1:]] + [len(made.text)]
    for (here, there, verbatim), end in zip(made.pieces, ends, strict=True):
        out.append((here, before.origin(there), verbatim and _verbatim(before, there)))
        inside = [p for p in before.pieces if verbatim and there < p[0] < there + end - here]
        out += [(here + at - there, origin, same) for at, origin, same in inside]
    return tuple(out)


def _verbatim(text: Spliced, offset: int) -> bool:
    """Is a place of a text one of the text it was made of?"""
    return next((same for here, _, same in reversed(text.pieces) if here <= offset), True)
