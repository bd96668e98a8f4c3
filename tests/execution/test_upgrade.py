"""A new tokeniser gives other texts for the same SQL: nothing becomes stale, edits do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from sqb.sql import tokens, version

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.execution.events import Event
    from sqb.sql.tokens import Tokens


@pytest.fixture
def built(shop: Workbench) -> Workbench:
    """A built shop in which ``totals`` was amended: its newest text is in a state row only."""
    shop.told()
    shop.model(
        "totals",
        "SELECT s.customer, n.name, 0 + sum(s.amount) AS total\n"
        "FROM stg AS s JOIN names AS n ON n.customer = s.customer\n"
        "GROUP BY s.customer, n.name",
    )
    assert shop.told()["totals"] == ("unchanged", "query_changed")
    return shop


def upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    before = tokens.canonical_of

    def canonical_of(parsed: Tokens) -> str:
        return "|".join(before(parsed).split(" "))

    monkeypatch.setattr(tokens, "canonical_of", canonical_of)
    monkeypatch.setattr(version, "RULES", version.RULES + 1)


def untouchable(*_: object, **__: object) -> NoReturn:
    raise AssertionError("the tokeniser was asked")


def test_an_upgrade_makes_nothing_stale_and_is_recorded_once(
    built: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = {name: record.query for name, record in built.project().observe().rows.items()}
    upgrade(monkeypatch)
    plan = built.plan()
    assert [node.name for node in plan.work] == []
    events: list[Event] = []
    heads = built.project().catalog.heads([built.schema])
    result = built.build(listener=events.append)
    assert {(n.status, n.reason) for n in result.nodes} == {("current", "no_change")}
    assert events == []
    # only the state table moved
    after = built.project().catalog.heads([built.schema])
    moved = {name for (_, name), head in after.items() if heads.get((built.schema, name)) != head}
    assert moved == {"_sqlbuild_fingerprints"}
    rows = built.project().observe().rows
    models = {name for name, record in rows.items() if record.type == "model"}
    assert {rows[name].scheme for name in models} == {version.scheme()}
    assert all(rows[name].query != hashes[name] for name in models)
    # from now on the new text is the recorded one: nobody tokenises again
    for name in ("canonical", "canonical_of", "split", "tokenize"):
        monkeypatch.setattr(tokens, name, untouchable)
    assert [node.name for node in built.plan().work] == []
    assert built.build().run_id is None


def test_after_an_upgrade_new_rows_and_views_work_as_before(
    built: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no build came between: readers of views must not see them as moved."""
    upgrade(monkeypatch)
    built.sql("INSERT INTO lake.{raw}.events VALUES (8)")
    assert built.told() == {"counted": ("success", "source_changed")}
    assert built.told() == {}
    built.sql("INSERT INTO lake.{raw}.orders VALUES (4, 'b', 1)")
    assert built.told() == {
        "totals": ("success", "upstream_changed"),
        "top": ("success", "upstream_changed"),
    }
    assert built.told() == {}


def test_a_real_edit_made_together_with_the_upgrade_is_seen(
    built: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(monkeypatch)
    built.model("top", "SELECT name, total FROM totals WHERE total > 15")
    assert {n.name: n.reason for n in built.plan().work} == {"top": "query_changed"}
    assert built.told() == {"top": ("success", "query_changed")}
    assert built.rows("top") == [("Bert", 20)]
    assert built.told() == {}


def test_an_edit_of_a_view_together_with_the_upgrade_reaches_its_readers(
    built: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(monkeypatch)
    built.model(
        "stg",
        "MODEL (materialized view);\nSELECT id, customer, amount + 1 AS amount FROM {raw}.orders",
    )
    assert built.told() == {
        "stg": ("success", "query_changed"),
        "totals": ("success", "upstream_changed"),
        "top": ("success", "upstream_changed"),
    }
    assert built.rows("top") == [("Anna", 17), ("Bert", 21)]
    assert built.told() == {}


def test_an_upgrade_taken_back_makes_nothing_stale(
    built: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(monkeypatch)
    built.build()
    monkeypatch.undo()
    assert [node.name for node in built.plan().work] == []
    built.build()
    assert built.build().run_id is None
