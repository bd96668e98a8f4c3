"""How long deciding takes: first compile, no-change plan and build, plan after an edit.

Every number is a fresh process of the installed command on a generated project whose first build
was recorded without Spark (see ``record.py``). SQLMesh runs beside it, on the same models, when it
is installed.

    python benchmarks/plan.py [--sizes 50 500 5000] [--repeat 5] [--markdown] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import report
from measure import Series, environment, imported, run

HERE = Path(__file__).parent
#: A run that finds nothing to do must not pay for these.
HEAVY = ("pyspark", "pyiceberg", "pyarrow", "sqlglot")
SQB = (sys.executable, "-m", "sqb")


class Bench:
    """One generated project, recorded as built, and the series measured on it."""

    def __init__(self, folder: Path, models: int, sqlmesh: Path | None) -> None:
        self.models = models
        self.sqb = folder / f"sqb-{models}"
        self.mesh = folder / f"sqlmesh-{models}" if sqlmesh else None
        self.sqlmesh = sqlmesh
        self.series: dict[tuple[str, str], Series] = {}
        self.imports: dict[str, set[str]] = {}

    def prepare(self) -> None:
        """Generate and record; give SQLMesh an environment that matches its project."""
        size = ["--models", str(self.models)]
        other = ["--sqlmesh", str(self.mesh)] if self.mesh else []
        _helper("generate.py", *size, str(self.sqb), *other)
        _helper("record.py", *size, str(self.sqb))
        if self.mesh and self.sqlmesh:
            script = (
                "import duckdb, pathlib; duckdb.connect('lake.db')"
                ".execute(pathlib.Path('sources.ddl').read_text())"
            )
            run([str(self.sqlmesh.parent / "python"), "-c", script], self.mesh)
            run([str(self.sqlmesh), *report.SQLMESH_APPLY], self.mesh)

    def check_imports(self) -> None:
        """Refuse to measure a no-change run that imports what it should not."""
        for command in ("plan", "build"):
            self._sqb(command)
            found = imported("sqb", [command], self.sqb)
            self.imports[command] = found
            heavy = sorted(found & set(HEAVY))
            if heavy:
                raise SystemExit(f"a no-change `sqb {command}` imports {', '.join(heavy)}")

    def warm(self, turn: int) -> None:
        """One sample of each case in which the caches are as an earlier command left them."""
        self._measure("no-change plan", "plan", "--fail-on", "run")
        runs = self._runs()
        self._measure("no-change build", "build")
        if self._runs() != runs:
            raise SystemExit("the no-change build did something")
        with self._edited(lambda text: text.replace("n.amount >=", f"n.amount + {turn} >=")):
            self._measure("plan after one edit", "plan", "--fail-on", "run", exit_code=1)
        self._sqb("plan")
        with self._edited(lambda text: f"{text}-- remark {turn}\n"):
            self._measure("plan after a comment edit", "plan", "--fail-on", "run")
        self._sqb("plan")
        if self.mesh and self.sqlmesh:
            series = self._series("SQLMesh", "no-change plan")
            command = [str(self.sqlmesh), *report.SQLMESH_PLAN]
            series.samples.append(run(command, self.mesh, says="No changes to plan"))

    def cold(self) -> None:
        """One sample of each case that starts without ``.sqb``."""
        shutil.rmtree(self.sqb / ".sqb")
        self._measure("first compile", "compile")
        shutil.rmtree(self.sqb / ".sqb")
        self._measure("first plan", "plan", "--fail-on", "run")

    def _measure(self, case: str, *arguments: str, exit_code: int = 0) -> None:
        sample = run([*SQB, *arguments], self.sqb, exit_code=exit_code)
        self._series("sqb", case).samples.append(sample)

    def _series(self, tool: str, case: str) -> Series:
        return self.series.setdefault((tool, case), Series(tool, case, self.models))

    def _sqb(self, *arguments: str) -> None:
        run([*SQB, *arguments], self.sqb)

    def _runs(self) -> int:
        folder = self.sqb / ".sqb" / "runs"
        return len(list(folder.iterdir())) if folder.exists() else 0

    @contextmanager
    def _edited(self, edit: report.Edit) -> Iterator[None]:
        """One staging model edited, and put back afterwards."""
        file = sorted((self.sqb / "models" / "staging").iterdir())[self.models // 10]
        before = file.read_text(encoding="utf-8")
        after = edit(before)
        if after == before:
            raise AssertionError(f"the edit does not fit {file.name}")
        file.write_text(after, encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(before, encoding="utf-8")


def _helper(script: str, *arguments: str) -> None:
    """Run a helper of the benchmark in a process of its own, so that this one stays small."""
    subprocess.run([sys.executable, str(HERE / script), *arguments], env=environment(), check=True)


def find_sqlmesh(given: str | None) -> Path | None:
    """The ``sqlmesh`` command: the one named, else beside this Python, else on the path."""
    if given:
        return Path(given).absolute()
    beside = Path(sys.executable).parent / "sqlmesh"
    found = str(beside) if beside.exists() else shutil.which("sqlmesh")
    return Path(found) if found else None


def measure(options: argparse.Namespace, folder: Path) -> report.Findings:
    """Measure all sizes, smallest first."""
    sqlmesh = find_sqlmesh(options.sqlmesh)
    findings = report.Findings(report.about_this_run(sqlmesh))
    for models in sorted(options.sizes):
        beside = sqlmesh if models <= options.sqlmesh_up_to else None
        bench = Bench(folder, models, beside)
        print(f"{models} models: preparing", file=sys.stderr)
        bench.prepare()
        bench.check_imports()
        print(f"{models} models: measuring", file=sys.stderr)
        for turn in range(1, options.repeat + 1):
            bench.warm(turn)
        for _ in range(options.repeat):
            bench.cold()
        findings.series += bench.series.values()
        findings.imports[models] = bench.imports
    return findings


def main() -> None:
    """Measure, print, and say by the exit code whether the reach was met if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 500, 5000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--sqlmesh", default=os.environ.get("SQLMESH"), help="its command")
    parser.add_argument("--sqlmesh-up-to", type=int, default=500, metavar="MODELS")
    parser.add_argument("--folder", type=Path, help="keep the projects there")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 if a reach is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sqb-bench-") as temporary:
        if options.folder:
            options.folder.mkdir(parents=True)
        findings = measure(options, options.folder or Path(temporary))
    print(report.text(findings, markdown=options.markdown))
    if options.json:
        options.json.write_text(json.dumps(findings.to_json(), indent=2) + "\n")
    if options.check and findings.missed():
        raise SystemExit(1)


if __name__ == "__main__":
    main()
