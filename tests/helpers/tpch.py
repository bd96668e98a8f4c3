"""The tables of TPC-H and its 22 queries as models: what each reads, and small random rows."""

from __future__ import annotations

from pathlib import Path

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


def plan_of(sql: str) -> Plan:
    """The plan of a query over these tables."""

    def lookup(start: int) -> TableRef | None:
        word = sql[start:].split(maxsplit=1)[0].rstrip(",)")
        return TableRef(word, tuple(TABLES[word])) if word in TABLES else None

    return build(sql, structure(split(sql)), lookup)
