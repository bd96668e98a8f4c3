"""A run's files hold no secret, wherever it came from."""

from __future__ import annotations

import json
from pathlib import Path

from sqb.execution.artifacts import Artifacts, mask_log
from sqb.execution.events import BuildResult, Event, NodeResult
from sqb.planning.plan import Plan, PlannedNode
from sqb.project.config import load_config
from sqb.project.secrets import masker

TOML = """
[catalog.properties]
token = "tok-123456"
[targets.dev.state]
connection = "postgresql://me:hunter22@db/x"
"""
ERROR: dict[str, object] = {
    "code": "X004",
    "message": "no route to postgresql://me:hunter22@db/x with tok-123456",
    "file": "models/a.sql",
    "line": 1,
    "help": None,
}


def test_no_secret_reaches_a_file(tmp_path: Path) -> None:
    (tmp_path / "sqlbuild_project.toml").write_text(TOML)
    mask = masker(load_config(tmp_path, target=None, cli_vars={}, environ={}), environ={})
    node = PlannedNode("a", "model", "table", "run", "query_changed", diff="+SELECT 'tok-123456'")
    plan = Plan("dev", (node,), ())
    heard: list[Event] = []
    artifacts = Artifacts(tmp_path / "run", plan, mask)
    result = NodeResult("a", "failed", "query_changed", error=ERROR)
    artifacts.listening(heard.append)(Event("node_finished", "a", result))
    artifacts.finish(BuildResult("r", plan, (result,), 1.0))
    log = tmp_path / "run/spark.log"
    log.write_bytes(b"\xff token tok-123456\nurl postgresql://me:hunter22@db/x\n")
    mask_log(log, mask)
    mask_log(tmp_path / "run/absent.log", mask)
    files = sorted((tmp_path / "run").iterdir())
    assert [file.name for file in files] == [
        "events.jsonl",
        "plan.json",
        "results.json",
        "spark.log",
        "sqb.log",
    ]
    for file in files:
        content = file.read_bytes()
        assert b"tok-123456" not in content, file.name
        assert b"hunter22" not in content, file.name
        assert b"***" in content, file.name
    assert log.read_bytes() == b"\xff token ***\nurl postgresql://***@db/x\n"
    told = json.loads((tmp_path / "run/results.json").read_text())["nodes"][0]["error"]
    assert told["message"] == "no route to postgresql://***@db/x with ***"
    assert heard[0].result == result
