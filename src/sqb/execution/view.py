"""Views: written by sqb itself with explicit columns, so that no upstream change can shift them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqb.execution.content_hash import quote
from sqb.execution.outcome import Outcome
from sqb.execution.overtaking import adopt, refuse_overtaken
from sqb.execution.reading import view_statement
from sqb.execution.run import Published, Run
from sqb.identity.data_id import InputState, view_state
from sqb.lake.describe import Description, decode, properties, with_docs
from sqb.lake.metadata import DEFINITION, TableFacts
from sqb.lake.publish import Overtaken
from sqb.lake.types import iceberg_schema
from sqb.planning.situation import bound, definition_local
from sqb.state.definition import pack
from sqb.state.record import Record, encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build_view(
    run: Run, session: SparkSession, name: str, states: Mapping[str, InputState]
) -> Outcome:
    """Make the view, or replace it; a table of that name gives way in the same commit."""
    expected = run.expected(name)
    base = run.catalog.head(expected.namespace, expected.relation)
    text = view_statement(run, name).text
    fields = session.sql(text).schema.jsonValue()
    previous = None
    if base is not None and base.kind == "view":
        document = run.facts.document(base.location)
        previous = document["schemas"][-1]["fields"]
    schema = iceberg_schema(fields, previous)
    schema["fields"] = with_docs(schema["fields"], Description(), decode(expected.described))
    columns = ", ".join(quote(field["name"]) for field in schema["fields"])
    made: list[Record] = []

    def stamp(facts: TableFacts) -> str:
        local = definition_local(expected, run.situation.recorded.get(name))
        constants = bound(expected, run.situation.constants)
        state = view_state(local, states, constants, expected.version)
        made.append(
            run.make_record(
                name,
                states,
                facts,
                data=state.data,
                schema=state.schema,
                rows=None,
                keep_local=True,
            )
        )
        return encode(made[-1])

    try:
        refuse_overtaken(run, name, base)
        head = run.catalog.publish_view(
            namespace=expected.namespace,
            name=expected.relation,
            base=base,
            run_id=run.id,
            sql=f"SELECT {columns} FROM (\n{text}\n)",
            schema=schema,
            properties={
                DEFINITION: pack(run.definition(name)),
                **properties(expected.described),
            },
            make_stamp=stamp,
        )
    except Overtaken as overtaken:
        return adopt(run, name, states, overtaken)
    return Outcome(Published(head, run.facts.get(head.location), made[-1]), "success")
