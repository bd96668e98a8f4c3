"""The warm Spark: who uses it, what a command keeps of its caller, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sqb.cli.warm import client, control, place
from sqb.errors import SqbError

SOURCE = Path(__file__).parents[2] / "src"
SCHEMA = SOURCE.parent / "docs" / "json" / "spark.schema.json"
SLOW = (
    "SELECT sum(a.id * b.id % 7) AS s\n"
    "FROM range(0, 40000000, 1, 1) AS a(id) CROSS JOIN range(0, 40000000, 1, 1) AS b(id)"
)


def environ(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("SQB_NO_WARM", "SQB_TARGET")}
    return {**kept, "PYTHONPATH": str(SOURCE), **more}


def sqb(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sqb", *arguments],
        cwd=folder,
        env=environ(**more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


class Warm:
    """A project with a warm Spark."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def status(self, *more: str) -> dict[str, Any]:
        done = sqb(self.root, "spark", "status", "--json", *more)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(found)
        return found

    def served(self, *arguments: str, **more: str) -> tuple[subprocess.CompletedProcess[str], bool]:
        """Run a command; and was it served by the warm Spark?"""
        before = self.status()["served"]
        done = sqb(self.root, *arguments, **more)
        return done, self.status()["served"] > before


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory, jars: list[Path]) -> Iterator[Warm]:
    # so deep that a socket's path would be too long for the system
    root = tmp_path_factory.mktemp("warm") / ("deep" * 12) / ("deeper" * 8)
    (root / "models").mkdir(parents=True)
    listed = json.dumps([str(jar) for jar in jars])
    (root / "sqlbuild_project.toml").write_text(
        f'[defaults]\nmaterialized = "table"\n[spark]\nmaster = "local[2]"\njars = {listed}\n'
        '[targets.dev]\n[targets.other.spark.conf]\n"spark.sql.shuffle.partitions" = "3"\n'
    )
    (root / "models" / "a.sql").write_text("SELECT 1 AS a\n")
    done = sqb(root, "spark", "start")
    assert done.returncode == 0, done.stderr
    yield Warm(root)
    sqb(root, "spark", "stop")


def test_a_build_runs_in_the_warm_spark_with_its_callers_streams(warm: Warm) -> None:
    done, served = warm.served("build")
    assert (done.returncode, served) == (0, True), done.stderr
    assert "1 built" in done.stdout
    done, served = warm.served("query", "SELECT a + 1 AS b FROM a", "--json")
    assert (json.loads(done.stdout), done.stderr, served) == ([{"b": 2}], "", True)
    run = next((warm.root / ".sqb" / "runs").iterdir())
    assert not (run / "spark.log").exists(), "a JVM of its own was started"


def test_folder_and_environment_are_the_callers(warm: Warm) -> None:
    done = sqb(warm.root / "models", "ls", "--project-dir", "..", SQB_JSON="1")
    assert [node["name"] for node in json.loads(done.stdout)["nodes"]] == ["a"]
    (warm.root / "models" / "env.sql").write_text("SELECT '@@ENV:SHADE' AS x\n")
    done = sqb(warm.root, "compile", SHADE="blue")
    (warm.root / "models" / "env.sql").unlink()
    assert done.returncode == 0, done.stderr


def test_a_failing_query_is_told_as_ever(warm: Warm) -> None:
    bad = warm.root / "models" / "bad.sql"
    bad.write_text("SELECT 1 AS one,\n  nothing\nFROM a\n")
    done, served = warm.served("build", "--select", "bad")
    bad.unlink()
    assert (done.returncode, served) == (1, True), done.stderr
    assert "models/bad.sql:2" in done.stdout + done.stderr
    assert "`nothing`" in done.stdout + done.stderr
    assert "JVM stacktrace" not in done.stdout + done.stderr
    assert sqb(warm.root, "build", "--select", "zzz").returncode == 2


@pytest.mark.parametrize("seconds", [0.05, 1.0])
def test_ctrl_c_at_the_caller_cancels_the_build(warm: Warm, seconds: float) -> None:
    slow = warm.root / "models" / "slow.sql"
    slow.write_text(SLOW)
    caller = subprocess.Popen(
        [sys.executable, "-m", "sqb", "build", "--select", "slow"],
        cwd=warm.root,
        env=environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # a suite that runs in the background may have been told to ignore it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert caller.stdout is not None
    until(lambda: bool(warm.status()["running"]), "the build")
    for line in caller.stdout:
        if "Spark is up" in line:
            break
    time.sleep(seconds)
    caller.send_signal(signal.SIGINT)
    text, _ = caller.communicate(timeout=180)
    slow.unlink()
    assert caller.returncode == 130, text
    until(lambda: not warm.status()["running"], "its end")


def test_a_command_that_is_killed_is_seen_to_be_by_its_caller(warm: Warm) -> None:
    model = warm.root / "models" / "late.sql"
    model.write_text("SELECT 2 AS late\n")
    done, served = warm.served("build", "--select", "late", SQB_FAILPOINT="publish:4")
    assert (done.returncode, served) == (-signal.SIGKILL, True), done.stderr
    assert "Traceback" not in done.stderr
    done, served = warm.served("build", "--select", "late")
    model.unlink()
    assert (done.returncode, served) == (0, True), done.stderr


def test_a_caller_that_is_killed_takes_its_command_along(warm: Warm) -> None:
    slow = warm.root / "models" / "slow.sql"
    slow.write_text(SLOW)
    caller = subprocess.Popen(
        [sys.executable, "-m", "sqb", "build", "--select", "slow"],
        cwd=warm.root,
        env=environ(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: bool(warm.status()["running"]), "the build")
    caller.kill()
    caller.wait()
    until(lambda: not warm.status()["running"], "its end")
    slow.unlink()


def test_a_command_that_was_not_taken_in_time_runs_once(warm: Warm) -> None:
    status = warm.status()
    os.kill(status["pid"], signal.SIGSTOP)
    out = warm.root / "out"
    try:
        # not a pipe: the one who sleeps holds on to what it was sent
        with out.open("w") as file:
            command = [sys.executable, "-m", "sqb", "ls", "--json"]
            done = subprocess.run(
                command, cwd=warm.root, env=environ(), stdout=file, timeout=90, check=False
            )
    finally:
        os.kill(status["pid"], signal.SIGCONT)
    assert done.returncode == 0
    until(lambda: warm.status().get("running") == 0, "the end of what was not taken")
    assert json.loads(out.read_text())["nodes"], "printed once"
    after = warm.status()
    assert (after["state"], after["pid"], after["running"]) == ("running", status["pid"], 0)
    assert warm.served("ls")[1]


def test_a_request_that_is_none_ends_nothing(warm: Warm) -> None:
    state = place.read_state(str(warm.root.resolve()))
    assert state is not None
    with place.call(state, 1.0) or pytest.fail("nobody listens") as connection:
        connection.sendall((2).to_bytes(4, "big") + b"[]")
        connection.recv(1)
    assert warm.status()["state"] == "running"


def test_a_second_start_finds_the_first(warm: Warm) -> None:
    pid = warm.status()["pid"]
    done = sqb(warm.root, "spark", "start")
    assert (done.returncode, "already" in done.stdout) == (0, True)
    assert warm.status()["pid"] == pid


def test_it_is_left_alone_where_it_is_not_wanted_or_does_not_fit(warm: Warm) -> None:
    for options, more in ((["--no-warm"], {}), ([], {"SQB_NO_WARM": "1"})):
        done, served = warm.served("plan", *options, **more)
        assert (done.returncode, served) == (0, False)
    told = warm.status("--target", "other")
    assert (told["state"], told["usable"]) == ("running", False)
    assert "target other" in told["why"]
    path = Path(place.inside(str(warm.root), place.STATE))
    good = path.read_text()
    path.write_text(json.dumps({**json.loads(good), "package": "another"}))
    done, served = warm.served("plan")
    why = warm.status()["why"]
    path.write_text(good)
    assert (done.returncode, served) == (0, False)
    assert "changed since" in why


def test_no_secret_and_no_socket_is_open_to_others(warm: Warm) -> None:
    state = json.loads(Path(place.inside(str(warm.root), place.STATE)).read_text())
    assert Path(state["socket"]).stat().st_mode & 0o077 == 0
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(b"token=" in line for line in lines)
    assert "token=" not in json.dumps(state)


def test_when_the_server_dies_it_ends_and_commands_run_as_ever(warm: Warm) -> None:
    pid = warm.status()["pid"]
    (server,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (jvm,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    os.kill(int(jvm), signal.SIGKILL)
    until(lambda: place.read_state(str(warm.root)) is None, "the end of the warm Spark")
    assert warm.status()["state"] == "stopped"
    assert sqb(warm.root, "plan").returncode == 0
    until(lambda: not Path(f"/proc/{pid}").exists(), "the end of its process")


@pytest.mark.parametrize(
    ("arguments", "opted_out", "expected"),
    [
        (["build"], "", True),
        (["plan", "-s", "a"], "0", True),
        (["build", "--no-warm"], "", False),
        (["build"], "1", False),
        (["build", "--help"], "", False),
        (["spark", "stop"], "", False),
        (["--version"], "", False),
        ([], "", False),
    ],
)
def test_which_commands_look_for_a_warm_spark(
    arguments: list[str], opted_out: str, expected: bool
) -> None:
    assert client.wanted(arguments, opted_out) is expected


def test_another_python_path_needs_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Macros may import from there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    state = place.identity()
    monkeypatch.setenv("PYTHONPATH", "lib")
    assert place.misfit(state) is None
    monkeypatch.setenv("PYTHONPATH", "other")
    assert place.misfit(state) == "it was started with another PYTHONPATH"


def test_a_socket_that_nobody_serves_delays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead sockets, and one whose owner hangs up: the command is run by the caller."""
    (tmp_path / "sqlbuild_project.toml").touch()
    folder = Path(place.inside(str(tmp_path)))
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SQB_NO_WARM", raising=False)
    address = tmp_path / "s"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    state = {**place.identity(), "pid": 1, "socket": str(address)}
    (folder / place.STATE).write_text(json.dumps(state))
    assert client.hand_over(["plan"]) is None
    listener.listen(1)

    def hang_up() -> None:
        listener.accept()[0].close()

    thread = threading.Thread(target=hang_up)
    with Path(os.devnull).open() as nothing, Path(os.devnull).open("w") as nowhere:
        monkeypatch.setattr(sys, "stdin", nothing)
        monkeypatch.setattr(sys, "stdout", nowhere)
        thread.start()
        assert client.hand_over(["plan"]) is None
        monkeypatch.undo()
    thread.join()
    listener.close()


@pytest.mark.parametrize("text", ["", "-1", "what"])
def test_stopping_ends_nothing_but_the_holder_of_the_lock(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Path(place.inside(str(tmp_path), place.LOCK))
    lock.parent.mkdir(parents=True)
    lock.write_text(text)
    ended: list[int] = []
    monkeypatch.setattr(control.os, "kill", lambda pid, _: ended.append(pid))
    monkeypatch.setattr(control, "_STOP_SECONDS", 0.1)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(SqbError, match="does not end") as caught:
            control.stop(str(tmp_path))
    assert ended == []
    assert "kill -1" not in (caught.value.help or "")


def test_two_that_only_look_at_the_lock_are_no_holders(tmp_path: Path) -> None:
    lock = Path(place.inside(str(tmp_path), place.LOCK))
    lock.parent.mkdir(parents=True)
    lock.write_text(str(os.getpid()))
    with lock.open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert control.status(str(tmp_path)) == {"state": "stopped"}
        assert not control.stop(str(tmp_path))
