"""A description that was edited becomes a comment by a commit of its own: no Spark, no new rows."""

from __future__ import annotations

from sqb.errors import SqbError
from sqb.execution.nodes import layout_of
from sqb.execution.run import Published, Run
from sqb.execution.table import wanted_properties
from sqb.lake.catalog import Head
from sqb.lake.describe import DESCRIBED, decode, properties, with_docs
from sqb.lake.metadata import DEFINITION, TableFacts
from sqb.lake.publish import Overtaken
from sqb.state.definition import pack
from sqb.state.record import encode


def describe(run: Run, name: str) -> bool:
    """Write the description of a relation that is current; False if someone was faster."""
    expected, record = run.expected(name), run.record(name)
    head = run.catalog.head(expected.namespace, expected.relation)
    if head is None or record is None or head != run.heads.get((head.namespace, head.name)):
        return False
    facts = run.facts.get(head.location)
    stamp = facts.stamp or encode(record)
    try:
        made = _view(run, name, head, facts, stamp) if head.kind == "view" else None
        made = made or run.catalog.publish_properties(
            namespace=head.namespace,
            table=head.name,
            base=head,
            run_id=run.id,
            properties=wanted_properties(run, name, layout_of(run, name)),
            make_stamp=lambda _: stamp,
        )
    except (Overtaken, SqbError):
        # nothing but a comment: the next build tries again
        return False
    run.publish(name, Published(made, run.facts.get(made.location), record))
    return True


def _view(run: Run, name: str, head: Head, facts: TableFacts, stamp: str) -> Head:
    document = run.facts.document(head.location)
    version = next(
        v for v in document["versions"] if v["version-id"] == document["current-version-id"]
    )
    schema = next(s for s in document["schemas"] if s["schema-id"] == version["schema-id"])
    before, wanted = facts.properties.get(DESCRIBED), run.expected(name).described
    fields = with_docs(schema["fields"], decode(before), decode(wanted))
    return run.catalog.publish_view(
        namespace=head.namespace,
        name=head.name,
        base=head,
        run_id=run.id,
        sql=facts.sql or "",
        schema={**schema, "fields": fields},
        properties={DEFINITION: pack(run.definition(name)), **properties(wanted)},
        make_stamp=lambda _: stamp,
    )
