"""Queries that others wrote: what the plan of each gives, compared with what its text gives.

``python tests/execution/corpus.py FOLDER`` reads the ``.sql`` files of a folder, such as those that
Spark tests itself with (``sql/core/src/test/resources/sql-tests/inputs`` of its repository). What
they create is created; each query that is understood must give the rows of its text, of the same
types. Exits 1 if one does not.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))
from proof import bag
from pyspark.errors import PySparkException

from sqb.errors import SqbError
from sqb.execution.content_hash import quote
from sqb.execution.failures import first_line
from sqb.execution.rows import kinds_at
from sqb.execution.steps import Steps
from sqb.refresh.build import TableRef, build
from sqb.refresh.ir import Node
from sqb.refresh.levels import level
from sqb.refresh.prune import pruned
from sqb.refresh.script import Script
from sqb.sql.fragments import Unsupported
from sqb.sql.references import analyse
from sqb.sql.splice import splice
from sqb.sql.structure import structure
from sqb.sql.tokens import split
from sqb.sql.windows import written_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERY = re.compile(r"\(*\s*(SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE)
_MAKES = re.compile(r"(CREATE|INSERT|DROP|ALTER|USE)\b", re.IGNORECASE)


def statements(text: str) -> Iterator[str]:
    """The statements of a file; each ends where a line ends in a semicolon."""
    lines: list[str] = []
    for line in [*text.splitlines(), ";"]:
        if not line.lstrip().startswith("--"):
            lines.append(line)
        if line.rstrip().endswith(";"):
            found = "\n".join(lines).strip().rstrip(";").strip()
            if found:
                yield found
            lines = []


def understood(spark: SparkSession, sql: str) -> Node | None:
    """The plan of a query; None if it says what only a run can bind.

    Raises ``Unsupported`` where a rebuild would be the answer.
    """
    analysis = analyse(sql, file="query.sql")
    if analysis.constants or analysis.volatile:
        return None
    written = splice(sql, written_out(split(sql))).text
    references = {one.start: one for one in analyse(written, file="query.sql").references}

    def lookup(start: int) -> TableRef | None:
        if start not in references:
            return None
        name = ".".join(map(quote, references[start].parts))
        return TableRef(name, tuple(spark.table(name).columns))

    return pruned(build(written, structure(split(written)), lookup).root)


def planned(spark: SparkSession, root: Node) -> DataFrame:
    """What a plan gives."""
    script = Script(lambda name, _version: name, quote)
    steps = Steps(spark, script)
    return steps.described(script.state(level(root, kinds_at(script, steps)), "new"))


def compare(spark: SparkSession, sql: str) -> str:
    """What came of a query: one of the words that are counted."""
    try:
        root = understood(spark, sql)
    except Unsupported:
        return "not understood"
    except SqbError:
        return "refused"
    except PySparkException:
        return "without its tables"
    except Exception as error:  # noqa: BLE001 - reading it must not fail, whatever it says
        return _fails(sql, error)
    if root is None:
        return "of the moment"
    try:
        wanted = spark.sql(sql)
        rows = bag(wanted)
    except Exception:  # noqa: BLE001 - many are there to fail
        return "failing"
    try:
        found = planned(spark, root)
        same = bag(found) == rows and _types(found) == _types(wanted)
    except Unsupported:
        return "not understood"
    except Exception as error:  # noqa: BLE001 - a rebuild with a warning
        return _fails(sql, error)
    if not same:
        print(f"DIFFERENT {sql}", flush=True)
    return "equal" if same else "different"


def _fails(sql: str, error: Exception) -> str:
    print(f"FAILS {sql}\n  {type(error).__name__}: {first_line(error)}", flush=True)
    return "failing as plans"


def _types(frame: DataFrame) -> list[str]:
    return [kind for _, kind in frame.dtypes]


def main() -> int:
    """Compare all queries of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--match", default="", help="only files whose path has this pattern")
    options = parser.parse_args()
    os.environ.setdefault("SQB_NO_CLASS_ARCHIVE", "1")
    from sqb.spark.session import SparkSettings, start_session, stop_session

    counts, seen = Counter[str](), set[str]()
    files = [f for f in sorted(options.folder.rglob("*.sql")) if re.search(options.match, str(f))]
    with tempfile.TemporaryDirectory() as folder:
        settings = SparkSettings(
            catalog_name="lake",
            catalog_uri=f"sqlite:///{folder}/catalog.db",
            warehouse=folder,
            conf={"spark.sql.shuffle.partitions": "1", "spark.sql.warehouse.dir": f"{folder}/own"},
            master="local[2]",
        )
        log = Path(folder) / "spark.log"
        root = start_session(settings, log_file=log, app_name="corpus", environ=os.environ)
        for number, file in enumerate(files):
            spark = root.newSession()
            space = f"spark_catalog.file{number}"
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {space}")
            spark.sql(f"USE {space}")
            for sql in statements(file.read_text()):
                if _QUERY.match(sql) and sql not in seen:
                    seen.add(sql)
                    counts[compare(spark, sql)] += 1
                elif _MAKES.match(sql):
                    try:
                        spark.sql(sql).collect()
                    except Exception:  # noqa: BLE001 - many are there to fail
                        counts["statements that failed"] += 1
            print(f"{file.name}: {counts['equal']} equal", file=sys.stderr, flush=True)
        stop_session(root)
    for word, count in sorted(counts.items()):
        print(f"{count:6} {word}")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
