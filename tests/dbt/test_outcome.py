"""What a run did, from the file that dbt leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqb.dbt.outcome import outcome_of, read_outcome

STATE = "/p/.sqb/dbt/states/chosen-1"


def results(*pairs: tuple[str, str], state: str | None = STATE) -> bytes:
    """A file as dbt writes it, with the fields that it has."""
    document: dict[str, Any] = {
        "metadata": {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v6.json",
            "dbt_version": "1.11.16",
            "generated_at": "2026-11-16T08:52:56.200570Z",
            "invocation_id": "6f070cdb",
            "env": {},
        },
        "results": [
            {
                "status": status,
                "timing": [{"name": "compile", "started_at": None, "completed_at": None}],
                "thread_id": "Thread-1 (worker)",
                "execution_time": 1.5,
                "adapter_response": {"_message": "OK", "rows_affected": float("nan")},
                "message": "OK",
                "failures": 2 if status == "fail" else None,
                "unique_id": name,
                "compiled": True,
                "compiled_code": "select 1",
                "relation_name": "shop.a",
                "batch_results": None,
            }
            for name, status in pairs
        ],
        "elapsed_time": 3.25,
        "args": {"state": state, "which": "build", "select": ["result:error"], "vars": {}},
    }
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("status", "did"),
    [
        ("success", "ok"),
        ("pass", "ok"),
        ("warn", "ok"),
        ("no-op", "ok"),
        ("error", "failed"),
        ("fail", "failed"),
        ("runtime error", "failed"),
        ("partial success", "failed"),
        ("skipped", "left"),
        ("a word of a later dbt", "failed"),
    ],
)
def test_what_a_status_means(status: str, did: str) -> None:
    found = outcome_of(results(("model.shop.a", status)), STATE, ["model.shop.a"])
    assert found.known
    node = found.nodes["model.shop.a"]
    assert (node.did, node.status, node.seconds) == (did, status, 1.5)


def test_nodes_that_dbt_did_not_come_to_are_left() -> None:
    content = results(("model.shop.b", "success"), ("test.shop.t", "fail"))
    found = outcome_of(content, STATE, {"model.shop.c", "model.shop.b", "test.shop.t"})
    assert found.that("ok") == ("model.shop.b",)
    assert found.that("failed") == ("test.shop.t",)
    assert found.that("left") == ("model.shop.c",)
    assert found.nodes["test.shop.t"].failures == 2
    assert (found.invocation, found.dbt_version) == ("6f070cdb", "1.11.16")


def test_nodes_that_were_not_handed_over_do_not_count() -> None:
    content = results(("model.shop.b", "success"), ("operation.shop.hook", "success"))
    assert list(outcome_of(content, STATE, ["model.shop.b"]).nodes) == ["model.shop.b"]


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{",
        b'{"metadata": {}, "results": 3}',
        b"\xff\xfe",
        results(("model.shop.b", "success"), state=None),
        results(("model.shop.b", "success"), state="/p/.sqb/dbt/states/chosen-0"),
    ],
    ids=["none", "empty", "cut", "other form", "no text", "of no state", "of another run"],
)
def test_a_file_of_another_run_says_nothing(content: bytes | None) -> None:
    found = outcome_of(content, STATE, ["model.shop.b"])
    assert (found.known, found.that("left")) == (False, ("model.shop.b",))


def test_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run_results.json"
    assert not read_outcome(path, Path(STATE), ["model.shop.b"]).known
    path.write_bytes(results(("model.shop.b", "success")))
    assert read_outcome(path, Path(STATE), ["model.shop.b"]).that("ok") == ("model.shop.b",)
