"""Why a way of refreshing a table does not apply: stable codes, each with a sentence."""

from __future__ import annotations

import msgspec

#: The version of the rules: a table that was made under other ones is rebuilt when it is stale.
RULES = "3"


#: Every code with what it means; they are stored, so none is renamed.
CODES = {
    "FIRST_BUILD": "the table is built for the first time",
    "TARGET_MISSING": "the table is gone",
    "TARGET_MODIFIED_OUTSIDE": "the table was written by someone else",
    "DEFINITION_CHANGED": "the query, its configuration, or what it names or reads is another",
    "SCHEMA_CHANGED": "a column that is read, or one of the table's, is another",
    "FORCED": "`--force`, `--full-refresh` or `refresh full`",
    "NO_SOURCE_CHANGED": "nothing that the query reads changed",
    "NET_CHANGE_EMPTY": "what changed is not read by the query, or cancels out",
    "NO_CHANGE_SET": "what changed in a source can't be told: it has no versions, or the one that "
    "was read is gone",
    "HAS_DELETES": "rows went or were rewritten, so adding rows is not enough",
    "UNSUPPORTED": "a part of the query that row-level refresh does not know",
    "VOLATILE": "a function that gives another value each time",
    "CONSTANT_MOVED": "`current_date()` moved, and it is used elsewhere than in a filter",
    "SCALAR_SUBQUERY_CHANGED": "the value of a sub-query moved, so every row may be another",
    "FREE_CHOICE": "the result is not unique: ties, `first`, sums of floating point numbers",
    "FLOAT_SUM": "sums of floating point numbers depend on the order",
    "AGG_NOT_MERGEABLE": "an aggregate that needs all rows of its group",
    "KEY_NOT_IN_OUTPUT": "no output column tells which rows changed",
    "KEY_NOT_DERIVABLE": "the changed keys can't be derived from the changed rows",
    "WINDOW_WITHOUT_PARTITION": "a window function over all rows",
    "LIMIT_ORDER": "`LIMIT` whose rows the table and the change do not tell",
    "NOT_IN_NULL": "`NOT IN` a query that may give NULL",
    "TYPE_NOT_COMPARABLE": "a column whose values can't be compared, such as a map",
    "CHEAPER_TO_REBUILD": "a rebuild is cheaper",
    "CHANGE_TOO_LARGE": "too many rows of a source changed",
    "TOO_MANY_KEYS": "too many keys of the table changed",
    "INTEGRITY": "the table does not hold what the change takes away",
    "AUDIT_FAILED": "the self-audit found a difference",
    "ROW_ERROR": "Spark failed on the way; the rebuild shows whether the query itself fails",
}


class Rejected(msgspec.Struct, frozen=True):
    """A way that does not apply: a stable code and a sentence."""

    name: str
    code: str
    why: str


class Refused(Exception):  # noqa: N818 - an outcome, not a failure
    """The table can't be refreshed by rows: a stable code and a sentence."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(f"{code}: {why}")
        self.code = code
        self.why = why
