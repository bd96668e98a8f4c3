"""Refreshing by rows against rebuilding in full, side by side in one run.

Every model is built three times from the same sources: `refresh rows`, `refresh full`, and `auto`,
where sqb chooses. Rows arrive, each way builds one model at a time, and the seconds of the ways are
compared; the results must be equal. Reading the change is part of the refresh.

    python benchmarks/rows.py [--rows 400000 4000000] [--change 0.001 …] [--turns 3]
                              [--models by_day …] [--markdown] [--json FILE] [--svg FILE]
                              [--check] [--with FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

from show import Panel, picture, table

from sqb.api import Project
from sqb.state.record import decode

MODELS = {
    "filtered": """
        SELECT id, order_id, customer_id, amount * 2 AS twice
        FROM raw.lines WHERE quantity > 2""",
    "by_day": """
        SELECT day, SUM(amount) AS total, COUNT(amount) AS priced, COUNT(*) AS lines
        FROM raw.lines GROUP BY day""",
    "by_customer": """
        SELECT c.customer_id, c.region, COUNT(DISTINCT l.product_id) AS products,
          MAX(l.amount) AS most
        FROM raw.lines AS l JOIN raw.customers AS c ON c.customer_id = l.customer_id
        GROUP BY c.customer_id, c.region""",
    "top_three": """
        SELECT customer_id, id, amount FROM (
          SELECT customer_id, id, amount,
            RANK() OVER (PARTITION BY customer_id ORDER BY amount DESC, id) AS place
          FROM raw.lines) AS ranked
        WHERE place <= 3""",
    "order_totals": """
        SELECT o.order_id, o.customer_id, t.total, t.most
        FROM raw.orders AS o LEFT JOIN (
          SELECT order_id, SUM(amount) AS total, MAX(amount) AS most
          FROM raw.lines GROUP BY order_id) AS t ON t.order_id = o.order_id""",
}
#: At 40 million rows and a change of 0.1 %: at least so many times faster than in full.
REACH = {"filtered": 8.0, "by_day": 4.0, "order_totals": 6.0, "by_customer": 4.0}
#: What sqb chooses may take at most so many times what a rebuild takes.
REGRET = 1.15
#: From 4 to 40 million rows: at most so many times slower.
GROWTH = {"filtered": 1.5, "by_day": 1.5, "order_totals": 2.5}
WAYS = ("rows", "full", "auto")


@dataclass
class Point:
    """One model, at one size and one size of change."""

    model: str
    rows: int
    change: float
    strategy: str
    seconds: float
    full: float
    chosen: str
    auto: float

    @property
    def times(self) -> float:
        """How many times faster than in full."""
        return self.full / self.seconds

    @property
    def regret(self) -> float:
        """How many times what a rebuild takes the chosen way took."""
        return self.auto / self.full


class Lake:
    """A project with some models in every way, over sources of ``rows`` lines."""

    def __init__(self, folder: Path, rows: int, names: Sequence[str] = tuple(MODELS)) -> None:
        self.folder, self.rows, self.names = folder, rows, names
        self.next = rows
        models = folder / "models"
        models.mkdir(parents=True)
        for name in names:
            for way in WAYS:
                text = f"MODEL (materialized table, refresh {way});\n{dedent(MODELS[name])}"
                (models / f"{name}_{way}.sql").write_text(text, encoding="utf-8")
        (folder / "sqlbuild_project.toml").write_text(
            'name = "rows"\n[janitor]\nautomatic = false\n[spark]\nmaster = "local[2]"\n'
            '[spark.conf]\n"spark.driver.memory" = "6g"\n"spark.ui.enabled" = "false"\n'
            '"spark.sql.shuffle.partitions" = "8"\n',
            encoding="utf-8",
        )
        self.owner = Project(folder)
        self.session = self.owner.session(folder / "spark.log")
        self.owner.catalog.ensure_namespace("raw")
        self._load()

    def _load(self) -> None:
        customers = max(self.rows // 40, 100)
        sql = self.session.sql
        properties = "TBLPROPERTIES ('write.distribution-mode'='none')"
        sql(
            f"CREATE TABLE lake.raw.customers USING iceberg {properties} AS"
            " SELECT CAST(id AS INT) AS customer_id, CAST(id % 25 AS INT) AS region"
            f" FROM range({customers})"
        )
        columns = (
            "id BIGINT, order_id BIGINT, customer_id INT, product_id INT, quantity INT,"
            " amount DECIMAL(12,2), day DATE"
        )
        sql(f"CREATE TABLE lake.raw.lines ({columns}) USING iceberg {properties}")
        sql(
            "CREATE TABLE lake.raw.orders (order_id BIGINT, customer_id INT)"
            f" USING iceberg {properties}"
        )
        self._arrive(0, self.rows, parts=8)

    def _arrive(self, start: int, stop: int, parts: int = 1) -> None:
        customers = max(self.rows // 40, 100)
        whose = f"CAST(pmod(xxhash64(id DIV 4), {customers}) AS INT)"
        self.session.sql(
            f"INSERT INTO lake.raw.lines SELECT id, id DIV 4, {whose},"
            " CAST(pmod(xxhash64(id, 1), 1000) AS INT), CAST(pmod(xxhash64(id, 2), 5) AS INT),"
            " CAST(pmod(xxhash64(id, 3), 100000) / 100 AS DECIMAL(12,2)),"
            " DATE'2024-01-01' + CAST(id * 730 DIV "
            f"{max(self.rows, 1)} AS INT) FROM range({start}, {stop}, 1, {parts})"
        )
        self.session.sql(
            f"INSERT INTO lake.raw.orders SELECT id, CAST(pmod(xxhash64(id), {customers}) AS INT)"
            f" FROM range({start // 4}, {stop // 4}, 1, {parts})"
        )

    def warm_up(self, change: float) -> None:
        """Refresh by rows once: building in full has warmed the JVM up for rebuilds alone."""
        self.grow(change)
        self.build(("rows",))

    def grow(self, change: float) -> None:
        """Rows arrive."""
        count = max(int(self.rows * change) // 4 * 4, 4)
        self._arrive(self.next, self.next + count)
        self.next += count

    def build(self, ways: Sequence[str] = WAYS) -> dict[str, Any]:
        """Build one model at a time, one way after another; how each ended."""
        out = {}
        for way in ways:
            names = [f"{name}_{way}" for name in self.names]
            project = Project(self.folder, spark=self.session)
            result = project.build(select=names, concurrency=1)
            if result.failed:
                raise SystemExit(f"{result.failed[0].name}: {result.failed[0].error}")
            out |= {node.name: node for node in result.nodes}
        return out

    def measure(self, change: float, turns: int) -> list[Point]:
        """Rows arrive and all ways are taken, some times over; the median of each counts."""
        found: dict[str, list[Point]] = {name: [] for name in self.names}
        for turn in range(turns):
            self.grow(change)
            # they take turns in being first, which reads files that nobody read before
            first = turn % len(WAYS)
            nodes = self.build((*WAYS[first:], *WAYS[:first]))
            for name in self.names:
                rows, full, auto = (nodes[f"{name}_{way}"] for way in WAYS)
                ways = (rows.strategy.name, rows.seconds, full.seconds)
                chosen = (auto.strategy.name, auto.seconds)
                found[name].append(Point(name, self.rows, change, *ways, *chosen))
            self._compare()
        return [_median(points) for points in found.values()]

    def _compare(self) -> None:
        """The content hashes of all ways, which the stamps hold, must be equal."""
        project = Project(self.folder)
        for name in self.names:
            heads = [project.catalog.head("dev", f"{name}_{way}") for way in WAYS]
            stamps = [decode(project.facts.get(h.location).stamp) for h in heads if h is not None]
            hashes = {stamp.data if stamp is not None else None for stamp in stamps}
            if None in hashes or len(hashes) != 1:
                raise SystemExit(f"{name}: the rows differ from those of a rebuild")


def _median(turns: list[Point]) -> Point:
    seconds, full, auto = (
        statistics.median(getattr(p, what) for p in turns) for what in ("seconds", "full", "auto")
    )
    return replace(turns[-1], seconds=seconds, full=full, auto=auto)


def listed(points: list[Point], *, markdown: bool) -> str:
    """The points as text."""
    head = ["model", "rows", "change", "strategy", "rows s", "full s", "times", "chosen", "s"]
    body = [
        [
            p.model,
            f"{p.rows:,}",
            f"{p.change:.2%}",
            p.strategy,
            f"{p.seconds:.2f}",
            f"{p.full:.2f}",
            f"{p.times:.1f}x",
            p.chosen,
            f"{p.auto:.2f}",
        ]
        for p in points
    ]
    return table(head, body, 4, markdown=markdown)


def drawn(points: list[Point]) -> str:
    """Seconds by the size of the change, at the largest size that has several, and by the size at
    one change."""
    changes = Counter(p.rows for p in points)
    most = max(changes, key=lambda rows: (changes[rows] > len(MODELS), rows))
    panels = []
    for model in MODELS:
        mine = [p for p in points if p.model == model]
        by_change = sorted((p for p in mine if p.rows == most), key=lambda p: p.change)
        if len(by_change) > 1:
            panels.append(_panel(f"{model}, {most:,} rows: seconds", "% changed", by_change, 100))
        sizes = sorted((p for p in mine if p.change == 0.001), key=lambda p: p.rows)
        if len(sizes) > 1:
            panels.append(_panel(f"{model}, 0.1 % changed: seconds", "rows", sizes, None))
    return picture(panels)


def _panel(title: str, along: str, points: list[Point], share: int | None) -> Panel:
    at = [p.change * share if share else float(p.rows) for p in points]
    pairs = list(zip(at, points, strict=True))
    lines = {
        "by rows": [(x, p.seconds) for x, p in pairs],
        "in full": [(x, p.full) for x, p in pairs],
        "as chosen": [(x, p.auto) for x, p in pairs],
    }
    return Panel(title, along, lines, logarithmic=True)


def missed(points: list[Point]) -> list[str]:
    """The goals that were not reached, at the sizes they are set for."""
    out = []
    at = {(p.model, p.rows): p for p in points if p.change == 0.001}
    for model, times in REACH.items():
        point = at.get((model, 40_000_000))
        if point is not None and point.times < times:
            out.append(f"{model}: {point.times:.1f} times faster, not {times:.0f}")
    out += [
        f"{p.model}, {p.rows:,} rows, {p.change:.2%}: {p.chosen} was chosen, which took "
        f"{p.regret:.2f} times as long as a rebuild"
        for p in points
        if p.regret > REGRET
    ]
    for model, times in GROWTH.items():
        small, large = at.get((model, 4_000_000)), at.get((model, 40_000_000))
        if small and large and large.seconds > times * small.seconds:
            out.append(
                f"{model}: {large.seconds / small.seconds:.1f} times slower at ten times the rows"
            )
    return out


def main() -> int:
    """Measure, print, compare with the goals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[400_000])
    parser.add_argument("--change", type=float, nargs="+", default=[0.001])
    parser.add_argument("--models", choices=MODELS, nargs="+", default=list(MODELS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--with", dest="earlier", type=Path, help="points of an earlier run too")
    options = parser.parse_args()
    points: list[Point] = []
    if options.earlier:
        points = [Point(**one) for one in json.loads(options.earlier.read_text(encoding="utf-8"))]
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{rows:,} rows: loading", file=sys.stderr, flush=True)
            lake = Lake(Path(folder) / "project", rows, options.models)
            lake.build()
            lake.warm_up(options.change[0])
            for change in options.change:
                found = lake.measure(change, options.turns)
                points += found
                print(listed(found, markdown=False), file=sys.stderr, flush=True)
            lake.session.stop()
    print(listed(points, markdown=options.markdown))
    if options.json:
        options.json.write_text(json.dumps([asdict(p) for p in points], indent=1), encoding="utf-8")
    if options.svg:
        options.svg.write_text(drawn(points), encoding="utf-8")
    goals = missed(points)
    print("\n".join(goals) or "Every goal that was measured was met.")
    return 1 if goals and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
