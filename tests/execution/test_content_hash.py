"""The content hash on a real Spark: what is told apart, what is not, and the exact numbers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from sqb.execution import content_hash
from sqb.execution.content_hash import combine, row_hashes, sums

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from conftest import Workbench

#: Each group: the columns' types, and rows that must all be told apart.
DISTINCT: list[tuple[str, str, list[str]]] = [
    ("NULL, empty and zero", "string", ["NULL", "''", "'0'", "' '", "'\\0'"]),
    ("NULL and zero", "int", ["NULL", "0", "1", "-1"]),
    ("NULLs in different columns", "int, int", ["NULL, 1", "1, NULL", "NULL, NULL", "1, 1"]),
    ("swapped columns", "int, int", ["1, 2", "2, 1"]),
    ("text moved over a border", "string, string", ["'ab', 'c'", "'a', 'bc'", "'abc', ''"]),
    ("case", "string", ["'a'", "'A'", "'ä'", "'a '"]),
    (
        "arrays",
        "array<int>",
        [
            "NULL",
            "array()",
            "array(1)",
            "array(1, NULL)",
            "array(NULL, 1)",
            "array(NULL)",
            "array(1, 2)",
            "array(2, 1)",
            "array(NULL, NULL)",
            "array(0)",
        ],
    ),
    (
        "neighbouring arrays",
        "array<int>, array<int>",
        [
            "array(1), array(2)",
            "array(1, 2), array()",
            "array(), array(1, 2)",
            "NULL, array(1, 2)",
            "array(1, 2), NULL",
            "array(1), array(1, 2)",
        ],
    ),
    (
        "nested arrays",
        "array<array<int>>",
        [
            "array(array(1), array())",
            "array(array(), array(1))",
            "array(array(1))",
            "array(array(1), NULL)",
            "array(NULL, array(1))",
            "array()",
            "NULL",
            "array(NULL)",
            "array(array(1, 2))",
            "array(array(1), array(2))",
            "array(array(NULL))",
        ],
    ),
    (
        "structs",
        "struct<a: int, b: int>",
        ["NULL", "struct(NULL, NULL)", "struct(1, NULL)", "struct(NULL, 1)", "struct(1, 1)"],
    ),
    (
        "structs in arrays",
        "array<struct<a: int>>",
        ["array(struct(NULL))", "array(NULL)", "array()", "array(struct(0))", "NULL"],
    ),
    (
        "arrays in structs",
        "struct<a: array<int>, b: array<int>>",
        ["struct(array(1), array())", "struct(array(), array(1))", "struct(NULL, array(1))"],
    ),
    (
        "doubles",
        "double",
        [
            "0.0D",
            "-0.0D",
            "double('NaN')",
            "NULL",
            "double('Infinity')",
            "double('-Infinity')",
            "1.0D",
            "1.0000000000000002D",
            "4.9E-324D",
        ],
    ),
    ("floats", "float", ["0.0F", "-0.0F", "float('NaN')", "NULL", "1.0F", "float('Infinity')"]),
    ("doubles in arrays", "array<double>", ["array(0.0D)", "array(-0.0D)", "array(NULL)"]),
    ("doubles in structs", "struct<a: double>", ["struct(0.0D)", "struct(-0.0D)", "NULL"]),
    ("booleans", "boolean", ["true", "false", "NULL"]),
    ("bytes", "tinyint", ["1Y", "-1Y", "0Y", "NULL"]),
    ("shorts", "smallint", ["1S", "-1S", "256S", "0S", "NULL"]),
    ("longs", "bigint", ["1L", "4294967297L", "9223372036854775807L", "NULL"]),
    ("decimals", "decimal(10,2)", ["1.00", "1.01", "-1.00", "0.00", "NULL"]),
    (
        "wide decimals",
        "decimal(38,2)",
        ["999999999999999999999999999999999999.99", "1.00", "-1.00", "NULL"],
    ),
    ("dates", "date", ["DATE'2026-01-01'", "DATE'2026-01-02'", "DATE'1969-12-31'", "NULL"]),
    (
        "timestamps",
        "timestamp",
        ["TIMESTAMP'2026-01-01 00:00:00'", "TIMESTAMP'2026-01-01 00:00:00.000001'", "NULL"],
    ),
    (
        "local timestamps",
        "timestamp_ntz",
        ["TIMESTAMP_NTZ'2026-01-01 00:00:00'", "TIMESTAMP_NTZ'2026-01-01 00:00:00.000001'", "NULL"],
    ),
    ("binaries", "binary", ["X''", "X'00'", "X'0000'", "NULL"]),
    ("collated text", "string collate UTF8_LCASE", ["'a'", "'A'", "NULL", "''"]),
    ("collated text in arrays", "array<string collate UTF8_LCASE>", ["array('a')", "array('A')"]),
]


def table_of(spark: SparkSession, kinds: str, rows: list[str]) -> DataFrame:
    """A frame with the columns c0, c1, … of these types and one row for each text."""
    depth, start, types = 0, 0, []
    for i, char in enumerate(kinds + ","):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            types.append(kinds[start:i].strip())
            start = i + 1
    casts = ", ".join(f"CAST(v{i} AS {kind}) AS c{i}" for i, kind in enumerate(types))
    names = ", ".join(f"v{i}" for i in range(len(types)))
    selects = [f"SELECT {n} AS n, {row}" for n, row in enumerate(rows)]
    union = "\nUNION ALL ".join(f"(SELECT n, {casts} FROM ({s}) AS t(n, {names}))" for s in selects)
    return spark.sql(union)


def hashed(frame: DataFrame) -> list[tuple[int, int]]:
    """Both hashes of each row, in the order of ``n``."""
    rows = frame.drop("n")
    hashes = row_hashes(rows.schema.jsonValue())
    assert hashes is not None
    return [(row[1], row[2]) for row in sorted(frame.selectExpr("n", *hashes).collect())]


def measured(frame: DataFrame) -> tuple[int, int, int]:
    """Count and sums of a frame, as a build takes them."""
    hashes = row_hashes(frame.schema.jsonValue())
    assert hashes is not None
    total = frame.selectExpr(*(f"{sql} AS {key}" for key, sql in sums(hashes).items())).first()
    assert total is not None
    return combine(total.asDict())


def test_rows_that_differ_are_told_apart(spark: SparkSession) -> None:
    for title, kinds, rows in DISTINCT:
        hashes = hashed(table_of(spark, kinds, rows))
        for which in range(2):
            of = dict(zip(rows, (pair[which] for pair in hashes), strict=True))
            same = [(a, b) for a, b in itertools.combinations(rows, 2) if of[a] == of[b]]
            assert same == [], title
        assert all(first != second for first, second in hashes), title


EVERYTHING = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal(10,2), decimal(38,10), string,"
    " binary, date, timestamp, timestamp_ntz, array<int>, struct<a: int, b: array<string>>"
)
VECTORS = [
    (
        "true, 1Y, 2S, 3, 4L, 1.5F, -0.0D, 12.34, 5.0000000001, 'Grüße', X'CAFE', DATE'2026-01-31',"
        " TIMESTAMP'2026-01-31 06:00:00.123456', TIMESTAMP_NTZ'2026-01-31 06:00:00',"
        " array(1, NULL, 3), struct(1, array('x', NULL))"
    ),
    ", ".join(["NULL"] * 16),
    (
        "false, 0Y, 0S, 0, 0L, 0.0F, 0.0D, 0.00, 0.0000000000, '', X'', DATE'1970-01-01',"
        " TIMESTAMP'1970-01-01 00:00:00', TIMESTAMP_NTZ'1970-01-01 00:00:00', array(),"
        " struct(NULL, NULL)"
    ),
]
#: Committed numbers: an accidental change of the algorithm would make every table look changed.
FIXED = [
    (6132275220071664371, -2854000002384152822),
    (3259616774996677909, 859655844162714964),
    (-3752999605432196277, -4966207260601310404),
]
FIXED_TOTAL = (3, 5638892389636146003, 11486192654886803354)


def test_the_algorithm_gives_the_committed_numbers(spark: SparkSession) -> None:
    frame = table_of(spark, EVERYTHING, VECTORS)
    assert hashed(frame) == FIXED
    assert measured(frame.drop("n")) == FIXED_TOTAL
    total = tuple(sum(pair[i] for pair in FIXED) % 2**64 for i in range(2))
    assert (3, *total) == FIXED_TOTAL


def test_the_hash_is_of_a_bag_of_rows(spark: SparkSession) -> None:
    rows = spark.sql("SELECT id, cast(id % 7 AS string) AS s FROM range(1000) AS r(id)")
    whole = measured(rows)
    assert measured(rows.orderBy(rows.id.desc()).repartition(5)) == whole
    assert measured(rows.coalesce(1)) == whole
    one = rows.where("id = 1")
    once, twice = measured(one), measured(one.union(one))
    assert twice == (2, 2 * once[1] % 2**64, 2 * once[2] % 2**64)
    assert measured(rows.where("false")) == (0, 0, 0)
    # two rows that trade a value are other rows
    a = spark.sql("SELECT * FROM VALUES (1, 'x'), (2, 'y')")
    b = spark.sql("SELECT * FROM VALUES (1, 'y'), (2, 'x')")
    assert measured(a)[1:] != measured(b)[1:]


EXTREMES = [-(2**63), 2**63 - 1, -1, 0, 1, 2**24 - 1, 2**24, 2**48, -(2**48), 2**47 + 12345]


def test_limbs_add_up_for_every_hash_value(spark: SparkSession) -> None:
    values = ", ".join(f"({_long(v)}, {_long(-v - 1)})" for v in EXTREMES)
    frame = spark.sql(f"SELECT * FROM VALUES {values} AS t(one, two)")
    for times in (1, 3):
        many = frame.crossJoin(spark.range(times)).selectExpr(
            *(f"{sql} AS {key}" for key, sql in sums(("one", "two")).items())
        )
        row = many.first()
        assert row is not None
        first = times * sum(EXTREMES) % 2**64
        second = times * sum(-v - 1 for v in EXTREMES) % 2**64
        assert combine(row.asDict()) == (times * len(EXTREMES), first, second)


def test_more_rows_than_a_limb_holds_do_not_overflow(spark: SparkSession) -> None:
    rows = 3_000_000
    frame = spark.range(rows).selectExpr("-1L AS one", f"{_long(-(2**63))} AS two")
    row = frame.selectExpr(
        *(f"{sql} AS {key}" for key, sql in sums(("one", "two")).items())
    ).first()
    assert row is not None
    metrics: dict[str, Any] = row.asDict()
    assert metrics["h0_0"] > 2**32
    assert combine(metrics) == (rows, -rows % 2**64, (rows * 2**63) % 2**64)


@pytest.mark.parametrize("rows", [2**32 + 1, 2**39])
def test_sums_of_the_largest_limbs_fit_and_wrap(rows: int) -> None:
    largest = {"h{}_0": 2**24 - 1, "h{}_1": 2**24 - 1, "h{}_2": 2**16 - 1}
    metrics: dict[str, int | None] = {"n": rows}
    for which in range(2):
        metrics |= {key.format(which): limb * rows for key, limb in largest.items()}
    assert all(value is not None and value < 2**63 for value in metrics.values())
    total = rows * (2**64 - 1) % 2**64
    assert combine(metrics) == (rows, total, total)


def _long(value: int) -> str:
    return f"CAST('{value}' AS BIGINT)"


UNHASHABLE = [
    ("a map", "map<string, int>"),
    ("a map in an array", "array<map<string, int>>"),
    ("a map in a struct", "struct<a: map<string, int>>"),
    ("a variant", "variant"),
]


@pytest.mark.parametrize(("title", "kind"), UNHASHABLE)
def test_what_has_no_order_or_stable_bytes_is_not_hashed(
    spark: SparkSession, title: str, kind: str
) -> None:
    frame = spark.sql(f"SELECT 1 AS id, CAST(NULL AS {kind}) AS c")
    assert content_hash.row_hashes(frame.schema.jsonValue()) is None, title


def test_a_table_that_is_not_hashable_counts_as_changed_whenever_it_ran(bench: Workbench) -> None:
    bench.model("m", "SELECT 1 AS id, map('a', 1) AS c")
    bench.model("below", "SELECT id, c['a'] AS a FROM m")
    bench.told()
    bench.model("m", "SELECT 1 + 0 AS id, map('a', 1) AS c")
    assert bench.told() == {
        "m": ("success", "query_changed"),
        "below": ("unchanged", "upstream_changed"),
    }
    bench.model("m", "SELECT 1 AS id, map('a', 2) AS c")
    assert bench.told()["below"] == ("success", "upstream_changed")
    assert bench.rows("below") == [(1, 2)]
    assert bench.told() == {}


def test_a_build_records_the_hash_of_the_rows_it_wrote(bench: Workbench) -> None:
    """The hash taken while writing is that of the table read back, whatever the types."""
    bench.sql(
        "CREATE TABLE lake.{raw}.t (f FLOAT, d DOUBLE, a ARRAY<DOUBLE>, s STRUCT<x: INT>)"
        " USING iceberg"
    )
    bench.sql(
        "INSERT INTO lake.{raw}.t VALUES (-0.0F, -0.0D, array(-0.0D, double('NaN')), NULL),"
        " (float('NaN'), 0.0D, array(), named_struct('x', NULL)), (NULL, NULL, NULL, NULL)"
    )
    bench.model("m", "SELECT f, d, a, s, CAST(1 AS TINYINT) AS b FROM {raw}.t")
    bench.told()
    record = bench.project().observe().recorded["m"]
    count, first, second = measured(bench.spark.table(f"lake.{bench.schema}.m"))
    assert record.data.split(":")[2:] == [str(count), f"{first:016x}", f"{second:016x}"]
    assert record.rows == 3
    # the text of a row with a collation is compared by its bytes
    bench.model("m", "SELECT 'a' COLLATE UTF8_LCASE AS c")
    bench.told()
    bench.model("m", "SELECT 'A' COLLATE UTF8_LCASE AS c")
    assert bench.told()["m"] == ("success", "query_changed")
    assert bench.rows("m") == [("A",)]
