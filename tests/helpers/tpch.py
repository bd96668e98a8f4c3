"""The tables of TPC-H and its 22 queries as models: what each reads, and small random rows."""

from __future__ import annotations

import random
from pathlib import Path

from plans import Data, Row

from sqb.refresh.build import Plan, TableRef, build
from sqb.sql.structure import structure
from sqb.sql.tokens import split

QUERIES = {
    file.stem: file.read_text(encoding="utf-8")
    for file in sorted((Path(__file__).parents[1] / "refresh" / "tpch").glob("q*.sql"))
}

_MONEY = "DECIMAL(15, 2)"
TABLES: dict[str, dict[str, str]] = {
    "region": {"r_regionkey": "INT", "r_name": "STRING", "r_comment": "STRING"},
    "nation": {
        "n_nationkey": "INT",
        "n_name": "STRING",
        "n_regionkey": "INT",
        "n_comment": "STRING",
    },
    "supplier": {
        "s_suppkey": "BIGINT",
        "s_name": "STRING",
        "s_address": "STRING",
        "s_nationkey": "INT",
        "s_phone": "STRING",
        "s_acctbal": _MONEY,
        "s_comment": "STRING",
    },
    "customer": {
        "c_custkey": "BIGINT",
        "c_name": "STRING",
        "c_address": "STRING",
        "c_nationkey": "INT",
        "c_phone": "STRING",
        "c_acctbal": _MONEY,
        "c_mktsegment": "STRING",
        "c_comment": "STRING",
    },
    "part": {
        "p_partkey": "BIGINT",
        "p_name": "STRING",
        "p_mfgr": "STRING",
        "p_brand": "STRING",
        "p_type": "STRING",
        "p_size": "INT",
        "p_container": "STRING",
        "p_retailprice": _MONEY,
        "p_comment": "STRING",
    },
    "partsupp": {
        "ps_partkey": "BIGINT",
        "ps_suppkey": "BIGINT",
        "ps_availqty": "INT",
        "ps_supplycost": _MONEY,
        "ps_comment": "STRING",
    },
    "orders": {
        "o_orderkey": "BIGINT",
        "o_custkey": "BIGINT",
        "o_orderstatus": "STRING",
        "o_totalprice": _MONEY,
        "o_orderdate": "DATE",
        "o_orderpriority": "STRING",
        "o_clerk": "STRING",
        "o_shippriority": "INT",
        "o_comment": "STRING",
    },
    "lineitem": {
        "l_orderkey": "BIGINT",
        "l_partkey": "BIGINT",
        "l_suppkey": "BIGINT",
        "l_linenumber": "INT",
        "l_quantity": _MONEY,
        "l_extendedprice": _MONEY,
        "l_discount": _MONEY,
        "l_tax": _MONEY,
        "l_returnflag": "STRING",
        "l_linestatus": "STRING",
        "l_shipdate": "DATE",
        "l_commitdate": "DATE",
        "l_receiptdate": "DATE",
        "l_shipinstruct": "STRING",
        "l_shipmode": "STRING",
        "l_comment": "STRING",
    },
}


#: Values that the queries ask for, and others; keys and numbers are small.
_VALUES: dict[str, list[object]] = {
    "r_name": ["EUROPE", "ASIA", "AMERICA"],
    "n_name": ["FRANCE", "GERMANY", "CANADA", "SAUDI ARABIA"],
    "p_brand": ["Brand#45", "Brand#23", "Brand#12"],
    "p_type": ["PROMO BRASS", "ECONOMY ANODIZED STEEL", "MEDIUM POLISHED TIN"],
    "p_container": ["MED BOX", "SM CASE"],
    "p_size": [15, 3, 49],
    "p_name": ["forest green", "blue"],
    "c_mktsegment": ["BUILDING", "MACHINERY"],
    "c_phone": ["13-1", "31-2", "99-3"],
    "o_orderstatus": ["F", "O"],
    "o_orderpriority": ["1-URGENT", "5-LOW"],
    "o_orderdate": ["1993-08-15", "1994-03-01", "1995-03-01", "1993-11-11"],
    "o_comment": ["special requests", "none"],
    "s_comment": ["Customer Complaints", "none", "none"],
    "l_quantity": [1, 15, 200, 2],
    "l_extendedprice": [100, 250, 900],
    "l_discount": [0.05, 0.06, 0.1],
    "l_tax": [0.02, 0],
    "l_returnflag": ["R", "N"],
    "l_linestatus": ["O", "F"],
    "l_shipdate": ["1994-05-05", "1995-04-01", "1995-09-10", "1996-02-02"],
    "l_commitdate": ["1994-06-01", "1995-05-01"],
    "l_receiptdate": ["1994-07-01", "1995-06-01", "1994-05-20"],
    "l_shipinstruct": ["DELIVER IN PERSON"],
    "l_shipmode": ["MAIL", "AIR", "AIR"],
    "ps_availqty": [1, 150, 9],
    "ps_supplycost": [3, 5.5],
    "s_acctbal": [10, 20],
    "c_acctbal": [0, 50, 900],
}


def data(rng: random.Random, only: str | None = None) -> Data:
    """Small tables before and after, of which most rows matter to some query."""

    def row(rng: random.Random, table: str) -> Row:
        return tuple(
            None
            if rng.random() < 0.03
            else rng.choice(_VALUES[name])
            if name in _VALUES
            else rng.randrange(2)
            if name.endswith("key")
            else rng.choice(["x", "y"] if kind == "STRING" else [1, 2])
            for name, kind in TABLES[table].items()
        )

    return Data(rng, only, TABLES, row, most=20)


def plan_of(sql: str) -> Plan:
    """The plan of a query over these tables."""

    def lookup(start: int) -> TableRef | None:
        word = sql[start:].split(maxsplit=1)[0].rstrip(",)")
        return TableRef(word, tuple(TABLES[word])) if word in TABLES else None

    return build(sql, structure(split(sql)), lookup)
