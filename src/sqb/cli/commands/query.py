"""``sqb query``: run a query in which names mean what they mean in a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import SELECTION, Call
from sqb.cli.call import command as sqb_command
from sqb.errors import SqbError

if TYPE_CHECKING:
    import pyarrow as pa

    from sqb.api import Project

#: Rows of a table on screen, unless --limit says otherwise.
DEFAULT_LIMIT = 20


def query(call: Call, *, sql: str, format_: str | None, limit: int | None) -> None:
    """Run the query and print its rows."""
    call.no_selection("query")
    chosen = format_ or ("json" if call.out.json else "table")
    if call.out.json and chosen != "json":
        raise SqbError("C008", f"--json and --format {chosen} exclude each other")
    if not sql.strip().rstrip(";"):
        raise SqbError("C008", "the query is empty", help="sqb query 'SELECT * FROM my_model'")
    from sqb.cli.render.progress import waiting

    call.before_heavy_work()
    wanted = DEFAULT_LIMIT if limit is None and chosen == "table" else limit
    with call.project() as project, waiting(call.out, "asking Spark…"):
        # one row more than is shown tells whether there are more
        data = _run(project, sql, None if wanted is None else wanted + 1)
    from sqb.cli.render import rows

    names, columns = rows.of(data)
    more = wanted is not None and data.num_rows > wanted
    if more:
        columns = [column[:wanted] for column in columns]
    if chosen == "json":
        call.out.raw(rows.as_json(names, columns))
    elif chosen == "csv":
        call.out.raw(rows.as_csv(names, columns))
    else:
        for line in rows.as_table(names, columns, call.out):
            call.out.important(line)
        number = len(columns[0]) if columns else 0
        note = f"the first {number} rows; --limit N shows more" if more else rows.counted(number)
        call.out.line(f"({note})", dim=True)


def _run(project: Project, sql: str, limit: int | None) -> pa.Table:
    from sqb.execution.failures import explain

    try:
        frame = project.query(sql)
        if limit is not None:
            frame = frame.limit(limit)
        return frame.toArrow()
    except SqbError:
        raise
    except Exception as error:
        raise explain(error, "query", None, None) from error


def _options(function: Any) -> Any:
    for option in (
        click.option(
            "--limit",
            envvar="SQB_LIMIT",
            type=click.IntRange(min=1),
            metavar="N",
            help=f"How many rows to print; {DEFAULT_LIMIT} as a table, all as JSON and CSV.",
        ),
        click.option(
            "--format",
            "format_",
            envvar="SQB_FORMAT",
            type=click.Choice(["table", "json", "csv"]),
            help="How to print the rows; --json is --format json.",
        ),
        click.argument("sql"),
    ):
        function = option(function)
    return function


command = sqb_command(
    "query",
    help="Run a query in which names mean what they mean in a model.",
    example="""
sqb query 'SELECT * FROM fct_orders ORDER BY amount DESC'
sqb query 'SELECT count(*) AS n FROM raw.orders' --json
""",
    hides=(*SELECTION, "verbose"),
)(_options(query))
