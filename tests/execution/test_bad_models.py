"""Models that fail while running: each a clear error at its file and line, and nothing is torn."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lakes import leftovers

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.planning.plan import Plan

#: name -> the model's text (the error is on the line that says "here"), code, part of the message
BAD: dict[str, tuple[str, str, str]] = {
    "unknown_column": ("SELECT\n  id,\n  nope -- here\nFROM {raw}.t", "X001", "nope"),
    "below_a_header": (
        "MODEL (\n  materialized table\n);\n\n\nSELECT id,\n  nope -- here\nFROM {raw}.t",
        "X001",
        "nope",
    ),
    "after_a_macro": (
        "MODEL (\n  tags [x]\n);\nSELECT\n  @tall('id') AS a,\n  nope -- here\nFROM {raw}.t",
        "X001",
        "nope",
    ),
    "inside_a_macro": ("SELECT\n  id,\n  @tall('nope') AS a -- here\nFROM {raw}.t", "X001", "nope"),
    "after_a_view": (
        "WITH x AS (\n  SELECT * FROM tall\n)\nSELECT\n  a,\n  nope -- here\nFROM x",
        "X001",
        "nope",
    ),
    "between_two_views": (
        "SELECT v.a\nFROM tall AS v\nJOIN tall AS w\n  ON v.a = w.nope -- here\nJOIN tall",
        "X001",
        "nope",
    ),
    "a_view": (
        "MODEL (materialized view);\nSELECT id,\n  nope -- here\nFROM {raw}.t",
        "X001",
        "nope",
    ),
    "divides_by_zero": (
        "SELECT id,\n  1 / (id - id) AS x -- here\nFROM {raw}.t",
        "X001",
        "Division by zero",
    ),
    "divides_after_a_view": (
        "WITH x AS (SELECT a FROM tall)\nSELECT a,\n  1 / (a - a) AS x -- here\nFROM x",
        "X001",
        "Division by zero",
    ),
    "casts_badly": ("SELECT\n  CAST(s AS INT) AS i -- here\nFROM {raw}.t", "X001", "'x'"),
    "bad_syntax": (
        "SELECT id\nFROM {raw}.t\nQUALIFY row_number() OVER (ORDER BY id) = 1 -- here",
        "X001",
        "Syntax error",
    ),
    "unknown_function": (
        "SELECT\n  nofunction(id) AS x -- here\nFROM {raw}.t",
        "X001",
        "nofunction",
    ),
    "nested_void": ("SELECT struct(id, NULL AS x) AS s FROM {raw}.t -- here", "X002", "void"),
    "void_array": ("SELECT array() AS s FROM {raw}.t -- here", "X002", "void"),
    "interval": ("SELECT INTERVAL '1' DAY AS i -- here", "X002", "i"),
    "nested_interval": ("SELECT array(INTERVAL '1' MONTH) AS i -- here", "X002", "i"),
    "variant": ("SELECT parse_json('{}') AS j -- here", "X001", "variant is not supported"),
    "partitioned_by_nothing": (
        "MODEL (partitioned_by [bucket(4, nope)]); -- here\nSELECT id FROM {raw}.t",
        "X007",
        "`partitioned_by` of `partitioned_by_nothing` names `nope`",
    ),
    "sorted_by_nothing": (
        "MODEL (sorted_by [id, nope DESC]); -- here\nSELECT id FROM {raw}.t",
        "X007",
        "`sorted_by` of `sorted_by_nothing` names `nope`",
    ),
    "twice": ("SELECT id, id FROM {raw}.t -- here", "X001", "two columns named `id`"),
    "twice_by_case": ("SELECT id, s AS ID FROM {raw}.t -- here", "X001", "id"),
}
JAVA = re.compile(r"\bat (org|java|scala)\.|Exception:|Traceback|py4j|\n")


def test_every_failure_names_file_and_line_and_leaves_the_lake_whole(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT, s STRING) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1, 'x'), (2, 'y')")
    bench.write("macros/m.py", 'def tall(x):\n    return f"(\\n{x}\\n+\\n0\\n)"\n')
    bench.model("tall", "MODEL (materialized view);\nSELECT\n\n\n  id AS a\nFROM {raw}.t")
    for name in BAD:
        header = "MODEL (materialized view);\n" if name == "a_view" else ""
        bench.model(name, header + "SELECT 7 AS kept")
    bench.model("good", "SELECT map('a', id) AS m, id FROM {raw}.t")
    bench.told()
    for name, (text, _, _) in BAD.items():
        bench.model(name, text)
    bench.model("good", "SELECT map('b', id) AS m, id FROM {raw}.t")
    result = bench.build()
    ends = {node.name: node for node in result.nodes}
    assert ends["good"].status == "success"
    wrong: list[object] = []
    for name, (text, code, part) in BAD.items():
        error = ends[name].error
        line = next(i for i, row in enumerate(text.split("\n"), 1) if row.endswith("here"))
        if ends[name].status != "failed" or error is None:
            wrong.append((name, ends[name].status))
            continue
        got = (error["code"], error["file"], error["line"])
        message = str(error["message"])
        if got != (code, f"models/{name}.sql", line) or part not in message or JAVA.search(message):
            wrong.append((name, got, (code, line), message))
    assert wrong == []
    kept = " UNION ALL ".join(f"SELECT kept FROM lake.{bench.schema}.{name}" for name in BAD)
    assert bench.sql(kept) == [(7,)] * len(BAD)
    assert leftovers(bench.project()) == []
    assert {node.name for node in bench.plan().work} == set(BAD)


def test_a_source_dropped_between_plan_and_run_is_an_error_of_the_model(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1)")
    bench.model("m", "SELECT id\nFROM {raw}.t")
    bench.model("other", "SELECT 1 AS a")
    bench.told()
    bench.sql("INSERT INTO lake.{raw}.t VALUES (2)")
    bench.model("other", "SELECT 2 AS a")

    def drop(_: Plan) -> None:
        bench.sql("DROP TABLE lake.{raw}.t")

    ends = {n.name: n for n in bench.build(on_plan=drop).nodes}
    assert ends["other"].status == "success"
    error = ends["m"].error
    assert error is not None
    assert (error["code"], error["file"], error["line"]) == ("X001", "models/m.sql", 2)
    assert f"{bench.raw}`.`t" in str(error["message"])
    assert not JAVA.search(str(error["message"]))
    assert bench.rows("m") == [(1,)]
    assert leftovers(bench.project()) == []


@pytest.mark.parametrize("fail_fast", [False, True])
def test_fail_fast_starts_nothing_after_the_first_failure(
    bench: Workbench, fail_fast: bool
) -> None:
    bench.model("a_bad", "SELECT nope")
    bench.model("b_below", "SELECT * FROM a_bad")
    bench.model("c_other", "SELECT 1 AS a")
    result = bench.build(fail_fast=fail_fast, concurrency=1)
    ends = {node.name: node.status for node in result.nodes}
    other = "blocked" if fail_fast else "success"
    assert ends == {"a_bad": "failed", "b_below": "blocked", "c_other": other}
    head = bench.project().catalog.head(bench.schema, "c_other")
    assert (head is None) == fail_fast
    assert leftovers(bench.project()) == []
    assert {n.name for n in bench.plan().work} == {n for n, s in ends.items() if s != "success"}


def test_the_error_of_a_model_holds_no_secret_anywhere(bench: Workbench) -> None:
    secrets = (
        '[catalog.properties]\ntoken = "tok-123456"\n'
        '[targets.dev.state]\nconnection = "postgresql://me:hunter22@db/x"\n'
    )
    bench.write("sqlbuild_project.toml", bench.toml(secrets))
    bench.model(
        "leak",
        "SELECT CAST(raise_error('tok-123456 at x://me:other@db, password=guessed') AS INT) AS x",
    )
    result = bench.build()
    told = str(result.nodes[0].error)
    assert "*** at x://***@db, password=***" in told
    run = bench.root / ".sqb" / "runs" / str(result.run_id)
    for file in (run / "results.json", run / "events.jsonl", run / "sqb.log"):
        text = file.read_text()
        assert "***" in text, file.name
        assert not any(word in text for word in ("tok-123456", "other", "guessed")), file.name
