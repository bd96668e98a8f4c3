"""State tables behind a thrift server: the statements that write them, the rows that are read."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import STAMP, of

from sqb.dbt.thrift_state import (
    MOST_ROWS,
    MOST_TEXT,
    create,
    insert,
    literal,
    read_newest,
    select_newest,
)
from sqb.state.tables import (
    FINGERPRINTS,
    FRESHNESS,
    Fingerprint,
    Observation,
    fingerprint_rows,
    observation_rows,
)

ROW = of(STAMP, node="model.shop.a", type="dbt")


def rows(count: int, definition: str = "") -> list[dict[str, Any]]:
    item = Fingerprint(ROW, "lake", "shop", "a", definition)
    return fingerprint_rows([item] * count)


def test_tables_have_the_columns_of_the_contract() -> None:
    schema, table = create("lake.shop", FRESHNESS)
    assert schema == "CREATE SCHEMA IF NOT EXISTS `lake`.`shop`"
    assert table == (
        "CREATE TABLE IF NOT EXISTS `lake`.`shop`.`_sqlbuild_source_freshness` ("
        "source_name STRING, target_database STRING, target_schema STRING, target_name STRING, "
        "run_id STRING, strategy STRING, value_kind STRING, data_version STRING, "
        "data_version_hash STRING, observed_at TIMESTAMP)"
    )


def test_a_row_is_written_by_column() -> None:
    seen = Observation(
        "source.a.raw.t", "lake", "raw", "t", "r1", "it's", "h", 1_700_000_000_000_001
    )
    (statement,) = insert("shop", FRESHNESS, observation_rows([seen]))
    assert statement == (
        "INSERT INTO `shop`.`_sqlbuild_source_freshness` SELECT /*+ COALESCE(1) */ * FROM VALUES\n"
        "('source.a.raw.t', 'lake', 'raw', 't', 'r1', 'adapter', 'snapshot', "
        "CAST(X'69742773' AS STRING), 'h', timestamp_micros(1700000000000001))"
    )


@pytest.mark.parametrize(
    ("count", "definition", "statements"),
    [
        (0, "", 0),
        (1, "", 1),
        (MOST_ROWS, "", 1),
        (MOST_ROWS + 1, "", 2),
        # one that is too large goes alone
        (3, "x" * MOST_TEXT, 3),
        (4, "x" * (MOST_TEXT // 4), 2),
    ],
)
def test_statements_are_of_bounded_size(count: int, definition: str, statements: int) -> None:
    found = list(insert("shop", FINGERPRINTS, rows(count, definition)))
    assert len(found) == statements
    assert sum(text.count("\n(") for text in found) == count


@given(st.text())
def test_no_text_ends_its_literal(text: str) -> None:
    found = literal(text)
    plain = re.fullmatch(r"'([^'\\$\n\x00-\x1f]*)'", found)
    coded = re.fullmatch(r"CAST\(X'((?:[0-9A-F]{2})+)' AS STRING\)", found)
    assert plain is not None or coded is not None
    if plain is not None:
        assert plain[1] == text
    if coded is not None:
        assert bytes.fromhex(coded[1]).decode() == text


def test_the_newest_row_of_each_node_is_asked_for() -> None:
    plain = select_newest("shop", None)
    assert "FROM `shop`.`_sqlbuild_fingerprints` WHERE node_type = 'dbt'" in plain
    assert " VERSION AS OF 7 " in select_newest("shop", 7)


def test_rows_that_are_not_ours_are_passed_over() -> None:
    texts = [row["metadata_json_b64"] for row in rows(1)]
    other = fingerprint_rows([Fingerprint(STAMP, "", "", "", "")])[0]["metadata_json_b64"]
    assert STAMP.type != "dbt"
    found = read_newest([*([text] for text in texts), [other], ["?"], [None], ["e30="]])
    assert found == {"model.shop.a": ROW}
