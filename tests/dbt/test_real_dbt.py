"""What sqb says to dbt, said to a real one; nothing here is built."""

from __future__ import annotations

import io
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from dbt_shop import Shop, thrift_target

from sqb.dbt.drive import Ended, ask_dbt, folders_in, make_ready, newer_parse, run_dbt
from sqb.dbt.manifest import read_manifest
from sqb.dbt.outcome import Outcome, read_outcome
from sqb.dbt.request import Request
from sqb.dbt.selection import chosen, list_arguments, parse_arguments, read_list, run_arguments
from sqb.errors import SqbError
from sqb.project.layout import work_folder

#: One of each kind, and a model whose children and tests must not come along.
PICKED = frozenset(
    {
        "seed.shop.raw_orders",
        "model.shop.stg_orders",
        "model.money.currencies",
        "snapshot.shop.customers_history",
        "test.shop.orders_have_customers",
        "unit_test.shop.stg_payments.cents_become_units",
    }
)


def ask(dbt: Path, shop: Shop, **given: Any) -> tuple[str, ...]:
    folders = folders_in(work_folder(shop.root) / "dbt")
    make_ready(folders, shop.root / "target")
    words = list_arguments(Request(**given), target=folders.target, logs=folders.logs)
    return read_list(ask_dbt(dbt, words, root=shop.root, environ=shop.environ))


def build(dbt: Path, shop: Shop, ids: frozenset[str], **given: Any) -> tuple[Ended, Outcome, str]:
    folders, out = folders_in(work_folder(shop.root) / "dbt"), io.StringIO()
    with chosen(folders.states, ids) as state:
        parsed = newer_parse(folders, shop.root / "target")
        words = run_arguments(Request(**given), state, parsed=parsed)
        ended = run_dbt(dbt, words, root=shop.root, environ=shop.environ, output=out)
        outcome = read_outcome(shop.root / "target" / "run_results.json", state, ids)
    return ended, outcome, out.getvalue()


@pytest.mark.dbt
def test_exactly_the_chosen_nodes_and_no_file_is_touched(dbt: Path, shop: Shop) -> None:
    with chosen(folders_in(work_folder(shop.root) / "dbt").states, PICKED) as state:
        empty = ("--indirect-selection", "empty")
        found = ask(dbt, shop, select=("result:error",), state=str(state), rest=empty)
    assert frozenset(found) == PICKED
    assert shop.changed() == []
    assert not (shop.root / "target").exists()
    assert not (shop.root / "logs").exists()
    manifest = read_manifest(shop.root / ".sqb" / "dbt" / "target" / "manifest.json")
    assert manifest.nodes.keys() >= PICKED - {"unit_test.shop.stg_payments.cents_become_units"}
    assert manifest.sources["source.shop.app.visits"].loaded_at_field == "loaded_at"


@pytest.mark.dbt
def test_what_dbt_cannot_read_is_told(dbt: Path, shop: Shop) -> None:
    shop.write("models/staging/stg_orders.sql", "select * from {{ ref('nowhere') }}\n")
    folders = folders_in(work_folder(shop.root) / "dbt")
    words = parse_arguments(Request(), target=folders.target, logs=folders.logs)
    with pytest.raises(SqbError) as caught:
        ask_dbt(dbt, words, root=shop.root, environ=shop.environ)
    assert (caught.value.code, caught.value.file) == ("B010", "models/staging/stg_orders.sql")
    assert "depends on a node named 'nowhere' which was not found" in caught.value.message


@pytest.mark.dbt_long
def test_a_selection_is_dbts_own(dbt: Path, shop: Shop) -> None:
    shop.environ |= {"DBT_LOG_FORMAT": "json", "DBT_LOG_LEVEL": "debug", "DBT_WRITE_JSON": "0"}
    found = ask(dbt, shop, select=("fct_orders", "stg_visits+"), exclude=("test_type:generic",))
    assert set(found) == {
        *("model.shop.fct_orders", "model.shop.stg_visits", "model.shop.fct_visits"),
        *("model.shop.visits_by_customer", "test.shop.no_negative_amounts"),
        "test.shop.orders_have_customers",
    }
    shop.environ |= {"DBT_RESOURCE_TYPES": "seed"}
    assert all(name.startswith("seed.") for name in ask(dbt, shop))
    del shop.environ["DBT_RESOURCE_TYPES"]
    assert ask(dbt, shop, command="run", select=("fct_orders",)) == ("model.shop.fct_orders",)
    assert ask(dbt, shop, select=("nothing_of_that_name",)) == ()
    with pytest.raises(SqbError) as caught:
        ask(dbt, shop, selector="unheard_of")
    assert "unheard_of" in caught.value.message


@pytest.mark.dbt_long
def test_results_count_only_if_they_are_of_this_run(dbt: Path, shop: Shop) -> None:
    gone = frozenset({"model.shop.gone"})
    assert ask(dbt, shop, select=("stg_orders",), rest=("--indirect-selection", "empty"))
    ended, outcome, said = build(dbt, shop, gone, rest=("--no-write-json",))
    assert (ended, outcome.known) == (Ended(0), True)
    # it began from what the question left
    assert "Unable to do partial parsing" not in said
    assert outcome.that("left") == ("model.shop.gone",)
    # dbt can't connect, and leaves the file of the run before
    ended, outcome, said = build(dbt, shop, PICKED, command="build", threads=1)
    assert (ended, outcome.known) == (Ended(2), False)
    assert set(outcome.that("left")) == PICKED
    assert "Could not connect" in said
    ended, outcome, _ = build(dbt, shop, gone, command="run", rest=("--of-a-later-dbt",))
    assert (ended, outcome.known) == (Ended(2), False)
    assert shop.changed() == []


@pytest.mark.dbt_long
@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_ends_dbt(dbt: Path, tmp_path: Path, times: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        shop = Shop(tmp_path, {"slow": thrift_target(server.getsockname()[1])})

        def stop() -> None:
            # dbt waits for an answer that does not come, and after the first Ctrl-C still does
            connection, _ = server.accept()
            with connection:
                for _ in range(times):
                    os.kill(os.getpid(), signal.SIGINT)
                    # less than dbt takes to end by itself
                    time.sleep(0.1)
                time.sleep(0.5)

        thread = threading.Thread(target=stop)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread.start()
        try:
            ended, outcome, said = build(dbt, shop, PICKED)
        finally:
            signal.signal(signal.SIGINT, before)
            thread.join()
    assert ended.interrupted
    assert (ended.code == 137) is (times == 3)
    assert "KeyboardInterrupt" in said
    assert (outcome.known, set(outcome.that("left"))) == (False, PICKED)
