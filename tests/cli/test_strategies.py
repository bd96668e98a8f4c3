"""Strategies on the screen and in JSON: beside a result, in an explanation, in documents."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from sqb.cli.commands.history import strategies_document
from sqb.cli.commands.verify import document as verify_document
from sqb.cli.render.documents import build_document, plan_document
from sqb.cli.render.strategy_text import lines, outcome
from sqb.execution.events import BuildResult, NodeResult, Rows
from sqb.execution.foreseeing import Moved
from sqb.planning.plan import Numbers, Plan, PlannedNode, Strategy
from sqb.refresh.changes import TableChange
from sqb.state.experience import experience
from sqb.state.record import Spent
from sqb.upkeep.verify import Verified

SCHEMAS = Path(__file__).parents[2] / "docs" / "json"
AFFECTED = Strategy(
    "affected_key",
    "the rows of the keys that changed are computed again",
    ("customer",),
    ({"name": "append", "code": "HAS_DELETES", "why": "rows of raw.orders went"},),
    None,
    Numbers(9.1, 240.0, 3, 5, 1241, 1180),
    ("add COUNT(*) to the SELECT list",),
)
CHEAPER = Strategy(
    "full",
    "a rebuild takes about 1.2s",
    rejected=(
        {"name": "append", "code": "HAS_DELETES", "why": "rows of raw.orders went"},
        {
            "name": "affected_key",
            "code": "CHEAPER_TO_REBUILD",
            "why": "a rebuild takes about 1.2s",
        },
    ),
    code="CHEAPER_TO_REBUILD",
    estimate=Numbers(None, 1.2, 0, 2, 1),
)
NODE = PlannedNode("m", "model", "table", "run", "source_changed", strategy=AFFECTED)
PLAN = Plan("dev", (NODE,), ())


def validate(document: object, schema: str) -> None:
    rules = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())
    jsonschema.Draft202012Validator(rules).validate(json.loads(json.dumps(document)))


def test_documents_follow_their_schemas() -> None:
    validate(plan_document(PLAN), "plan")
    ended = NodeResult("m", "success", "source_changed", 1.0, Rows(1, 0, 5), strategy=CHEAPER)
    document = build_document(BuildResult("r", PLAN, (ended,), 1.0), 1.0)
    validate(document, "build")
    assert document["nodes"][0]["strategy"]["code"] == "CHEAPER_TO_REBUILD"
    runs = [Spent("r1", "full", 60.0, bytes=9), Spent("r2", "append", 5.0, 1.0, 4.0, 50.0, 9)]
    validate(strategies_document([experience("m", runs)]), "history")
    validate(
        verify_document([Verified("m", equal=True), Verified("n", equal=None, note="x")]), "verify"
    )


@pytest.mark.parametrize(
    ("strategy", "rows", "expected"),
    [
        (AFFECTED, Rows(12, 3, 40_000), "rows +12 -3"),
        (AFFECTED, Rows(1200, 0, 40_000), "rows +1,200"),
        (AFFECTED, Rows(0, 0, 40_000), "rows"),
        (CHEAPER, Rows(9, 9, 9), "full: CHEAPER_TO_REBUILD"),
        # the reason says it
        (Strategy("full", "x", code="FIRST_BUILD"), Rows(9, 0, 9), ""),
        (None, None, ""),
    ],
)
def test_a_result_says_how_in_a_word_or_two(
    strategy: Strategy | None, rows: Rows | None, expected: str
) -> None:
    result = NodeResult("m", "success", "source_changed", 1.0, rows, strategy=strategy)
    assert outcome(result)[0] == expected
    assert outcome(msgspec.structs.replace(result, status="failed"))[0] == ""


def test_a_strategy_in_full() -> None:
    moved = (
        Moved("raw.orders", TableChange("changelog", 1, 2, "", 1204, 37, 9)),
        Moved("raw.customers", TableChange("none", 1, 1)),
    )
    assert lines(AFFECTED, moved) == [
        ("strategy", "affected_key on (customer)"),
        ("changed", "raw.orders  +1,204 -37 rows in rewritten files"),
        ("unchanged", "raw.customers"),
        ("because", "the rows of the keys that changed are computed again"),
        ("not chosen", "append: rows of raw.orders went (HAS_DELETES)"),
        (
            "estimate",
            (
                "1,241 changed rows, 1,180 keys, about 9.10s (from 3 runs), "
                "a rebuild about 4m 00s (from 5 runs)"
            ),
        ),
        ("advice", "add COUNT(*) to the SELECT list"),
    ]


def test_a_rebuild_that_is_cheaper_names_what_would_be_right_too() -> None:
    told = dict(lines(CHEAPER, ()))
    assert told["strategy"] == "full: CHEAPER_TO_REBUILD"
    assert told["by rows"].startswith("affected_key would give the same rows")
    assert told["not chosen"] == "append: rows of raw.orders went (HAS_DELETES)"
