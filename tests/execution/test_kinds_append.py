"""``append``: a log of what entered the query's result through its drivers; nothing ever leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kinds import built, counts, how, insert, refused, source

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof

LOG = "SELECT id, v FROM {raw}.t WHERE v > 0"


def log(bench: Workbench, sql: str = LOG, more: str = "") -> None:
    source(bench, "t", "id INT, v INT", "(1, 10)", "(2, 20)", "(2, 20)")
    bench.model("m", f"MODEL (materialized append{more});\n{sql}")


def test_new_rows_are_added_and_what_went_is_told(bench: Workbench) -> None:
    log(bench)
    assert counts(built(bench)) == (3, 0, 3)
    insert(bench, "t", "(3, 30)", "(2, 20)")
    node = built(bench)
    assert (how(node), counts(node), node.warnings) == ("append", (2, 0, 5), ())
    bench.sql("UPDATE lake.{raw}.t SET v = 11 WHERE id = 1")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 3")
    node = built(bench)
    assert (how(node), counts(node)) == ("bag_merge", (1, 0, 6))
    assert [(w.code, w.message[:6]) for w in node.warnings] == [("S309", "2 rows")]
    assert bench.rows("m") == [(1, 10), (1, 11), (2, 20), (2, 20), (2, 20), (3, 30)]
    # a row that went and came back in one step entered nothing
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    insert(bench, "t", "(1, 11)")
    node = built(bench)
    assert (node.status, counts(node)) == ("unchanged", (0, 0, 6))
    assert bench.told() == {}
    assert counts(built(bench, force=True)) == (0, 0, 6)
    # by comparing both versions in full
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    insert(bench, "t", "(5, 50)")
    node = built(bench, refresh="full")
    assert (how(node), counts(node)) == ("difference", (1, 0, 7))
    assert [w.code for w in node.warnings] == ["S309"]


def test_retractions_can_be_refused(bench: Workbench) -> None:
    log(bench, more=", on_retraction error")
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    insert(bench, "t", "(3, 30)")
    error = refused(bench)
    assert (error["code"], str(error["message"])[:5]) == ("X009", "1 row")
    assert len(bench.rows("m")) == 3


JOINED = (
    "SELECT t.id, d.name, current_timestamp() AS loaded FROM {raw}.t AS t "
    "LEFT JOIN {raw}.d AS d ON d.id = t.v"
)


def test_lookups_add_no_rows_and_the_time_of_the_run_is_no_change(bench: Workbench) -> None:
    log(bench, JOINED)
    source(bench, "d", "id INT, name STRING", "(10, 'ten')", "(20, 'twenty')")
    told = bench.project().explain("m").plan.nodes[0].strategy
    assert told is not None
    assert told == bench.plan().nodes[0].strategy
    assert told.why.split("; ")[1:] == [
        f"drivers: {bench.raw}.t",
        f"lookups: {bench.raw}.d (if id is unique in it)",
    ]
    built(bench)
    bench.sql("UPDATE lake.{raw}.d SET name = 'TEN' WHERE id = 10")
    node = built(bench)
    assert (node.status, counts(node)) == ("unchanged", (0, 0, 3))
    assert "lookups: " in str(node.strategy and node.strategy.why)
    insert(bench, "t", "(4, 10)")
    bench.sql("UPDATE lake.{raw}.d SET name = 'Twenty' WHERE id = 20")
    assert counts(built(bench)) == (1, 0, 4)
    assert bench.rows("m", "id, name")[-1] == (4, "TEN")
    # no longer unique: it drives too, and the row that it doubles enters
    insert(bench, "d", "(10, 'zehn')")
    node = built(bench)
    assert counts(node) == (2, 0, 6)
    # unless the header says which sources drive
    bench.model("m", "MODEL (materialized append, append_from [{raw}.t]);\n" + JOINED)
    insert(bench, "d", "(20, 'zwanzig')")
    assert counts(built(bench)) == (0, 0, 6)
    bench.model("m", "MODEL (materialized append, append_from [other]);\n" + JOINED)
    assert "`other`" in str(refused(bench)["message"])


def test_a_new_definition_is_for_new_rows(bench: Workbench) -> None:
    log(bench)
    built(bench)
    source(bench, "u", "id INT, v INT", "(8, 80)")
    both = "SELECT id, v * 2 AS v FROM {raw}.t UNION ALL SELECT id, v FROM {raw}.u"
    bench.model("m", "MODEL (materialized append);\n" + both)
    node = built(bench)
    assert (node.status, node.reason, counts(node)) == ("unchanged", "query_changed", (0, 0, 3))
    insert(bench, "t", "(3, 30)")
    insert(bench, "u", "(9, 90)")
    assert counts(built(bench)) == (2, 0, 5)
    assert bench.rows("m")[-2:] == [(3, 60), (9, 90)]
    bench.model("m", "MODEL (materialized append, replay_on_change full);\n" + LOG)
    assert counts(built(bench))[2] == 4


GAPS = {
    "written by someone else": "INSERT INTO lake.{dev}.m VALUES (7, 7)",
    "source recreated": "DROP TABLE lake.{raw}.t PURGE",
    "history expired": (
        "CALL lake.system.expire_snapshots(table => '{raw}.t', retain_last => 1, "
        "older_than => TIMESTAMP '2099-01-01')"
    ),
    "stamp lost": "ALTER TABLE lake.{dev}.m UNSET TBLPROPERTIES ('sqb.stamp')",
}


@pytest.mark.parametrize("gap", GAPS)
def test_a_log_is_never_rebuilt_by_our_own_decision(bench: Workbench, gap: str) -> None:
    log(bench)
    built(bench)
    bench.sql("UPDATE lake.{raw}.t SET v = 12 WHERE id = 1")
    bench.sql(GAPS[gap])
    if gap == "source recreated":
        source(bench, "t", "id INT, v INT", "(1, 10)", "(6, 60)")
    if gap == "stamp lost":
        bench.sql("DELETE FROM lake.{dev}._sqlbuild_fingerprints WHERE true")
    before = bench.rows("m")
    error = refused(bench)
    assert error["code"] == "X008", error
    assert "--full-refresh" in str(error["help"])
    assert bench.rows("m") == before


def test_what_someone_else_wrote_into_a_log_can_be_taken_back(bench: Workbench) -> None:
    log(bench)
    built(bench)
    bench.sql("INSERT INTO lake.{dev}.m VALUES (7, 7)")
    insert(bench, "t", "(3, 30)")
    advice = str(refused(bench)["help"])
    bench.sql(advice.split("`")[1])
    assert counts(built(bench)) == (1, 0, 4)
    assert bench.rows("m") == [(1, 10), (2, 20), (2, 20), (3, 30)]


def test_no_row_is_left_out_because_a_column_happens_to_be_unique(bench: Workbench) -> None:
    source(bench, "c", "id INT, name STRING", "(1, 'a')", "(2, 'b')")
    source(bench, "o", "oid INT, cid INT", "(10, 1)")
    bench.model(
        "m",
        "MODEL (materialized append);\n"
        "SELECT o.oid, c.name FROM {raw}.c AS c JOIN {raw}.o AS o ON o.cid = c.id",
    )
    built(bench)
    for row in ("(11, 2)", "(12, 2)"):
        insert(bench, "o", row)
        assert counts(built(bench))[0] == 1
    assert bench.rows("m") == [(10, "a"), (11, "b"), (12, "b")]


@pytest.mark.parametrize("refresh", ["rows", "full"])
def test_a_log_of_first_rows(bench: Workbench, refresh: str) -> None:
    source(bench, "t", "id INT, v INT", "(1, 10)", "(2, 20)")
    bench.model(
        "m", "MODEL (materialized append);\nSELECT id FROM {raw}.t ORDER BY id DESC LIMIT 1"
    )
    built(bench)
    insert(bench, "t", "(3, 30)")
    node = built(bench, refresh=refresh)
    assert (how(node), counts(node)) == ("difference", (1, 0, 2))


def test_another_layout_is_no_reason_to_replay_a_log(bench: Workbench) -> None:
    log(bench)
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    header = "MODEL (materialized append, replay_on_change full{});\n"
    bench.model("m", header.format("") + LOG)
    built(bench)
    bench.model("m", header.format(", partitioned_by [id]") + LOG)
    built(bench)
    assert bench.rows("m") == [(1, 10), (2, 20), (2, 20)]


def test_a_log_that_must_not_be_built_anew_says_so(bench: Workbench) -> None:
    log(bench)
    bench.model("m", "MODEL (materialized append, full_refresh false);\n" + LOG)
    built(bench)
    bench.sql("INSERT INTO lake.{dev}.m VALUES (7, 7)")
    insert(bench, "t", "(3, 30)")
    assert "take `full_refresh false` out" in str(refused(bench)["help"])


def test_a_log_goes_on_however_often_its_source_was_compacted(bench: Workbench) -> None:
    log(bench)
    built(bench)
    option = "options => map('rewrite-all', 'true')"
    for _ in range(2):
        bench.sql(f"CALL lake.system.rewrite_data_files(table => '{{raw}}.t', {option})")
        assert bench.told() == {}
    assert not bench.project().plan().rerecord
    bench.sql(
        "CALL lake.system.expire_snapshots(table => '{raw}.t', retain_last => 1, "
        "older_than => TIMESTAMP '2099-01-01')"
    )
    bench.build()
    insert(bench, "t", "(3, 30)")
    assert counts(built(bench)) == (1, 0, 4)


def test_a_log_goes_on_however_often_a_table_above_it_was_compacted(bench: Workbench) -> None:
    log(bench, "SELECT id, v FROM s")
    bench.model("s", LOG)
    built(bench)
    option = "options => map('rewrite-all', 'true')"
    for _ in range(2):
        bench.sql(f"CALL lake.system.rewrite_data_files(table => '{{dev}}.s', {option})")
        assert bench.told() == {}
    assert not bench.project().plan().rerecord
    bench.sql(
        "CALL lake.system.expire_snapshots(table => '{dev}.s', retain_last => 1, "
        "older_than => TIMESTAMP '2099-01-01')"
    )
    insert(bench, "t", "(3, 30)")
    assert counts(built(bench)) == (1, 0, 4)
    assert bench.told() == {}


def test_a_log_whose_rows_are_never_the_same_is_refused_at_once(bench: Workbench) -> None:
    log(bench, "SELECT id, uuid() AS u FROM {raw}.t")
    error = refused(bench)
    assert (error["code"], "uuid()" in str(error["message"])) == ("X007", True)
    assert bench.project().catalog.head(bench.schema, "m") is None


def test_a_log_of_maps(bench: Workbench) -> None:
    source(bench, "t", "id INT, v MAP<STRING, INT>", "(1, map('a', 1))")
    bench.model("m", "MODEL (materialized append);\nSELECT id, v FROM {raw}.t")
    built(bench)
    insert(bench, "t", "(2, map('b', 2))")
    node = built(bench)
    assert (how(node), counts(node)) == ("append", (1, 0, 2))
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    insert(bench, "t", "(3, map('a', 1, 'b', 2))")
    node = built(bench)
    assert (how(node), counts(node), len(node.warnings)) == ("difference", (1, 0, 3), 1)


def test_another_layout_keeps_the_log(bench: Workbench) -> None:
    log(bench)
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    insert(bench, "t", "(3, 30)")
    bench.model("m", f"MODEL (materialized append, partitioned_by [id]);\n{LOG}")
    node = built(bench)
    assert (node.reason, counts(node)) == ("config_changed", (1, 0, 4))
    assert bench.rows("m") == [(1, 10), (2, 20), (2, 20), (3, 30)]
    facts = bench.project().observe().relations["m"]
    assert facts.partitioning == ("id",)
    insert(bench, "t", "(4, 40)")
    assert counts(built(bench)) == (1, 0, 5)


def test_a_view_above_a_log_may_become_a_table_and_be_redefined(bench: Workbench) -> None:
    source(bench, "t", "id INT, v INT", "(1, 10)", "(2, 20)")
    view, query = "MODEL (materialized view);\n", "SELECT id, v * {k} AS v FROM {raw}.t"
    bench.model("up", view + query.replace("{k}", "1"))
    bench.model("m", "MODEL (materialized append);\nSELECT id, v FROM up")
    built(bench)
    bench.model("up", view + query.replace("{k}", "2"))
    assert counts(built(bench)) == (0, 0, 2)
    insert(bench, "t", "(3, 30)")
    bench.model("up", query.replace("{k}", "2"))
    node = built(bench)
    assert (how(node), counts(node), node.warnings) == ("difference", (1, 0, 3), ())
    insert(bench, "t", "(4, 40)")
    assert counts(built(bench)) == (1, 0, 4)
    assert bench.rows("m") == [(1, 10), (2, 20), (3, 60), (4, 80)]
    # what was a table was made of versions that are known
    bench.model("up", view + query.replace("{k}", "2"))
    assert counts(built(bench)) == (0, 0, 4)
    insert(bench, "t", "(5, 50)")
    assert counts(built(bench)) == (1, 0, 5)
    assert bench.rows("m")[-1] == (5, 100)


def test_a_source_that_was_rolled_back_is_compared(bench: Workbench) -> None:
    log(bench)
    first = bench.sql("SELECT snapshot_id FROM lake.{raw}.t.snapshots")[0][0]
    insert(bench, "t", "(3, 30)")
    built(bench)
    bench.sql(f"CALL lake.system.rollback_to_snapshot('{{raw}}.t', {first})")
    insert(bench, "t", "(4, 40)")
    node = built(bench)
    assert counts(node) == (1, 0, 5)
    assert [w.code for w in node.warnings] == ["S309"]


COLUMNS = {
    "sync_all_columns": [(1, 10, None), (2, 20, None), (2, 20, None), (3, 30, 5)],
    "ignore": [(1, 10), (2, 20), (2, 20), (3, 30)],
    "fail": None,
}


@pytest.mark.parametrize("policy", COLUMNS)
def test_columns_that_come(bench: Workbench, policy: str) -> None:
    header = f", on_schema_change {policy}"
    log(bench, "SELECT * FROM {raw}.t", header)
    built(bench)
    bench.sql("ALTER TABLE lake.{raw}.t ADD COLUMN w INT")
    insert(bench, "t", "(3, 30, 5)")
    wanted = COLUMNS[policy]
    if wanted is None:
        assert refused(bench)["code"] == "X010"
        return
    assert counts(built(bench)) == (1, 0, 4)
    assert bench.rows("m") == wanted
    assert bench.told() == {}
    if policy == "sync_all_columns":
        bench.model("m", f"MODEL (materialized append{header});\nSELECT id, w FROM {{raw}}.t")
        insert(bench, "t", "(4, 40, 6)")
        built(bench)
        assert bench.rows("m") == [(1, None), (2, None), (2, None), (3, 5), (4, 6)]


def test_nothing_else_takes_the_place_of_a_log(bench: Workbench) -> None:
    log(bench)
    built(bench)
    (bench.root / "models" / "m.sql").unlink()
    bench.model("other", "MODEL (materialized table, alias m);\nSELECT 1 AS one")
    assert (refused(bench, "other")["code"], len(bench.rows("m"))) == ("X008", 3)
    (bench.root / "models" / "other.sql").unlink()
    bench.write("seeds/m.csv", "one\n1\n")
    assert (refused(bench)["code"], len(bench.rows("m"))) == ("X008", 3)
    bench.build(full_refresh=True)
    assert bench.rows("m") == [(1,)]


def test_a_log_without_sources_has_nothing_to_tell(bench: Workbench) -> None:
    bench.model("m", "MODEL (materialized append);\nSELECT 1 AS one")
    told = bench.project().explain("m").plan.nodes[0].strategy
    assert told is not None
    assert told.why.endswith("; drivers: none")


def test_a_source_that_was_emptied_by_its_replacement_is_compared(bench: Workbench) -> None:
    log(bench)
    built(bench)
    bench.sql("CREATE OR REPLACE TABLE lake.{raw}.t (id INT, v INT) USING iceberg")
    node = built(bench)
    assert (counts(node), [w.code for w in node.warnings]) == ((0, 0, 3), ["S309"])
    insert(bench, "t", "(1, 10)")
    assert counts(built(bench)) == (1, 0, 4)


def test_a_log_of_files_that_may_change_says_what_it_lacks(bench: Workbench) -> None:
    bench.write("data/one.csv", "id\n1\n")
    bench.write("sources/s.yml", "sources:\n  - {name: events, path: data, format: csv}\n")
    bench.model("m", "MODEL (materialized append);\nSELECT id FROM events")
    built(bench)
    bench.write("data/two.csv", "id\n2\n")
    error = refused(bench)
    assert error["code"] == "X008"
    assert "`events`" in str(error["message"])
    assert "`immutable_files`" in str(error["message"])
    assert "drops the row that it holds" in str(error["help"])


DECLARED = "sources:\n  - {{name: {name}, schema: {{raw}}, table: t, unique_key: [id]}}\n"


@pytest.mark.parametrize("through", ["", "MODEL (materialized view);\n"])
def test_a_source_that_is_declared_or_renamed_is_the_same_table(
    bench: Workbench, through: str
) -> None:
    log(bench)
    if through:
        bench.model("v", through + LOG)
        bench.model("m", "MODEL (materialized append);\nSELECT id, v FROM v")
    built(bench)
    for number, name in enumerate(("t", "orders", "sales"), 4):
        bench.write("sources/s.yml", DECLARED.format(name=name))
        insert(bench, "t", f"({number}, {number})")
        assert counts(built(bench)) == (1, 0, number)
    (bench.root / "sources" / "s.yml").unlink()
    insert(bench, "t", "(7, 7)")
    assert counts(built(bench)) == (1, 0, 7)
    assert bench.told() == {}


def test_a_table_with_several_rows_for_one_is_no_lookup(bench: Workbench) -> None:
    source(bench, "clicks", "u INT, n INT", "(1, 1)", "(1, 2)")
    source(bench, "addr", "u INT, city INT", "(1, 10)", "(1, 20)")
    source(bench, "city", "id INT, name STRING", "(10, 'x')", "(20, 'y')", "(30, 'z')")
    joins = "{} {{raw}}.addr a ON a.u = c.u JOIN {{raw}}.city e ON e.id = a.city"
    for name, kind in (("m", "JOIN"), ("k", "LEFT JOIN")):
        sql = f"SELECT c.n, a.city, e.name FROM {{raw}}.clicks c {joins.format(kind)}"
        bench.model(name, f"MODEL (materialized append);\n{sql}")
    built(bench)
    insert(bench, "addr", "(1, 30)")
    bench.sql("UPDATE lake.{raw}.city SET name = 'Z' WHERE id = 10")
    node = built(bench)
    assert counts(node) == (2, 0, 6)
    assert f"lookups: {bench.raw}.city" in str(node.strategy and node.strategy.why)
    assert len(bench.rows("k")) == 6


@pytest.mark.parametrize(
    ("kind", "on", "first", "more"),
    [
        ("STRING", "d.id = t.v", ("('10', 'a')",), "('010', 'b')"),
        ("STRING", "d.id = t.v + 0", ("('10', 'a')",), "('010', 'b')"),
        ("INT", "d.id <=> nullif(t.v, 10)", ("(NULL, 'a')",), "(NULL, 'b')"),
    ],
)
def test_a_lookup_is_unique_as_the_join_compares_it(
    bench: Workbench, kind: str, on: str, first: tuple[str, ...], more: str
) -> None:
    log(bench, f"SELECT t.id, d.name FROM {{raw}}.t t JOIN {{raw}}.d d ON {on}")
    source(bench, "d", f"id {kind}, name STRING", *first)
    built(bench)
    insert(bench, "d", more)
    assert counts(built(bench)) == (1, 0, 2)


def test_values_that_are_never_the_same_are_seen_behind_views(bench: Workbench) -> None:
    log(bench, "SELECT id, u FROM v")
    bench.model("v", "MODEL (materialized view);\nSELECT id, uuid() AS u FROM {raw}.t")
    error = refused(bench)
    assert (error["code"], "in a view" in str(error["message"])) == ("X007", True)


def test_a_table_that_a_log_did_not_read_before_is_named(bench: Workbench) -> None:
    log(bench, "SELECT id, v FROM s")
    bench.model("s", "SELECT id, v FROM {raw}.t")
    built(bench)
    bench.model("m", "MODEL (materialized append);\nSELECT id, v FROM {raw}.t")
    insert(bench, "t", "(3, 30)")
    node = built(bench)
    assert counts(node) == (0, 0, 3)
    assert [(w.code, f"{bench.raw}.t" in w.message) for w in node.warnings] == [("S315", True)]
    insert(bench, "t", "(4, 40)")
    node = built(bench)
    assert (counts(node), node.warnings) == ((1, 0, 4), ())


def test_a_log_does_not_begin_anew_under_another_name(bench: Workbench) -> None:
    log(bench)
    built(bench)
    bench.model("m", f"MODEL (materialized append, alias m_log);\n{LOG}")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    insert(bench, "t", "(3, 30)")
    error = refused(bench)
    assert error["code"] == "X008"
    assert bench.project().catalog.head(bench.schema, "m_log") is None
    statement = str(error["help"]).split("`")[1]
    bench.sql(statement)
    assert counts(built(bench)) == (1, 0, 4)
    assert bench.rows("m_log")[0] == (1, 10)


def test_a_log_that_was_compacted_and_expired_goes_on(bench: Workbench) -> None:
    log(bench)
    built(bench)
    insert(bench, "t", "(3, 30)")
    built(bench)
    option = "options => map('rewrite-all', 'true')"
    for number in (4, 5):
        for _ in range(2):
            bench.sql(f"CALL lake.system.rewrite_data_files(table => '{{dev}}.m', {option})")
        bench.sql(
            "CALL lake.system.expire_snapshots(table => '{dev}.m', retain_last => 1, "
            "older_than => TIMESTAMP '2099-01-01')"
        )
        insert(bench, "t", f"({number}, {number})")
        assert counts(built(bench)) == (1, 0, number + 1)
        assert bench.told() == {}
    bench.sql("UPDATE lake.{dev}.m SET v = 1 WHERE id = 1")
    assert refused(bench)["code"] == "X008"


def test_a_query_begins_with_what_drives_it(bench: Workbench) -> None:
    source(bench, "h", "pid INT, price INT", "(1, 10)", "(1, 12)", "(2, 20)", "(2, 22)")
    source(bench, "o", "oid INT, pid INT", "(100, 1)")
    source(bench, "d", "pid INT, name STRING", "(1, 'a')", "(2, 'b')")
    on = "{{raw}}.{} JOIN {{raw}}.{} ON h.pid = o.pid".format
    bench.model("m", f"MODEL (materialized append);\nSELECT oid, price FROM {on('o', 'h')}")
    bench.model("k", f"MODEL (materialized append);\nSELECT oid, price FROM {on('h', 'o')}")
    bench.model(
        "l",
        "MODEL (materialized append);\nSELECT h.price, d.name FROM {raw}.h JOIN {raw}.d d"
        " ON d.pid = h.pid",
    )
    built(bench)
    insert(bench, "o", "(101, 2)")
    insert(bench, "d", "(3, 'c')")
    nodes = {node.name: node for node in bench.build().nodes}
    assert counts(nodes["m"]) == (2, 0, 4)
    # nothing tells that what comes second drives: that is said
    assert [(w.code, f"{bench.raw}.o" in w.message) for w in nodes["k"].warnings] == [
        ("S316", True)
    ]
    assert counts(nodes["l"]) == (0, 0, 4)
    bench.write("sources/d.yml", "sources:\n  - {name: d, schema: {raw}, unique_key: [pid]}\n")
    insert(bench, "d", "(4, 'd')")
    assert built(bench, "l").warnings == ()


@pytest.mark.parametrize("refresh", ["rows", "full"])
def test_rows_that_come_in_a_lookup_are_told_whatever_else_happens_to_it(
    bench: Workbench, refresh: str
) -> None:
    source(bench, "c", "id INT", "(1)", "(2)")
    source(bench, "o", "cid INT, v INT", "(1, 10)", "(2, 20)")
    query = "SELECT c.id, o.v FROM {raw}.c LEFT JOIN {raw}.o ON o.cid = c.id"
    bench.model("m", f"MODEL (materialized append);\n{query}")
    bench.model("n", f"MODEL (materialized append, append_from [{bench.raw}.c]);\n{query}")
    built(bench)

    def warned() -> tuple[tuple[int | None, int | None, int | None], list[str]]:
        nodes = {node.name: node for node in bench.build(refresh=refresh).nodes}
        assert nodes["n"].warnings == ()
        return counts(nodes["m"]), [warning.code for warning in nodes["m"].warnings]

    insert(bench, "o", "(3, 30)")
    bench.sql("UPDATE lake.{raw}.o SET v = 11 WHERE cid = 1")
    assert warned() == ((0, 0, 2), ["S316"])
    insert(bench, "o", "(4, 40)")
    bench.sql("DELETE FROM lake.{raw}.o WHERE cid = 3")
    insert(bench, "c", "(4)")
    assert warned() == ((1, 0, 3), ["S316"])
    bench.sql("UPDATE lake.{raw}.o SET v = 12 WHERE cid = 1")
    assert warned() == ((0, 0, 3), [])
    bench.sql("DELETE FROM lake.{raw}.o WHERE cid = 1")
    assert warned() == ((0, 0, 3), [])


@pytest.mark.parametrize("refresh", ["rows", "full"])
def test_files_that_come_in_a_lookup_are_told(bench: Workbench, refresh: str) -> None:
    source(bench, "c", "id INT", "(1)", "(2)")
    bench.write("data/f/one.csv", "cid,v\n1,10\n")
    bench.write(
        "sources/f.yml",
        "sources:\n  - {name: f, path: data/f, format: csv, immutable_files: true}\n",
    )
    bench.model(
        "m",
        "MODEL (materialized append);\nSELECT c.id, f.v FROM {raw}.c LEFT JOIN f ON f.cid = c.id",
    )
    built(bench)
    bench.write("data/f/two.csv", "cid,v\n3,30\n")
    insert(bench, "c", "(3)")
    node = built(bench, refresh=refresh)
    assert (counts(node), [w.code for w in node.warnings]) == ((1, 0, 3), ["S316"])


def test_a_log_does_not_begin_on_a_branch_or_a_tag(bench: Workbench) -> None:
    source(bench, "t", "id INT, v INT", "(1, 10)")
    source(bench, "o", "id INT", "(1)")
    for ref in ("BRANCH later", "TAG seen"):
        bench.sql(f"ALTER TABLE lake.{{raw}}.t CREATE {ref}")
    bench.model("m", "MODEL (materialized append);\nSELECT * FROM {raw}.t VERSION AS OF 'later'")
    bench.model("v", "MODEL (materialized view);\nSELECT * FROM {raw}.t VERSION AS OF 'seen'")
    bench.model("n", "MODEL (materialized append);\nSELECT id FROM v")
    looked = f"MODEL (materialized append, append_from [{bench.raw}.o]);\nSELECT o.id, v.v"
    bench.model("l", f"{looked} FROM {{raw}}.o LEFT JOIN v ON o.id = v.id")
    nodes = {node.name: node for node in bench.build().nodes}
    for name, ref in (("m", "later"), ("n", "seen")):
        error = nodes[name].error
        assert error is not None
        assert error["code"] == "X007"
        assert f"`{ref}`" in str(error["message"])
    # a driver beside it may grow, whatever becomes of the tag
    assert counts(nodes["l"]) == (1, 0, 1)
    insert(bench, "t", "(2, 20)")
    bench.sql("ALTER TABLE lake.{raw}.t CREATE OR REPLACE TAG seen")
    insert(bench, "o", "(2)")
    assert counts(built(bench, "l")) == (1, 0, 2)
    assert bench.rows("l") == [(1, 10), (2, 20)]


def test_a_log_whose_driver_becomes_a_branch_stops(bench: Workbench) -> None:
    log(bench, "SELECT id, v FROM {raw}.t")
    built(bench)
    bench.sql("ALTER TABLE lake.{raw}.t CREATE BRANCH later")
    bench.model("m", "MODEL (materialized append);\nSELECT * FROM {raw}.t VERSION AS OF 'later'")
    assert refused(bench)["code"] == "X007"
    assert len(bench.rows("m")) == 3


@pytest.mark.parametrize("refresh", ["rows", "auto", "full"])
def test_what_had_no_versions_before_was_not_empty(bench: Workbench, refresh: str) -> None:
    bench.write("data/f/one.csv", "id,v\n1,10\n2,20\n")
    bench.write("sources/f.yml", "sources:\n  - {name: f, path: data/f, format: csv}\n")
    sql = "SELECT CAST(id AS INT) AS id, CAST(v AS INT) AS v FROM f"
    kinds = {"m": "append", "t": "table", "k": "merge, unique_key [id]", "s": "scd2, unique_key id"}
    for name, kind in kinds.items():
        bench.model(name, f"MODEL (materialized {kind});\n{sql}")
    bench.build()
    source(bench, "f", "id INT, v INT", "(2, 20)", "(3, 30)")
    bench.write("sources/f.yml", "sources:\n  - {name: f, schema: {raw}}\n")
    result = bench.build(refresh=refresh)
    (log_,) = [node for node in result.nodes if node.name == "m"]
    assert log_.error is not None
    assert log_.error["code"] == "X008"
    assert len(bench.rows("m")) == 2
    assert bench.rows("t") == bench.rows("k") == [(2, 20), (3, 30)]
    assert [row[0] for row in bench.rows("s", "id, valid_to") if row[1] is None] == [2, 3]


def test_rows_that_come_first_into_an_empty_source_that_is_watched_by_a_value(
    bench: Workbench,
) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT, v INT) USING iceberg")
    watch = "freshness: {strategy: column, column: id, type: integer}"
    bench.write("sources/t.yml", f"sources:\n  - {{name: t, schema: {{raw}}, {watch}}}\n")
    bench.model("m", "MODEL (materialized append);\nSELECT id, v FROM t")
    built(bench)
    insert(bench, "t", "(1, 1)")
    assert counts(built(bench)) == (1, 0, 1)
    insert(bench, "t", "(2, 2)")
    assert counts(built(bench)) == (1, 0, 2)


def test_rows_that_come_first_into_an_empty_table_inside_an_expression(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
    bench.sql("CREATE TABLE lake.{raw}.u (id INT) USING iceberg")

    def means(sql: str) -> None:
        bench.write("sources/e.yml", f"sources:\n  - name: ex\n    expression: {sql}\n")

    means("SELECT id FROM {raw}.t")
    for name, kind in {"m": "append", "t": "table", "s": "scd2, unique_key id"}.items():
        bench.model(name, f"MODEL (materialized {kind});\nSELECT id FROM ex")
    bench.build(refresh="rows")
    insert(bench, "t", "(1)")
    node = built(bench, refresh="rows")
    assert (counts(node), node.warnings) == ((1, 0, 1), ())
    assert bench.rows("t") == bench.rows("s", "id") == [(1,)]
    insert(bench, "u", "(9)")
    means("SELECT id FROM {raw}.t UNION ALL SELECT id FROM {raw}.u")
    node = built(bench, refresh="rows")
    assert [warning.code for warning in node.warnings] == ["S315"]
    assert bench.rows("m") == [(1,)]


def test_a_table_above_a_log_may_become_a_view(bench: Workbench) -> None:
    log(bench, "SELECT id, v FROM s")
    bench.model("s", "SELECT id, v FROM {raw}.t")
    built(bench)
    bench.model("s", "MODEL (materialized view);\nSELECT id, v FROM {raw}.t")
    insert(bench, "t", "(3, 30)")
    assert counts(built(bench)) == (1, 0, 4)
    insert(bench, "t", "(4, 40)")
    node = built(bench)
    assert (counts(node), node.warnings) == ((1, 0, 5), ())


def test_tables_and_views_above_a_log_change_places_wherever_they_stand(bench: Workbench) -> None:
    view = "MODEL (materialized view);\n"
    query = "SELECT id, count(*) AS n FROM {raw}.t GROUP BY id"
    source(bench, "t", "id INT", "(1)")

    def stand(table: str, other: str, more: str = "") -> None:
        """Which of them are tables."""
        bench.model("one", table + query)  # behind a view
        bench.model("two", table + query)  # behind another of its like
        bench.model("second", table + "SELECT id, n FROM two")
        bench.model("third", other + query)  # behind a view that names it
        bench.model("fourth", (other or more) + query)  # with groups of its own

    stand("", view)
    for name, parent in (("v_one", "one"), ("v_third", "third"), ("v_fourth", "fourth")):
        bench.model(name, f"{view}SELECT id, n FROM {parent}")
    logs = {"one": "v_one", "two": "second", "three": "v_third", "four": "v_fourth"}
    for name, parent in logs.items():
        bench.model(f"log_{name}", f"MODEL (materialized append);\nSELECT id FROM {parent}")
    bench.build()
    state = "MODEL (row_state auto);\n"
    for number, tables in ((2, (view, "", state)), (4, ("", view)), (6, (view, "", state))):
        insert(bench, "t", f"({number})")
        stand(*tables)
        result = bench.build()
        ended = {n.name: n for n in result.nodes}
        insert(bench, "t", f"({number + 1})")
        bench.build()
        for name in logs:
            node = ended[f"log_{name}"]
            assert (node.error, node.warnings) == (None, ()), node
            assert bench.rows(f"log_{name}") == [(n,) for n in range(1, number + 2)], name
    assert bench.told() == {}


def test_a_log_knows_which_views_it_saw_through_whoever_was_built_since(bench: Workbench) -> None:
    log(bench, "SELECT id FROM outside")
    header = "MODEL (materialized view);\n"
    bench.model("inside", f"{header}SELECT id FROM {{raw}}.t")
    bench.model("outside", f"{header}SELECT id FROM inside")
    built(bench)
    bench.model("inside", "SELECT id FROM {raw}.t")
    insert(bench, "t", "(3, 30)")
    bench.build("outside", "inside")
    node = built(bench)
    assert (counts(node), node.warnings) == ((1, 0, 4), ())
    assert bench.told() == {}


def test_a_log_stops_where_nobody_knows_what_it_read_in_what_is_a_view_by_now(
    bench: Workbench,
) -> None:
    source(bench, "t", "id INT", "(1)")
    both = "SELECT 1 AS w, id FROM {s} UNION ALL SELECT 2 AS w, id FROM {{raw}}.t"
    bench.model("alone", "MODEL (materialized append);\nSELECT id FROM s")
    bench.model("both", f"MODEL (materialized append);\n{both}".format(s="s3"))
    bench.model("later", "MODEL (materialized append);\nSELECT id FROM s2")
    header = "MODEL (materialized merge, unique_key [w, id], deletes keep);\n"
    bench.model("kept", header + both.format(s="s3"))
    for name in ("s", "s2", "s3"):
        bench.model(name, "SELECT id FROM {raw}.t")
    bench.build()
    insert(bench, "t", "(2)")
    bench.build("both", "kept", "s2")  # what s3 holds is older than what they read
    for name in ("s", "s2", "s3"):
        bench.model(name, "MODEL (materialized view);\nSELECT id FROM {raw}.t")
    bench.build("s")
    result = bench.build()
    errors = {n.name: n.error and n.error["code"] for n in result.nodes if n.error}
    assert errors == dict.fromkeys(("alone", "both", "later"), "X008")
    assert bench.rows("kept") == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_a_table_above_a_log_becomes_a_view_over_an_expression(bench: Workbench) -> None:
    bench.write(
        "sources/e.yml",
        "sources:\n  - name: ex\n    expression: SELECT id FROM {raw}.t WHERE id > 0\n",
    )
    log(bench, "SELECT id FROM s")
    bench.model("s", "SELECT id FROM ex")
    bench.model("h", "MODEL (materialized view);\nSELECT id FROM s")
    bench.model("over", "MODEL (materialized append);\nSELECT * FROM h")
    built(bench)
    bench.model("s", "MODEL (materialized view);\nSELECT id FROM ex")
    insert(bench, "t", "(3, 30)")
    node = built(bench)
    assert (counts(node), node.warnings) == ((1, 0, 4), ())
    assert bench.rows("over") == bench.rows("m")
    # what was a view has no versions that could be compared
    bench.model("h", "MODEL (materialized scd2, unique_key id);\nSELECT DISTINCT id FROM {raw}.t")
    assert refused(bench, "over")["code"] == "X008"


def test_a_key_proves_nothing_before_it_was_built(bench: Workbench) -> None:
    source(bench, "t", "id INT", "(1)", "(2)")
    source(bench, "r", "id INT, r INT, name STRING", "(1, 1, 'a')", "(2, 1, 'b')")
    dim = "MODEL (materialized merge, unique_key [{}]);\nSELECT id, r, name FROM {{raw}}.r"
    bench.model("dim", dim.format("id, r"))
    bench.model(
        "m",
        "MODEL (materialized append);\nSELECT t.id, d.name FROM {raw}.t JOIN dim d ON d.id = t.id",
    )
    built(bench)
    insert(bench, "r", "(1, 2, 'c')")
    bench.build("dim")
    bench.model("dim", dim.format("id"))
    result = bench.build("m")
    assert [node.status for node in result.nodes if node.name == "m"] == ["success"]
    assert len(bench.rows("m")) == 3


def test_two_declared_names_may_be_swapped(bench: Workbench) -> None:
    source(bench, "o1", "id INT", "(1)")
    source(bench, "o2", "id INT", "(10)", "(20)")
    named = "  - {{{{name: {}, schema: {{{{raw}}}}, table: {{}}}}}}\n"
    names = f"sources:\n{named.format('a')}{named.format('b')}"
    bench.write("sources/s.yml", names.format("o1", "o2"))
    bench.model("m", "MODEL (materialized append);\nSELECT id FROM a UNION ALL SELECT id FROM b")
    built(bench)
    bench.write("sources/s.yml", names.format("o2", "o1"))
    insert(bench, "o1", "(2)")
    assert counts(built(bench)) == (1, 0, 4)


def test_the_open_versions_of_a_history_are_a_lookup(bench: Workbench) -> None:
    source(bench, "o", "oid INT, cid INT", "(100, 1)", "(101, 1)")
    source(bench, "c", "cid INT, city STRING", "(1, 'Rome')", "(2, 'Oslo')")
    bench.model("h", "MODEL (materialized scd2, unique_key cid);\nSELECT cid, city FROM {raw}.c")
    on = "JOIN h ON h.cid = o.cid AND h.valid_to IS NULL"
    bench.model("m", f"MODEL (materialized append);\nSELECT oid, city FROM {{raw}}.o {on}")
    built(bench)
    bench.sql("UPDATE lake.{raw}.c SET city = 'Lima' WHERE cid = 1")
    insert(bench, "o", "(102, 1)")
    assert counts(built(bench)) == (1, 0, 3)
    insert(bench, "o", "(103, 2)")
    assert counts(built(bench)) == (1, 0, 4)
    assert bench.rows("m") == [(100, "Rome"), (101, "Rome"), (102, "Lima"), (103, "Oslo")]
