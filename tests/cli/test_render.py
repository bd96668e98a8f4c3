"""How plans and builds look: real values through the renderers."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import click
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqb.cli.output import Output
from sqb.cli.render.build_text import ResultLines, show_end
from sqb.cli.render.documents import build_document, plan_document
from sqb.cli.render.errors import error_text
from sqb.cli.render.explain_text import why
from sqb.cli.render.plan_text import _folded, show_plan
from sqb.cli.render.progress import Progress
from sqb.cli.render.rows import as_csv, as_json, as_table
from sqb.cli.render.words import some
from sqb.execution.events import BuildResult, Event, NodeResult, Rows
from sqb.planning.plan import Cause, Plan, PlannedNode, PlanWarning, Strategy

SCHEMAS = Path(__file__).parents[2] / "docs" / "json"
FULL = Strategy("full", "the query is run in full and the table replaced")
DIFF = "--- built\n+++ models/stg_orders.sql\n@@ -1,2 +1,2 @@\n SELECT id\n-FROM a\n+FROM b"


def node(name: str, reason: str = "no_change", **rest: object) -> PlannedNode:
    fields: dict[str, object] = {
        "type": "model",
        "materialized": "table",
        "action": "skip" if reason == "no_change" else "run",
    }
    return PlannedNode(name=name, reason=reason, **(fields | rest))  # type: ignore[arg-type]


PLAN = Plan(
    "dev",
    (
        node("countries", "seed_changed", type="seed", materialized="seed"),
        node("stg_orders", "query_changed", materialized="view", diff=DIFF),
        node(
            "fct_orders",
            "upstream_changed",
            cause=Cause("stg_orders", "query_changed"),
            strategy=FULL,
        ),
        node("fct_raw", "source_changed", cause=Cause("raw.orders", "source_changed")),
        node(
            "mart",
            "upstream_changed",
            cause=Cause("stg_orders", "query_changed"),
            if_changed=("fct_orders", "fct_raw"),
        ),
        node("resting"),
    ),
    (
        PlanWarning(
            "S302", "mart", "`mart` rests on 1 stale upstream(s) outside the selection: x " * 2
        ),
    ),
)


@pytest.fixture
def out() -> Output:
    return Output(environ={})


class Screen:
    """A terminal that knows what a live display uses: lines, erasing, moving up."""

    def __init__(self) -> None:
        self.lines, self.row, self.column = [""], 0, 0

    def feed(self, text: str) -> None:
        for sign in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|.|\n|\r", text):
            if sign == "\n":
                self.row, self.column = self.row + 1, 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif sign == "\r":
                self.column = 0
            elif sign.startswith("\x1b"):
                if sign.endswith("A"):
                    self.row -= int(sign[2:-1] or 1)
                elif sign.endswith("K"):
                    self.lines[self.row] = ""
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + sign + line[self.column + 1 :]
                self.column += 1


def validate(document: object, schema: str) -> None:
    rules = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())
    plain = json.loads(json.dumps(document))
    jsonschema.Draft202012Validator(rules).validate(plain)


def test_a_plan_is_grouped_aligned_and_fits_80_columns(
    out: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    show_plan(PLAN, out, 0.213)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Query changed (1)",
        "  stg_orders  view",
        "      @@ -1,2 +1,2 @@",
        "       SELECT id",
        "      -FROM a",
        "      +FROM b",
        "",
        "Seed changed (1)",
        "  countries   seed",
        "",
        "Source changed (1)",
        "  fct_raw     table  raw.orders",
        "",
        "Upstream changed (1)",
        "  fct_orders  table  stg_orders (query changed)",
        "",
        "May run, if upstream rows change (1)",
        "  mart        table  if fct_orders, fct_raw",
        "",
        "warning[S302]: `mart` rests on 1 stale upstream(s) outside the selection: x",
        "  `mart` rests on 1 stale upstream(s) outside the selection: x",
        "",
        "4 to run, 1 may run, 1 current (0.21s)",
    ]
    assert max(map(len, lines)) <= 80


def test_a_current_project_says_that_there_is_nothing_to_do(
    out: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan("dev", tuple(node(f"m{i}") for i in range(50)), ())
    show_plan(plan, out, 0.21)
    expected = "Nothing to do: 50 models and seeds are current (0.21s)\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(("verbose", "shown"), [(False, 20), (True, 60)])
def test_long_diffs_are_cut_unless_verbose(
    verbose: bool, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    diff = "\n".join(f"+line {i}" for i in range(60))
    plan = Plan("dev", (node("a", "query_changed", diff=diff),), ())
    show_plan(plan, Output(verbose=verbose, environ={}), 0.1)
    text = capsys.readouterr().out
    assert text.count("+line") == shown
    assert ("40 more lines" in text) is not verbose


def test_long_names_and_long_lists_stay_within_80_columns(
    out: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    names = tuple(f"a_rather_long_upstream_name_{i}" for i in range(9))
    plan = Plan(
        "dev",
        (
            node("x" * 60, "upstream_changed", cause=Cause("y" * 40, "query_changed")),
            node("z", "upstream_changed", if_changed=names),
            node("w", "query_changed", diff="+" + "SELECT 1, " * 30),
        ),
        (),
    )
    show_plan(plan, out, 0.1)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "and 8 more" in text


def test_a_diff_is_broken_at_blanks_and_never_inside_a_word(
    out: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "+  max(CASE WHEN category = 'topping' THEN 1 ELSE 0 END) = 1 AS has_a_topping_or_more"
    long = "+" + "x" * 90 + " y"
    diff = f"{sql}\n{long}\n-  short"
    show_plan(Plan("dev", (node("a", "query_changed", diff=diff),), ()), out, 0.1)
    assert [line[6:] for line in capsys.readouterr().out.splitlines()[2:7]] == [
        "+  max(CASE WHEN category = 'topping' THEN 1 ELSE 0 END) = 1 AS",
        "        has_a_topping_or_more",
        "+" + "x" * 72 + "…",
        "        y",
        "-  short",
    ]


@given(
    words=st.lists(st.text("abc(),=", min_size=1, max_size=20), min_size=1, max_size=30),
    indent=st.integers(0, 8),
    width=st.integers(34, 114),
)
def test_a_folded_line_keeps_every_word(words: list[str], indent: int, width: int) -> None:
    line = "+" + " " * indent + " ".join(words)
    parts = _folded(line, width)
    assert [word for part in parts for word in part.split()] == line.split()
    assert max(map(len, parts)) <= width
    assert parts[0].startswith("+")


def test_many_diffs_are_cut_unless_verbose(out: Output, capsys: pytest.CaptureFixture[str]) -> None:
    diff = "\n".join(f"+line {i}" for i in range(15))
    plan = Plan("dev", tuple(node(f"m{i}", "query_changed", diff=diff) for i in range(8)), ())
    show_plan(plan, out, 0.1)
    text = capsys.readouterr().out
    assert text.count("+line") == 45
    assert "  … 5 more diffs, -v shows all" in text
    out.verbose = True
    show_plan(plan, out, 0.1)
    assert capsys.readouterr().out.count("+line") == 120


def test_a_moved_relation_is_told_as_moved(out: Output, capsys: pytest.CaptureFixture[str]) -> None:
    moved = node("orders", "relation_missing", detail={"kind": "moved", "name": "dev.orders"})
    plan = Plan("dev", (moved, node("lost", "relation_missing")), ())
    show_plan(plan, out, 0.1)
    assert capsys.readouterr().out.splitlines()[:5] == [
        "Moved, the relation at the old place stays until you drop it (1)",
        "  orders  table  was dev.orders",
        "",
        "Relation missing, built before, but gone from the lake (1)",
        "  lost    table",
    ]
    assert why(moved) == ("it runs: it moved here from dev.orders, which stays until you drop it")
    validate(plan_document(plan), "plan")


@pytest.mark.parametrize("term", ["xterm-256color", "xterm", "dumb"])
def test_colours_can_be_read_on_dark_and_on_light(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], term: str
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_plan(PLAN, Output(environ={"TERM": term}), 0.1)
    codes = set(re.findall(r"\x1b\[([\d;]*)m", capsys.readouterr().out))
    allowed = {"0", "1", "31", "32", "35", "36"}
    allowed |= {"38;5;244"} if "256" in term else set()
    assert codes <= (set() if term == "dumb" else allowed)


def crowd_of(number: int) -> tuple[Plan, list[NodeResult]]:
    plan = Plan("dev", tuple(node(f"m{i:03}", "first_run") for i in range(number)), ())
    results = [
        NodeResult(item.name, "success", "first_run", float(i)) for i, item in enumerate(plan.nodes)
    ]
    return plan, results


def test_a_large_build_does_not_scroll_a_terminal_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = Output(environ={"TERM": "xterm", "NO_COLOR": "1"})
    plan, results = crowd_of(200)
    progress = Progress(out, lambda: None)
    progress.plan(plan)
    results[7] = NodeResult("m007", "failed", "first_run", 7.0, error=dict(ERROR, file=None))
    for result in results:
        progress.hear(Event("node_finished", result.name, result))
    progress.close()
    show_end(BuildResult("R", plan, tuple(results), 9.0), out, seconds=9.0, root=tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 12
    assert lines[0].split()[:4] == ["8/200", "table", "m007", "failed"]
    assert lines[1] == "slowest: m199 3m 19s, m198 3m 18s, m197 3m 17s"
    assert lines[-1] == "failed: 199 built, 1 failed in 9.00s"


def test_a_large_build_tells_every_node_to_a_pipe(
    out: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, results = crowd_of(200)
    progress = Progress(out, lambda: None)
    progress.plan(plan)
    for result in results:
        progress.hear(Event("node_finished", result.name, result))
    assert len(capsys.readouterr().out.splitlines()) == 200


def test_names_are_never_dropped_altogether() -> None:
    assert some(["abcdefghij", "b", "c"], 3) == "abcdefghij and 2 more"


def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_plan(PLAN, Output(environ={"TERM": "xterm"}), 0.1)
    coloured = capsys.readouterr().out
    assert click.unstyle(coloured) != coloured
    for settings in ({"environ": {"NO_COLOR": "1"}}, {"no_color": True, "environ": {}}):
        show_plan(PLAN, Output(**settings), 0.1)  # type: ignore[arg-type]
        plain = capsys.readouterr().out
        assert click.unstyle(plain) == plain


def test_plan_document_matches_its_schema() -> None:
    validate(plan_document(PLAN), "plan")


ERROR = {
    "code": "X001",
    "message": "`fct_orders`: no column `nope`",
    "file": "models/fct_orders.sql",
    "line": 2,
    "help": "did you mean one of [`id`]?",
}
RESULT = BuildResult(
    "20260131T060000-1a2b3c",
    PLAN,
    (
        NodeResult("countries", "success", "seed_changed", 0.9, Rows(1204, 0, 1204)),
        NodeResult("stg_orders", "success", "query_changed", 0.1),
        NodeResult("fct_orders", "failed", "upstream_changed", 1.25, error=dict(ERROR)),
        NodeResult("fct_raw", "unchanged", "source_changed", 12.34, Rows(0, 0, 7)),
        NodeResult("mart", "blocked", "upstream_changed", blocked_by=("fct_orders",)),
        NodeResult("resting", "current", "no_change"),
    ),
    14.2,
)


def test_build_lines_are_aligned_and_numbered(out: Output) -> None:
    lines = ResultLines(PLAN, out)
    texts = [lines.line(result) for result in RESULT.nodes[:5]]
    assert texts == [
        "  1/5  seed   countries   ok           1,204 rows   0.90s  seed changed",
        "  2/5  view   stg_orders  ok                        0.10s  query changed",
        "  3/5  table  fct_orders  failed                    1.25s  upstream changed",
        "  4/5  table  fct_raw     unchanged        7 rows   12.3s  source changed",
        "  5/5  table  mart        blocked",
    ]
    cut_off = NodeResult("mart", "current", "upstream_unchanged")
    assert ResultLines(PLAN, out).line(cut_off) == (
        "  1/5  table  mart        current (upstream unchanged)"
    )
    adopted = NodeResult("stg_orders", "current", "query_changed", 1.0, Rows(0, 0, 7))
    assert ResultLines(PLAN, out).line(adopted) == (
        "  1/5  view   stg_orders  current (another build made it)"
    )


def test_a_failed_build_ends_with_its_errors_and_counts(
    out: Output, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/fct_orders.sql").write_text("SELECT\n  nope\nFROM stg_orders\n")
    run = tmp_path / ".sqb/runs/20260131T060000-1a2b3c"
    run.mkdir(parents=True)
    (run / "spark.log").write_text("")
    show_end(RESULT, out, seconds=14.2, root=tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "error[X001]: `fct_orders`: no column `nope`",
        "  --> models/fct_orders.sql:2",
        "   |",
        " 2 |   nope",
        "   |",
        "help: did you mean one of [`id`]?",
        "",
        "blocked because they read what failed: mart",
        "Spark's own words: .sqb/runs/20260131T060000-1a2b3c/spark.log",
        "",
        "failed: 2 built, 1 unchanged, 1 current, 1 failed, 1 blocked in 14.2s",
    ]


def test_a_long_error_is_broken_at_blanks_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, out: Output
) -> None:
    long = {**ERROR, "message": "a word " * 20 + "last", "file": None, "line": None}
    assert len(error_text(long, out, None).splitlines()) == 2
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    told = error_text(long, Output(environ={"TERM": "xterm", "NO_COLOR": "1"}), None).splitlines()
    assert all(len(line) <= 80 for line in told)
    assert told[0].startswith("error[X001]: a word")
    assert told[1].startswith("  ")


def test_a_stopped_build_tells_no_errors(
    out: Output, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stopped = {**ERROR, "code": "X005", "file": None, "line": None}
    nodes = (
        NodeResult("countries", "success", "seed_changed", 1.0),
        NodeResult("stg_orders", "failed", "query_changed", 1.0, error=stopped),
        NodeResult("mart", "blocked", "upstream_changed", blocked_by=("fct_orders",)),
    )
    result = BuildResult("r", PLAN, nodes, 2.0, interrupted=True)
    show_end(result, out, seconds=2.0, root=tmp_path)
    text = capsys.readouterr().out.strip()
    assert "stopped" in ResultLines(PLAN, out).line(nodes[1])
    assert text == "interrupted: 1 built, 1 stopped, 1 not started in 2.00s"


def test_build_document_matches_its_schema_and_has_final_reasons() -> None:
    cut = (*RESULT.nodes[:4], NodeResult("mart", "current", "upstream_unchanged"), RESULT.nodes[5])
    for result in (
        RESULT,
        BuildResult.idle(Plan("dev", (node("a"),), ())),
        BuildResult("r", PLAN, cut, 1.0),
    ):
        validate(build_document(result, 1.5), "build")
    document = build_document(RESULT, 14.2)
    assert document["summary"]["succeeded"] == 3
    assert (document["summary"]["failed"], document["summary"]["blocked"]) == (1, 1)
    mart = build_document(BuildResult("r", PLAN, cut, 1.0), 1.0)["nodes"][4]
    assert (mart["action"], mart["reason"], mart["status"]) == (
        "skip",
        "upstream_unchanged",
        "current",
    )


def test_progress_off_a_terminal_is_a_line_per_event(
    out: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[bool] = []
    progress = Progress(out, lambda: begun.append(True))
    progress.plan(PLAN)
    for event in (
        Event("spark_starting"),
        Event("spark_started"),
        Event("node_started", "countries"),
        Event("node_finished", "countries", RESULT.nodes[0]),
        Event("note", message="a note"),
    ):
        progress.hear(event)
    progress.close()
    first, second, third, fourth = capsys.readouterr().out.splitlines()
    assert (first, fourth) == ("starting Spark…", "a note")
    assert second.startswith("Spark is up (")
    assert begun == [True]
    assert third.startswith("  1/5  seed   countries")


def test_progress_on_a_terminal_leaves_results_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = Output(environ={"TERM": "xterm", "NO_COLOR": "1"})
    progress = Progress(out, lambda: None)
    progress.plan(PLAN)
    # a session that runs already is not announced; the display comes with the first node
    progress.hear(Event("node_started", "countries"))
    region = progress._region().plain.splitlines()
    assert region[0].split() == [region[0].split()[0], "countries", "0s"]
    assert region[1].split()[1:] == ["0", "of", "5", "done", "0s"]
    progress.hear(Event("node_finished", "countries", RESULT.nodes[0]))
    progress.close()
    screen = Screen()
    screen.feed(capsys.readouterr().out)
    lines = [line.rstrip() for line in screen.lines if line.strip()]
    assert len(lines) == 1
    assert lines[0].startswith("  1/5  seed   countries   ok")


@pytest.mark.parametrize(
    ("planned", "text"),
    [
        (node("a"), "it is current: nothing that it is made of has changed"),
        (node("a", "query_changed"), "it runs: query changed"),
        (PLAN.nodes[2], "it runs: upstream changed: stg_orders (query changed)"),
        (PLAN.nodes[3], "it runs: source changed: raw.orders"),
    ],
)
def test_why_is_one_sentence(planned: PlannedNode, text: str) -> None:
    assert why(planned) == text


ROWS = (
    ["id", "price", "at", "note"],
    [
        [9007199254740993, -9223372036854775808],
        [Decimal("12345678901234567890.1234567890"), Decimal("0E-10")],
        [datetime(2026, 1, 31, 6, tzinfo=timezone.utc), None],
        [None, 'a "b",\nc'],
    ],
)


def test_json_rows_keep_every_digit() -> None:
    assert json.loads(as_json(*ROWS)) == [
        {
            "id": 9007199254740993,
            "price": "12345678901234567890.1234567890",
            "at": "2026-01-31T06:00:00Z",
            "note": None,
        },
        {
            "id": -9223372036854775808,
            "price": "0.0000000000",
            "at": None,
            "note": 'a "b",\nc',
        },
    ]
    assert json.loads(as_json(["x"], [[{"a": [Decimal("1.10")]}]])) == [{"x": {"a": ["1.10"]}}]
    assert as_json(["x"], [[]]) == "[]\n"


def test_numbers_that_json_lacks_are_told_from_null() -> None:
    odd = [float("nan"), float("inf"), float("-inf"), None, 1.5]
    told = ["NaN", "Infinity", "-Infinity", None, 1.5]
    assert [row["x"] for row in json.loads(as_json(["x"], [odd]))] == told
    assert json.loads(as_json(["x"], [[[odd[0]]]])) == [{"x": ["NaN"]}]
    assert as_csv(["x"], [odd]).split() == ["x", "NaN", "Infinity", "-Infinity", '""', "1.5"]


def test_wide_signs_take_two_columns_and_control_signs_none(out: Output) -> None:
    table = as_table(["商品", "n"], [["ワッフル", "a\x1b[31mb"], [1, 2]], out)
    assert list(table) == ["商品      n", "────────  ─", "ワッフル  1", "a�[31mb   2"]


def test_a_table_fits_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = Output(environ={"TERM": "xterm", "NO_COLOR": "1"})
    out.width = 60
    names = ["id", "first", "second"]
    cut = list(as_table(names, [[1], ["a" * 39], ["b" * 39]], out))
    assert {len(line) for line in cut} <= set(range(61))
    assert "…" in cut[2]
    assert cut[0].split() == ["id", "first", "second"]
    many = [f"column_{i}" for i in range(7)]
    assert next(iter(as_table(many, [[i] for i in range(7)], out))).split()[0] == "colum…"
    numbers = [[1234567890] for _ in many]
    assert list(as_table(many, numbers, out))[:2] == [
        "column_0  1234567890",
        "column_1  1234567890",
    ]


def test_csv_rows_are_quoted_and_null_is_empty() -> None:
    assert as_csv(["a", "b"], [[1, None], ['x,"y"', True]]) == 'a,b\n1,"x,""y"""\n,true\n'


def test_table_rows_are_aligned(out: Output) -> None:
    assert list(as_table(["n", "name"], [[1, 100], ["x", None]], out)) == [
        "  n  name",
        "───  ────",
        "  1  x",
        "100  NULL",
    ]
    assert list(as_table(["n"], [[]], out)) == ["n", "─"]


def test_a_crowd_of_nodes_is_cut_unless_verbose(
    out: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = Plan("dev", tuple(node(f"m{i:03}", "first_run", action="run") for i in range(100)), ())
    show_plan(crowd, out, 0.1)
    text = capsys.readouterr().out
    assert "m011" in text
    assert "m012" not in text
    assert "… and 88 more, -v shows all" in text
    out.verbose = True
    show_plan(crowd, out, 0.1)
    assert "m099" in capsys.readouterr().out
