"""The registry of error codes, and the one exception that users see.

An error is a small lesson: what is wrong, where, and how to mend it. Every code is registered
here and listed in ``docs/errors.md``; raising an unregistered one fails at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: code -> what it means. Families: C the call and the config, P the project's files, S selection
#: and state, L the lake, X what happens while running, J Java and Spark set-up, B dbt projects.
CODES: dict[str, str] = {
    "C001": "no project here: sqlbuild_project.toml was not found",
    "C002": "a TOML file can't be parsed",
    "C003": "unknown key in a config file",
    "C004": "a config value has the wrong type or is not allowed",
    "C005": "an environment variable that the config names is not set",
    "C006": "unknown target",
    "C007": "the catalog type or address is not supported",
    "C008": "bad command line",
    "C009": "the directory is not empty or already holds a project",
    "C010": "confirmation is needed and there is no terminal",
    "C011": "a feature that a later release brings",
    "P001": "a model header can't be parsed",
    "P002": "unknown key in a model header",
    "P003": "a header value has the wrong form or is not allowed",
    "P004": "SQL that can't be parsed",
    "P005": "a reference to a name that does not exist",
    "P006": "models that depend on each other in a circle",
    "P007": "two things with one name",
    "P008": "a macro is unknown or failed",
    "P009": "a variable is not defined",
    "P010": "an environment variable used in SQL is not set or not allowed",
    "P011": "a YAML file can't be parsed or has a wrong form",
    "P012": "a seed's CSV can't be read",
    "P013": "a column without a type (SELECT NULL AS x)",
    "P014": "a model referred to by its schema instead of its bare name",
    "P015": "a reference of the wrong kind (__ref on a seed, …)",
    "P016": "a name that can't be used for a model, seed or source",
    "P017": "a file is not valid UTF-8",
    "P018": "a project file can't be read",
    "P019": "a view over files",
    "S001": "the selection matched nothing",
    "S002": "a selector can't be understood",
    "S301": "selected models need upstreams that were never built",
    "S302": "a selected model rests on stale upstreams outside the selection",
    "S303": "a source table does not exist",
    "S304": "values that differ on every run never make a model stale",
    "S305": "rows of a source moved without moving its freshness value",
    "S306": "a source can't be observed, so what reads it is always stale",
    "S307": "a source is older than its age policy likes",
    "S308": "a name changes between view and table where that takes two steps",
    "S309": "rows that a log holds went or changed in its sources",
    "S310": "a table that held history was gone and begins anew",
    "S311": "a table keeps rows of an older definition",
    "S312": "a model has no row state although its header asks for one",
    "S313": "refreshing a table by rows failed, and it was brought up to date another way",
    "S314": "how a table will be refreshed could not be foreseen",
    "S315": "a log reads a table that it did not read before",
    "S316": "rows came in a table that a log takes for a lookup by chance",
    "L001": "the catalog can't be reached",
    "L002": "the project was moved: its tables' metadata holds another path",
    "L003": "another build published the model meanwhile",
    "L004": "a table's metadata can't be read",
    "L005": "an object store can't be reached or refuses",
    "X001": "Spark refused or failed a model's query",
    "X002": "a column type that Iceberg tables can't hold",
    "X003": "a seed value does not fit its column type",
    "X004": "an unexpected failure while running a model",
    "X005": "interrupted",
    "X006": "files of a source changed while they were read",
    "X007": "a key or column that a kind of table needs is missing, NULL or not unique",
    "X008": "a table that holds history would have to be rebuilt",
    "X009": "rows went or changed in the sources of a log that refuses that",
    "X010": "a query's columns do not go into the table that stands",
    "J001": "no usable Java",
    "J002": "a jar could not be fetched",
    "J003": "Spark did not start",
    "J004": "the Spark session that was handed in, or the server, can't be used",
    "J005": "the Spark Connect server can't be reached or refused the session",
    "J006": "the warm Spark can't be started",
    "B001": "no dbt project here: dbt_project.yml was not found",
    "B002": "dbt was not found",
    "B003": "a profile of dbt can't be found or read",
    "B004": "Jinja in a file of dbt's configuration can't be rendered",
    "B005": "a manifest of dbt can't be read",
    "B006": "a kind of warehouse or connection that is not supported",
    "B007": "a dbt_project.yml can't be read",
    "B008": "a freshness setting of a dbt source can't be used",
    "B009": "a unit test of dbt can't run without its model",
    "B010": "dbt itself can't read the project or the selection",
    "B011": "a thrift server can't be asked",
    "B012": "a node that dbt ran failed",
}


class SqbError(Exception):
    """An error meant for the user: code, one sentence, place, help.

    ``exit_code`` is 2 while nothing was touched (the call, config or project is wrong) and 1 for
    what failed while running.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        help: str | None = None,
        exit_code: int = 2,
    ) -> None:
        if code not in CODES:
            raise AssertionError(f"unregistered error code {code}")
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.file = file
        self.line = line
        self.help = help
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.code, self.message, self.to_json(), self.exit_code))

    def to_json(self) -> dict[str, object]:
        """The form of ``contract`` section 4: what ``--json`` prints and artifacts keep."""
        return {
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "help": self.help,
        }


def _rebuild(code: str, message: str, fields: dict[str, object], exit_code: int) -> SqbError:
    error = SqbError(code, message, exit_code=exit_code)
    error.file, error.line, error.help = fields["file"], fields["line"], fields["help"]  # type: ignore[assignment]
    return error


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, if one is close enough to suggest.

    >>> nearest("materialised", ["materialized", "tags"])
    'materialized'
    """
    folded = {k.lower(): k for k in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A help sentence with the nearest known name, or None.

    >>> did_you_mean("materialised", ["materialized", "tags"])
    'did you mean `materialized`?'
    """
    found = nearest(name, known)
    return f"did you mean `{found}`?" if found else None
