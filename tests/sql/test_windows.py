"""Named windows are written out where they are used, each in its own SELECT."""

from __future__ import annotations

import pytest

from sqb.sql.splice import splice
from sqb.sql.tokens import split
from sqb.sql.windows import written_out


@pytest.mark.parametrize(
    ("sql", "becomes"),
    [
        (
            "SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY b)",
            "SELECT sum(a) OVER (ORDER BY b) FROM t ",
        ),
        (
            "SELECT sum(a) OVER v, sum(b) OVER w FROM t WINDOW v AS (), w AS (PARTITION BY (c))",
            "SELECT sum(a) OVER (), sum(b) OVER (PARTITION BY (c)) FROM t ",
        ),
        (
            (
                "SELECT a OVER w FROM (SELECT b OVER w FROM t WINDOW w AS (ORDER BY c)) q"
                " WINDOW w AS (ORDER BY d) UNION SELECT e OVER w FROM t WINDOW w AS (ORDER BY f)"
            ),
            (
                "SELECT a OVER (ORDER BY d) FROM (SELECT b OVER (ORDER BY c) FROM t ) q"
                "  UNION SELECT e OVER (ORDER BY f) FROM t "
            ),
        ),
        (
            "SELECT (SELECT max(a OVER w) FROM u), b OVER w FROM t WINDOW w AS (ORDER BY c)",
            "SELECT (SELECT max(a OVER w) FROM u), b OVER (ORDER BY c) FROM t ",
        ),
        ("SELECT a OVER w FROM t WINDOW v AS (ORDER BY b), w AS (v)", None),
        ("SELECT a OVER w FROM t WINDOW w AS v", None),
        ("SELECT window(ts, '1 hour') AS window FROM t", None),
        ("SELECT a.window, window AS b FROM t AS window", None),
    ],
)
def test_windows_are_written_out(sql: str, becomes: str | None) -> None:
    edits = written_out(split(sql))
    assert splice(sql, edits).text == (becomes or sql)
