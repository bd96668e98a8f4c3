"""Scripts of what happens to single tables between two builds, and how each must be answered.

Every script has a table ``raw.<name>`` and a model ``<name>`` of its own, so that all of them share
two builds. ``before`` and ``after`` are statements in which ``{t}`` is the table and ``{m}`` the
model's own table.
"""

from __future__ import annotations

import msgspec

COW = (
    "TBLPROPERTIES ('write.delete.mode'='copy-on-write', 'write.update.mode'='copy-on-write',"
    " 'write.merge.mode'='copy-on-write')"
)
MOR = (
    "TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read',"
    " 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')"
)
#: Rows that fill one file, so that a delete of some rewrites the rest.
ROWS = "INSERT INTO {t} SELECT CAST(id AS INT), CAST(id % 5 AS INT), CAST(id AS INT) FROM range(20)"
COMPACT = (
    "CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
)


class Script(msgspec.Struct, frozen=True):
    """What is there, what happens, and the answers that are right."""

    title: str
    sql: str
    after: tuple[str, ...]
    ways: str
    before: tuple[str, ...] = (
        f"CREATE TABLE {{t}} (id INT, g INT, v INT) USING iceberg {COW}",
        ROWS,
    )
    header: str = ""
    status: str = "success"


BY_GROUP = "SELECT g, count(*) AS n, sum(v) AS total, count(v) AS c FROM {t} GROUP BY g"
BY_ROW = "SELECT id, v FROM {t} WHERE g <> 3"
LARGEST = "SELECT g, max(v) AS most FROM {t} GROUP BY g"


def _mor(version: int) -> tuple[str, ...]:
    properties = MOR.replace("{version}", str(version))
    return f"CREATE TABLE {{t}} (id INT, g INT, v INT) USING iceberg {properties}", ROWS


def _apart(properties: str, by: str = "") -> tuple[str, ...]:
    """A table of several files, of which a change touches few."""
    later = (ROWS.replace("range(20)", f"range({n}, {n + 20})") for n in (20, 40))
    create = f"CREATE TABLE {{t}} (id INT, g INT, v INT) USING iceberg {by} {properties}"
    return create, ROWS, *later


SCRIPTS = {
    "e01": Script(
        "compaction of a source alone", BY_GROUP, (COMPACT,), "current", status="current"
    ),
    "e02": Script(
        "compaction of the target, then a change",
        LARGEST,
        (COMPACT.replace("{name}", "{model}"), "DELETE FROM {t} WHERE id = 19"),
        "affected_key",
    ),
    "e03": Script(
        "the target is written by hand",
        BY_GROUP,
        ("UPDATE {m} SET n = 99 WHERE g = 1", "DELETE FROM {t} WHERE id = 19"),
        "full:TARGET_MODIFIED_OUTSIDE",
    ),
    "e04a": Script(
        "the source is replaced by equal rows",
        BY_GROUP,
        ("CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT * FROM {t}",),
        "skip:NET_CHANGE_EMPTY",
        status="unchanged",
    ),
    "e04b": Script(
        "the source is replaced by other rows",
        BY_GROUP,
        ("CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT id, g, v + 1 AS v FROM {t}",),
        "group_merge | affected_key",
    ),
    "e05": Script(
        "the source is rolled back",
        BY_GROUP,
        ("ROLLBACK",),
        "group_merge",
        (
            f"CREATE TABLE {{t}} (id INT, g INT, v INT) USING iceberg {COW}",
            ROWS,
            "INSERT INTO {t} VALUES (90, 1, 5), (91, 7, 7)",
        ),
    ),
    "e07": Script(
        "the source is dropped and made again with more versions",
        BY_GROUP,
        (
            "DROP TABLE {t}",
            "CREATE TABLE {t} (id INT, g INT, v INT) USING iceberg",
            "INSERT INTO {t} VALUES (1, 1, 1)",
            "INSERT INTO {t} VALUES (2, 1, 1)",
            "INSERT INTO {t} VALUES (3, 2, 1)",
        ),
        "full:NO_CHANGE_SET | full:SCHEMA_CHANGED",
    ),
    "e08": Script(
        "a row comes and goes again",
        BY_GROUP,
        ("INSERT INTO {t} VALUES (50, 1, 1)", "DELETE FROM {t} WHERE id = 50"),
        "skip:NET_CHANGE_EMPTY",
        status="unchanged",
    ),
    "e09": Script(
        "a row goes and comes again as it was",
        BY_ROW,
        ("DELETE FROM {t} WHERE id = 1", "INSERT INTO {t} VALUES (1, 1, 1)"),
        "skip:NET_CHANGE_EMPTY",
        status="unchanged",
    ),
    "e09b": Script(
        "all rows are written again as they were",
        BY_ROW,
        ("INSERT OVERWRITE {t} SELECT * FROM {t}",),
        "skip:NET_CHANGE_EMPTY",
        status="unchanged",
    ),
    "e10": Script(
        "an append, an overwrite and an append in one range",
        BY_ROW,
        (
            "INSERT INTO {t} VALUES (60, 1, 1)",
            "UPDATE {t} SET v = 70 WHERE id = 7",
            "INSERT INTO {t} VALUES (61, 1, 1)",
        ),
        "affected_key",
    ),
    "e10b": Script(
        "a metadata delete between appends",
        BY_GROUP,
        (
            "INSERT INTO {t} VALUES (60, 8, 1)",
            "DELETE FROM {t} WHERE g = 2",
            "INSERT INTO {t} VALUES (61, 1, 1)",
        ),
        "group_merge",
        (
            f"CREATE TABLE {{t}} (id INT, g INT, v INT) USING iceberg PARTITIONED BY (g) {COW}",
            ROWS,
        ),
    ),
    "e11a": Script(
        "delete files of format 2",
        BY_GROUP,
        ("DELETE FROM {t} WHERE id IN (3, 4)",),
        "group_merge",
        _mor(2),
    ),
    "e11b": Script(
        "delete vectors of format 3",
        BY_ROW,
        ("UPDATE {t} SET v = v + 1 WHERE id IN (3, 4)", "INSERT INTO {t} VALUES (70, 1, 1)"),
        "affected_key",
        _mor(3),
    ),
    "e11c": Script(
        "delete files that were compacted away",
        BY_ROW,
        ("DELETE FROM {t} WHERE id IN (4, 5)", COMPACT, "INSERT INTO {t} VALUES (71, 1, 1)"),
        "affected_key",
        _mor(2),
    ),
    "e11d": Script(
        "delete files for one of many files",
        BY_GROUP,
        ("DELETE FROM {t} WHERE id IN (23, 24)", "INSERT INTO {t} VALUES (70, 1, 1)"),
        "group_merge",
        _apart(MOR.replace("{version}", "2")),
    ),
    "e11e": Script(
        "a delete vector for one of many files, which then moves to another",
        BY_ROW,
        ("UPDATE {t} SET v = v + 1 WHERE id = 24", "DELETE FROM {t} WHERE id IN (21, 45)"),
        "affected_key",
        _apart(MOR.replace("{version}", "3")),
    ),
    "e11f": Script(
        "delete files for whole partitions, of which some are compacted",
        BY_GROUP,
        (
            "DELETE FROM {t} WHERE id IN (1, 21, 41)",
            COMPACT.replace("'rewrite-all', 'true'", "'min-input-files', '2'"),
            "DELETE FROM {t} WHERE id IN (2, 42)",
        ),
        "group_merge",
        _apart(
            MOR.replace("{version}", "2").replace(")", ", 'write.delete.granularity'='partition')"),
            "PARTITIONED BY (g)",
        ),
    ),
    "e11g": Script(
        "rows come and go by delete files, and the files are those of before",
        BY_GROUP,
        (
            "INSERT INTO {t} VALUES (70, 1, 1)",
            "DELETE FROM {t} WHERE id = 70",
            "DELETE FROM {t} WHERE id = 33",
            "INSERT INTO {t} VALUES (33, 3, 33)",
        ),
        "skip:NET_CHANGE_EMPTY",
        _apart(MOR.replace("{version}", "2")),
        status="unchanged",
    ),
    "e05b": Script(
        "many files stay when the source is rolled back",
        BY_ROW,
        ("DELETE FROM {t} WHERE id = 3", "ROLLBACK"),
        "affected_key",
        _apart(COW),
    ),
    "e13a": Script(
        "the version read last is expired, rows only came",
        BY_ROW,
        ("INSERT INTO {t} VALUES (80, 1, 1)", "EXPIRE"),
        "append | full:NO_CHANGE_SET",
    ),
    "e13b": Script(
        "the version read last is expired, rows went",
        BY_GROUP,
        ("DELETE FROM {t} WHERE id = 2", "INSERT INTO {t} VALUES (80, 1, 1)", "EXPIRE"),
        "full:NO_CHANGE_SET",
    ),
    "e14a": Script(
        "a column is added that is not read",
        BY_GROUP,
        (
            "ALTER TABLE {t} ADD COLUMN w INT",
            "INSERT INTO {t} VALUES (80, 1, 1, 1)",
            "DELETE FROM {t} WHERE id = 2",
        ),
        "group_merge",
    ),
    "e14b": Script(
        "a column is added below a star",
        "SELECT * FROM {t}",
        ("ALTER TABLE {t} ADD COLUMN w INT", "INSERT INTO {t} VALUES (80, 1, 1, 1)"),
        "full:SCHEMA_CHANGED",
    ),
    "e14d": Script(
        "a column is dropped that is not read",
        "SELECT id, g FROM {t}",
        ("ALTER TABLE {t} DROP COLUMN v", "DELETE FROM {t} WHERE id = 2"),
        "affected_key",
    ),
    "e14e": Script(
        "a column that is read is dropped and another takes its name",
        "SELECT id, v FROM {t}",
        (
            "ALTER TABLE {t} DROP COLUMN v",
            "ALTER TABLE {t} ADD COLUMN v INT",
            "INSERT INTO {t} VALUES (80, 1, 5)",
        ),
        "full:SCHEMA_CHANGED",
    ),
    "e14f": Script(
        "two columns swap their names",
        "SELECT id, g, v FROM {t}",
        (
            "ALTER TABLE {t} RENAME COLUMN v TO w",
            "ALTER TABLE {t} RENAME COLUMN g TO v",
            "ALTER TABLE {t} RENAME COLUMN w TO g",
            "INSERT INTO {t} VALUES (80, 1, 5)",
        ),
        "full:SCHEMA_CHANGED",
    ),
    "e14g": Script(
        "another column takes a name, and the version read last is expired",
        "SELECT id, v FROM {t}",
        (
            "ALTER TABLE {t} DROP COLUMN v",
            "ALTER TABLE {t} ADD COLUMN v INT",
            "INSERT INTO {t} VALUES (80, 1, 5)",
            "EXPIRE",
        ),
        "full:SCHEMA_CHANGED | full:NO_CHANGE_SET",
    ),
    "e14h": Script(
        "another column takes a name, and no row changes",
        "SELECT id, v FROM {t}",
        ("ALTER TABLE {t} DROP COLUMN v", "ALTER TABLE {t} ADD COLUMN v INT"),
        "full:SCHEMA_CHANGED",
    ),
    "e14i": Script(
        "two columns swap their names, and no row changes",
        "SELECT id, g, v FROM {t}",
        (
            "ALTER TABLE {t} RENAME COLUMN v TO w",
            "ALTER TABLE {t} RENAME COLUMN g TO v",
            "ALTER TABLE {t} RENAME COLUMN w TO g",
        ),
        "full:SCHEMA_CHANGED",
    ),
    "e14j": Script(
        "a column is added below a star, and no row changes",
        "SELECT * FROM {t}",
        ("ALTER TABLE {t} ADD COLUMN w INT",),
        "full:SCHEMA_CHANGED",
    ),
    "e15c": Script(
        "a column that is read is widened, and no row changes",
        "SELECT id, v FROM {t}",
        ("ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",),
        "full:SCHEMA_CHANGED",
    ),
    "e15": Script(
        "a column that is read is widened",
        BY_GROUP,
        (
            "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
            "INSERT INTO {t} VALUES (80, 1, 5000000000)",
        ),
        "full:SCHEMA_CHANGED",
    ),
    "e15b": Script(
        "a column that is not read is widened",
        "SELECT id, g FROM {t}",
        (
            "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
            "INSERT INTO {t} VALUES (80, 1, 5000000000)",
        ),
        "append",
    ),
    "e22": Script(
        "a partition of the target becomes empty, one begins, NULL is one",
        BY_ROW.replace("id, v", "id, g, v").replace("g <> 3", "id >= 0"),
        (
            "DELETE FROM {t} WHERE g = 2",
            "INSERT INTO {t} VALUES (80, NULL, 1), (81, 9, 1)",
            "UPDATE {t} SET g = NULL WHERE id = 3",
        ),
        "affected_key",
        header="MODEL (partitioned_by [g]);\n",
    ),
    "e22b": Script(
        "a target in buckets and days",
        "SELECT id, g, DATE'2026-01-01' + v AS d FROM {t}",
        ("DELETE FROM {t} WHERE g = 2", "INSERT INTO {t} VALUES (80, NULL, 1), (81, 9, NULL)"),
        "affected_key",
        header="MODEL (partitioned_by [bucket(4, id), days(d)], sorted_by [id]);\n",
    ),
    "e22d": Script(
        "whole partitions: one ends, one begins, one is NULL",
        LARGEST,
        (
            "DELETE FROM {t} WHERE g = 2",
            "INSERT INTO {t} VALUES (80, NULL, 1), (81, 9, 1)",
            "UPDATE {t} SET g = NULL WHERE id = 3",
        ),
        "affected_key | partition_overwrite",
        header="MODEL (partitioned_by [g]);\n",
    ),
    "e22e": Script(
        "partitions of many rows, some of them equal",
        "SELECT s, count(*) OVER (PARTITION BY s) AS n FROM {t}",
        ("DELETE FROM {t} WHERE n = 3", "INSERT INTO {t} VALUES ('it''s', 1), (NULL, 1), ('', 1)"),
        "affected_key | partition_overwrite",
        (
            "CREATE TABLE {t} (s STRING, n INT)",
            r"INSERT INTO {t} VALUES ('it\'s', 2), ('b\\', 1), ('b\\', 3), (NULL, 3), ('z', 3)",
        ),
        header="MODEL (partitioned_by [s]);\n",
    ),
    "e24": Script(
        "a sum of decimals that was too large and no longer is",
        "SELECT g, try_sum(CAST(v AS DECIMAL(38,0)) * CAST(9e36 AS DECIMAL(38,0))) AS total,"
        " count(v) AS c, count(*) AS n FROM {t} GROUP BY g",
        ("DELETE FROM {t} WHERE id = 19", "DELETE FROM {t} WHERE id > 9"),
        "affected_key | full:AGG_NOT_MERGEABLE",
        (
            "CREATE TABLE {t} (id INT, g INT, v INT) USING iceberg",
            "INSERT INTO {t} VALUES (1, 1, 1), (2, 1, 1), (19, 1, 10), (3, 2, 1)",
        ),
    ),
    "e34a": Script(
        "an empty source gets rows",
        BY_GROUP,
        ("INSERT INTO {t} VALUES (1, 1, 1), (2, NULL, NULL)",),
        "group_merge",
        ("CREATE TABLE {t} (id INT, g INT, v INT) USING iceberg",),
    ),
    "e34b": Script("all rows go", BY_ROW, ("DELETE FROM {t}",), "affected_key"),
    "e34c": Script("a source is truncated", BY_GROUP, ("TRUNCATE TABLE {t}",), "group_merge"),
    "e34d": Script(
        "an empty source stays empty through commits",
        BY_GROUP,
        ("INSERT INTO {t} VALUES (1, 1, 1)", "DELETE FROM {t}"),
        "skip:NET_CHANGE_EMPTY",
        ("CREATE TABLE {t} (id INT, g INT, v INT) USING iceberg",),
        status="unchanged",
    ),
    "e35": Script(
        "columns that have the names of the refresh's own",
        "SELECT id, __w, _change_type, __op FROM {t}",
        ("INSERT INTO {t} VALUES (80, 1, 'x', 2)", "DELETE FROM {t} WHERE id = 1"),
        "affected_key | full:UNSUPPORTED",
        (
            "CREATE TABLE {t} (id INT, __w INT, _change_type STRING, __op INT) USING iceberg",
            "INSERT INTO {t} VALUES (1, 1, 'a', 1), (2, -1, 'b', 2)",
        ),
    ),
    "e35a": Script(
        "a column that has the name of the refresh's own, in rows that are there twice",
        "SELECT sqb_i, v FROM {t}",
        ("UPDATE {t} SET v = v + 1 WHERE sqb_i = 1", "INSERT INTO {t} VALUES (3, 3), (3, 3)"),
        "affected_key",
        (
            "CREATE TABLE {t} (sqb_i INT, v INT) USING iceberg",
            "INSERT INTO {t} VALUES (1, 1), (1, 1), (2, 2)",
        ),
    ),
    "e35b": Script(
        "keys with quotes, backslashes, line ends and signs of all kinds",
        "SELECT s, d, max(n) AS n FROM {t} GROUP BY s, d",
        (
            r"UPDATE {t} SET n = n + 1 WHERE s = 'it\'s' OR s = '🎉'",
            r"DELETE FROM {t} WHERE s IN ('a\\b', '') OR n = 5",
            r"INSERT INTO {t} VALUES ('x\ny', DATE'0001-01-01', 1), (repeat('ä', 300), NULL, 2)",
        ),
        "affected_key",
        (
            "CREATE TABLE {t} (s STRING, d DATE, n INT) USING iceberg",
            r"INSERT INTO {t} VALUES ('it\'s', DATE'0001-01-01', 1), ('a\\b', NULL, 2)",
            "INSERT INTO {t} VALUES ('', NULL, 3)",
            r"INSERT INTO {t} VALUES ('🎉', DATE'9999-12-31', 4), ('x\ny', NULL, 6)",
            "INSERT INTO {t} VALUES (repeat('z', 300), DATE'1582-10-10', 5)",
        ),
    ),
    "e35c": Script(
        "types that are seldom keys",
        "SELECT b, x, f, t, u, y FROM {t}",
        (
            "UPDATE {t} SET f = -f, x = NOT x WHERE y = 1",
            "INSERT INTO {t} VALUES (X'00FF', NULL, FLOAT('NaN'), NULL, NULL, 4)",
            "DELETE FROM {t} WHERE y = 3",
        ),
        "affected_key | bag_merge",
        (
            "CREATE TABLE {t} (b BINARY, x BOOLEAN, f FLOAT, t TIMESTAMP, u TIMESTAMP_NTZ, y INT)",
            "INSERT INTO {t} VALUES (X'', true, 0, TIMESTAMP'1960-01-01 00:00:00.1', NULL, 1)",
            "INSERT INTO {t} VALUES (X'00', false, 0.1, NULL, TIMESTAMP_NTZ'2026-03-29 02:30', 2)",
            "INSERT INTO {t} VALUES (NULL, NULL, 3, NULL, NULL, 3)",
        ),
    ),
    "e35d": Script(
        "columns with spaces in their names change places below a star",
        "SELECT * FROM {t}",
        ("ALTER TABLE {t} ALTER COLUMN `c d` FIRST", "INSERT INTO {t} VALUES (5, 6)"),
        "full:SCHEMA_CHANGED",
        ("CREATE TABLE {t} (`a b` INT, `c d` INT)", "INSERT INTO {t} VALUES (1, 2), (3, 4)"),
    ),
    "e35e": Script(
        "a column with a space in its name is renamed below a star",
        "SELECT * FROM {t}",
        ("ALTER TABLE {t} RENAME COLUMN `c d` TO `e f`", "INSERT INTO {t} VALUES (5, 6)"),
        "full:SCHEMA_CHANGED",
        ("CREATE TABLE {t} (`a b` INT, `c d` INT)", "INSERT INTO {t} VALUES (1, 2), (3, 4)"),
    ),
    "e35f": Script(
        "columns without names of their own",
        "SELECT g, max(v), count(*) + 1 FROM {t} GROUP BY g",
        ("DELETE FROM {t} WHERE id = 19",),
        "affected_key",
    ),
    "e36": Script(
        "reserved words, spaces and quotes as names",
        "SELECT `select`, `a b`, `Ünï``x` AS `from` FROM {t} WHERE `a b` > 0",
        ("UPDATE {t} SET `a b` = 7 WHERE `select` = 2", "INSERT INTO {t} VALUES (3, 3, 'c')"),
        "affected_key",
        (
            "CREATE TABLE {t} (`select` INT, `a b` INT, `Ünï``x` STRING) USING iceberg",
            "INSERT INTO {t} VALUES (1, 1, 'a'), (2, -1, 'b')",
        ),
    ),
}

#: The scripts that every test run plays; the others are played with ``SQB_TEST_PROOF=all``.
SHARE = (
    *(
        "e02",
        "e05",
        "e07",
        "e09",
        "e10",
        "e11b",
        "e11d",
        "e11f",
        "e13a",
        "e13b",
        "e14e",
        "e14h",
        "e15",
    ),
    *("e22d", "e34c", "e35a", "e36"),
)
