"""The 22 queries of TPC-H as models, refreshed by rows against rebuilt in full.

The tables are made here, of the benchmark's columns and about its distributions, at a scale given.
Two refresh functions of the benchmark (RF1 adds orders with their lines, RF2 takes some away) and
a third (RF3 edits prices, moves orders to other customers, renames nations) run in turn; after
each, every model is brought up to date twice, by rows and in full, and the pair is compared.

    python benchmarks/tpch.py [--scale 0.01] [--cycles 2] [--markdown] [--json FILE] [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from show import table

from sqb.api import Project
from sqb.state.record import decode

QUERIES = Path(__file__).parents[1] / "tests" / "refresh" / "tpch"
#: At least so many of the queries are refreshed without a rebuild when RF1 and RF2 run.
REACH = 19

_NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4),
    ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2),
    ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
    ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
)  # fmt: skip
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_TYPES = "('STANDARD','SMALL','MEDIUM','LARGE','ECONOMY','PROMO')"
_FINISH = "('ANODIZED','BURNISHED','PLATED','POLISHED','BRUSHED')"
_METALS = "('TIN','NICKEL','BRASS','STEEL','COPPER')"
_COLOURS = "('green','forest','blue','almond','azure','ivory','khaki','lace','plum','snow')"
_MODES = "('REG AIR','AIR','RAIL','SHIP','TRUCK','MAIL','FOB')"


def _pick(values: str, seed: str) -> str:
    """One of a list of values, by chance that comes out the same each time."""
    count = values.count("'") // 2
    return f"element_at(array{values}, CAST(pmod(xxhash64({seed}), {count}) AS INT) + 1)"


def _number(seed: str, limit: int) -> str:
    return f"CAST(pmod(xxhash64({seed}), {limit}) AS INT)"


def _money(seed: str, limit: int) -> str:
    return f"CAST(pmod(xxhash64({seed}), {limit * 100}) / 100 AS DECIMAL(15,2))"


@dataclass
class Run:
    """One model after one refresh function."""

    model: str
    function: str
    strategy: str
    code: str | None
    seconds: float
    full: float


class Lake:
    """The tables and a project with every query twice."""

    def __init__(self, folder: Path, scale: float) -> None:
        self.folder = folder
        self.orders = max(int(1_500_000 * scale), 1000)
        self.customers = max(int(150_000 * scale), 100)
        self.parts = max(int(200_000 * scale), 200)
        self.suppliers = max(int(10_000 * scale), 20)
        self.next = self.orders
        self._write()
        self.owner = Project(folder)
        self.session = self.owner.session(folder / "spark.log")
        self.owner.catalog.ensure_namespace("raw")
        self._load()

    def _write(self) -> None:
        models = self.folder / "models"
        models.mkdir(parents=True)
        for file in sorted(QUERIES.glob("q*.sql")):
            for way in ("rows", "full"):
                header = f"MODEL (materialized table, refresh {way});\n"
                text = header + file.read_text(encoding="utf-8")
                (models / f"{file.stem}_{way}.sql").write_text(text, encoding="utf-8")
        names = [
            "region",
            "nation",
            "supplier",
            "customer",
            "part",
            "partsupp",
            "orders",
            "lineitem",
        ]
        (self.folder / "sources").mkdir()
        (self.folder / "sources" / "tpch.yml").write_text(
            "sources:\n"
            + "".join(f"  - name: {n}\n    schema: raw\n    table: {n}\n" for n in names),
            encoding="utf-8",
        )
        (self.folder / "sqlbuild_project.toml").write_text(
            'name = "tpch"\n[janitor]\nautomatic = false\n[spark]\nmaster = "local[2]"\n'
            '[spark.conf]\n"spark.driver.memory" = "6g"\n"spark.ui.enabled" = "false"\n'
            '"spark.sql.shuffle.partitions" = "4"\n',
            encoding="utf-8",
        )

    def _create(self, name: str, items: dict[str, str], rows: str) -> None:
        listed = ", ".join(f"{sql} AS {column}" for column, sql in items.items())
        self.session.sql(
            f"CREATE TABLE lake.raw.{name} USING iceberg AS SELECT {listed} FROM {rows}"
        )

    def _load(self) -> None:
        regions = ", ".join(f"({i}, '{name}')" for i, name in enumerate(_REGIONS))
        keys = {"r_regionkey": "k", "r_name": "n", "r_comment": "'x'"}
        self._create("region", keys, f"VALUES {regions} AS v(k, n)")
        nations = ", ".join(f"({i}, '{n}', {r})" for i, (n, r) in enumerate(_NATIONS))
        keys = {"n_nationkey": "k", "n_name": "n", "n_regionkey": "r", "n_comment": "'x'"}
        self._create("nation", keys, f"VALUES {nations} AS v(k, n, r)")
        phone = "concat({0} + 10, '-', lpad({1}, 3, '0'))"
        self._create(
            "supplier",
            {
                "s_suppkey": "CAST(id + 1 AS INT)",
                "s_name": "concat('Supplier#', id + 1)",
                "s_address": "concat('street ', id)",
                "s_nationkey": _number("id, 1", 25),
                "s_phone": phone.format(_number("id, 1", 25), _number("id, 2", 1000)),
                "s_acctbal": _money("id, 3", 9000),
                "s_comment": "IF(id % 50 = 0, 'Customer Complaints', 'calm')",
            },
            f"range({self.suppliers})",
        )
        segments = "('AUTOMOBILE','BUILDING','FURNITURE','MACHINERY','HOUSEHOLD')"
        self._create(
            "customer",
            {
                "c_custkey": "CAST(id + 1 AS INT)",
                "c_name": "concat('Customer#', id + 1)",
                "c_address": "concat('lane ', id)",
                "c_nationkey": _number("id, 1", 25),
                "c_phone": phone.format(_number("id, 1", 25), _number("id, 2", 1000)),
                "c_acctbal": f"{_money('id, 3', 9000)} - 500",
                "c_mktsegment": _pick(segments, "id, 4"),
                "c_comment": "'some words'",
            },
            f"range({self.customers})",
        )
        kind = [_pick(v, f"id, {n}") for n, v in enumerate((_TYPES, _FINISH, _METALS), 1)]
        size = "('SM','LG','MED','JUMBO','WRAP')"
        box = "('CASE','BOX','BAG','JAR','PACK','PKG','CAN','DRUM')"
        self._create(
            "part",
            {
                "p_partkey": "CAST(id + 1 AS INT)",
                "p_name": f"concat({_pick(_COLOURS, 'id, 5')}, ' ', {_pick(_COLOURS, 'id, 6')})",
                "p_mfgr": f"concat('Manufacturer#', {_number('id, 7', 5)} + 1)",
                "p_brand": f"concat('Brand#', {_number('id, 7', 5)} + 1, {_number('id', 5)} + 1)",
                "p_type": f"concat({kind[0]}, ' ', {kind[1]}, ' ', {kind[2]})",
                "p_size": f"{_number('id, 9', 50)} + 1",
                "p_container": f"concat({_pick(size, 'id, 10')}, ' ', {_pick(box, 'id, 11')})",
                "p_retailprice": _money("id, 12", 2000),
                "p_comment": "'x'",
            },
            f"range({self.parts})",
        )
        self._create(
            "partsupp",
            {
                "ps_partkey": "CAST(id DIV 4 + 1 AS INT)",
                "ps_suppkey": f"CAST(pmod(id DIV 4 + id % 4 * 7, {self.suppliers}) + 1 AS INT)",
                "ps_availqty": f"{_number('id, 1', 9999)} + 1",
                "ps_supplycost": _money("id, 2", 1000),
                "ps_comment": "'x'",
            },
            f"range({self.parts * 4})",
        )
        self._create("orders", self._orders(), f"range(0, {self.orders})")
        self._create("lineitem", self._lines(), self._line_rows(0, self.orders))

    def _day(self, key: str) -> str:
        return f"(DATE'1992-01-01' + {_number(f'{key}, 20', 2405)})"

    def _orders(self) -> dict[str, str]:
        urgent = "('1-URGENT','2-HIGH','3-MEDIUM','4-NOT SPECIFIED','5-LOW')"
        words = "IF(id % 30 = 0, 'special packages requests', 'plain')"
        return {
            "o_orderkey": "id + 1",
            "o_custkey": f"{_number('id, 21', self.customers * 2 // 3)} + 1",
            "o_orderstatus": _pick("('F','O','P')", "id, 22"),
            "o_totalprice": _money("id, 23", 500_000),
            "o_orderdate": self._day("id"),
            "o_orderpriority": _pick(urgent, "id, 24"),
            "o_clerk": "concat('Clerk#', id % 100)",
            "o_shippriority": "0",
            "o_comment": words,
        }

    def _line_rows(self, start: int, stop: int) -> str:
        inner = f"SELECT id, explode(sequence(1, 1 + {_number('id, 30', 7)})) AS l"
        return f"({inner} FROM range({start}, {stop})) AS v"

    def _lines(self) -> dict[str, str]:
        ship = f"({self._day('id')} + 1 + {_number('id, l, 31', 120)})"
        part = f"{_number('id, l, 32', self.parts)}"
        return {
            "l_orderkey": "id + 1",
            "l_partkey": f"{part} + 1",
            "l_suppkey": f"CAST(pmod({part} + l % 4 * 7, {self.suppliers}) + 1 AS INT)",
            "l_linenumber": "l",
            "l_quantity": f"CAST({_number('id, l, 33', 50)} + 1 AS DECIMAL(15,2))",
            "l_extendedprice": _money("id, l, 34", 90_000),
            "l_discount": f"CAST({_number('id, l, 35', 11)} / 100 AS DECIMAL(15,2))",
            "l_tax": f"CAST({_number('id, l, 36', 9)} / 100 AS DECIMAL(15,2))",
            "l_returnflag": _pick("('R','A','N')", "id, l, 37"),
            "l_linestatus": _pick("('O','F')", "id, l, 38"),
            "l_shipdate": ship,
            "l_commitdate": f"({self._day('id')} + 30 + {_number('id, l, 39', 60)})",
            "l_receiptdate": f"({ship} + 1 + {_number('id, l, 40', 30)})",
            "l_shipinstruct": _pick(
                "('DELIVER IN PERSON','COLLECT COD','NONE','TAKE BACK RETURN')", "id, l, 41"
            ),
            "l_shipmode": _pick(_MODES, "id, l, 42"),
            "l_comment": "'x'",
        }

    # What happens

    def rf1(self) -> None:
        """Orders come, with their lines: 0.1 %."""
        count = max(self.orders // 1000, 2)
        stop = self.next + count
        for name, items, rows in (
            ("orders", self._orders(), f"range({self.next}, {stop})"),
            ("lineitem", self._lines(), self._line_rows(self.next, stop)),
        ):
            listed = ", ".join(f"{sql} AS {column}" for column, sql in items.items())
            self.session.sql(f"INSERT INTO lake.raw.{name} SELECT {listed} FROM {rows}")
        self.next = stop

    def rf2(self) -> None:
        """Orders go, with their lines: 0.1 %."""
        chance = f"pmod(xxhash64({{0}}, {self.next}), 1000) = 0"
        self.session.sql(f"DELETE FROM lake.raw.lineitem WHERE {chance.format('l_orderkey')}")
        self.session.sql(f"DELETE FROM lake.raw.orders WHERE {chance.format('o_orderkey')}")

    def rf3(self) -> None:
        """Prices are edited, orders move to other customers, a nation is renamed."""
        self.session.sql(
            "UPDATE lake.raw.lineitem SET l_extendedprice = l_extendedprice + 1"
            f" WHERE pmod(xxhash64(l_orderkey, {self.next}), 2000) = 1"
        )
        self.session.sql(
            f"UPDATE lake.raw.orders SET o_custkey = o_custkey % {self.customers} + 1"
            f" WHERE pmod(xxhash64(o_orderkey, {self.next}), 2000) = 2"
        )
        self.session.sql(
            "UPDATE lake.raw.nation SET n_comment = concat(n_comment, 'y') WHERE n_nationkey = 7"
        )

    def build(self) -> dict[str, Any]:
        """Bring everything up to date, one model at a time."""
        result = Project(self.folder, spark=self.session).build(concurrency=1)
        if result.failed:
            raise SystemExit(f"{result.failed[0].name}: {result.failed[0].error}")
        return {node.name: node for node in result.nodes}

    def refresh(self, function: str) -> list[Run]:
        """One refresh function, then both ways of every query."""
        getattr(self, function)()
        nodes = self.build()
        found = []
        for file in sorted(QUERIES.glob("q*.sql")):
            rows, full = nodes[f"{file.stem}_rows"], nodes[f"{file.stem}_full"]
            way = rows.strategy
            name, code = (way.name, way.code) if way is not None else ("none", None)
            self._compare(file.stem)
            found.append(Run(file.stem, function, name, code, rows.seconds, full.seconds))
        return found

    def _compare(self, name: str) -> None:
        project = Project(self.folder)
        heads = [project.catalog.head("dev", f"{name}_{way}") for way in ("rows", "full")]
        stamps = [decode(project.facts.get(h.location).stamp) for h in heads if h is not None]
        one, two = (stamp.data if stamp is not None else None for stamp in stamps)
        if one != two:
            raise SystemExit(f"{name}: the rows differ from those of a rebuild")


def listed(runs: list[Run], *, markdown: bool) -> str:
    """Each query: what was done by each function, and the seconds of all."""
    functions = list(dict.fromkeys(run.function for run in runs))
    head = ["query", *functions, "rows s", "full s"]
    body = []
    for model in dict.fromkeys(run.model for run in runs):
        mine = [run for run in runs if run.model == model]
        cells = []
        for function in functions:
            ways = Counter(_way(run) for run in mine if run.function == function)
            cells.append(", ".join(ways))
        rows, full = sum(r.seconds for r in mine), sum(r.full for r in mine)
        body.append([model, *cells, f"{rows:.1f}", f"{full:.1f}"])
    return table(head, body, 1 + len(functions), markdown=markdown)


def _way(run: Run) -> str:
    return f"full ({run.code})" if run.strategy == "full" else run.strategy


def main() -> int:
    """Measure, print, compare with the goal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--cycles", type=int, default=2)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder) / "project", options.scale)
        print(f"{lake.orders:,} orders: first build", file=sys.stderr, flush=True)
        lake.build()
        for cycle in range(options.cycles):
            for function in ("rf1", "rf2", "rf3"):
                print(f"cycle {cycle + 1}: {function}", file=sys.stderr, flush=True)
                runs += lake.refresh(function)
        lake.session.stop()
    print(listed(runs, markdown=options.markdown))
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in runs], indent=1), encoding="utf-8")
    rebuilt = {run.model for run in runs if run.strategy == "full" and run.function != "rf3"}
    covered = len({run.model for run in runs}) - len(rebuilt)
    print(f"{covered} of 22 queries were refreshed without a rebuild when RF1 and RF2 ran.")
    return 1 if options.check and covered < REACH else 0


if __name__ == "__main__":
    sys.exit(main())
