"""dbt as a process: what it says, how it ends, how it is stopped."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sqb.dbt.drive import (
    ask_dbt,
    complaint,
    folders_in,
    make_ready,
    newer_parse,
    run_dbt,
    with_java,
)
from sqb.errors import SqbError
from sqb.spark.java import find_java

SOURCE = Path(__file__).parents[2] / "src"


def script(path: Path, text: str) -> Path:
    """A program in the place of dbt."""
    path.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n{text}")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("code", "told"), [("sys.exit(0)", 0), ("sys.exit(1)", 1), ("os.kill(os.getpid(), 9)", 137)]
)
def test_the_exit_code_is_kept(tmp_path: Path, code: str, told: int) -> None:
    dbt = script(tmp_path / "dbt", code)
    out = io.StringIO()
    ended = run_dbt(dbt, ["build"], root=tmp_path, environ=os.environ, output=out)
    assert (ended.code, ended.interrupted) == (told, False)


def test_output_is_passed_on_line_by_line(tmp_path: Path) -> None:
    go = tmp_path / "go"
    dbt = script(
        tmp_path / "dbt",
        f"print('one', os.getcwd(), os.environ['A'], *sys.argv[1:], flush=True)\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "print('two', file=sys.stderr)",
    )

    class Watched(io.StringIO):
        def write(self, text: str) -> int:
            # the second line comes only after the first was seen
            go.touch()
            return super().write(text)

    out = Watched()
    ended = run_dbt(dbt, ["build", "-x"], root=tmp_path, environ={"A": "b"}, output=out)
    assert ended.code == 0
    assert out.getvalue() == f"one {tmp_path} b build -x\ntwo\n"


def test_output_goes_to_a_file_directly(tmp_path: Path) -> None:
    dbt = script(tmp_path / "dbt", "print(sys.stdout.isatty(), 'dbt')")
    with (tmp_path / "out").open("w+") as out:
        out.write("before\n")
        run_dbt(dbt, ["build"], root=tmp_path, environ=os.environ, output=out)
        out.seek(0)
        assert out.read() == "before\nFalse dbt\n"


def test_a_thread_may_run_dbt(tmp_path: Path) -> None:
    dbt = script(tmp_path / "dbt", "print('hello')")
    out = io.StringIO()
    arguments = {"root": tmp_path, "environ": os.environ, "output": out}
    thread = threading.Thread(target=run_dbt, args=(dbt, ["build"]), kwargs=arguments)
    thread.start()
    thread.join()
    assert out.getvalue() == "hello\n"


def test_what_dbt_answers(tmp_path: Path) -> None:
    dbt = script(tmp_path / "dbt", "print('{}'); print('a warning', file=sys.stderr)")
    assert ask_dbt(dbt, ["ls"], root=tmp_path, environ=os.environ) == "{}\n"


@pytest.mark.parametrize(
    ("said", "file"),
    [
        ("Compilation Error in model a (models/x/a.sql)\n  unexpected '}'", "models/x/a.sql"),
        ("Runtime Error\n  no such option (of sorts)", None),
    ],
)
def test_an_error_is_told_in_dbts_words(tmp_path: Path, said: str, file: str | None) -> None:
    text = f"\x1b[0m09:00:01  Running with dbt=1.11.16\n09:00:02  Encountered an error:\n{said}\n"
    dbt = script(tmp_path / "dbt", f"print({text!r}); sys.exit(2)")
    with pytest.raises(SqbError) as caught:
        ask_dbt(dbt, ["parse", "--quiet"], root=tmp_path, environ=os.environ)
    error = caught.value
    assert (error.code, error.exit_code, error.file) == ("B010", 2, file)
    assert error.message == f"`dbt parse` ended with 2: {said}"


def test_what_is_no_dbt_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dbt").write_text("no program")
    for path in (tmp_path / "dbt", tmp_path / "nowhere"):
        with pytest.raises(SqbError) as caught:
            ask_dbt(path, ["ls"], root=tmp_path, environ=os.environ)
        assert caught.value.code == "B002"


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("", "it said nothing"),
        ("Usage: dbt ls\n\nError: No such option: --x\n", "Usage: dbt ls\n\nError: No such option"),
        ("a\n" * 50 + "b\n", "a\n" * 19 + "b"),
    ],
)
def test_a_complaint_without_a_heading(output: str, told: str) -> None:
    assert complaint(output).startswith(told)


# What sqb does with signals is seen from outside: a process that runs a long "dbt".
RUNNER = """
import os, signal, sys
from pathlib import Path
from sqb.dbt.drive import ask_dbt, run_dbt

if sys.argv[3] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
else:
    signal.signal(signal.SIGINT, signal.default_int_handler)
given = {"root": Path.cwd(), "environ": os.environ}
if sys.argv[2] == "ask":
    try:
        ask_dbt(Path(sys.argv[1]), ["ls"], **given)
    except KeyboardInterrupt:
        print("stopped asking", flush=True)
else:
    told = lambda left: os.write(1, f"left {left}\\n".encode())
    ended = run_dbt(Path(sys.argv[1]), ["build"], output=sys.stdout, stopping=told, **given)
    print("ended", ended.code, ended.interrupted, flush=True)
restored = signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("restored", restored, flush=True)
"""

LONG = """
heard = []
def hear(number, frame):
    heard.append(number)
    os.write(2, f'heard {len(heard)}\\n'.encode())
signal.signal(signal.SIGINT, hear)
open('ready', 'w').write(str(os.getpid()))
while len(heard) < NEEDED: time.sleep(0.01)
time.sleep(0.3)
print('wrote results', len(heard), file=sys.stderr, flush=True)
sys.exit(1)
"""


class Running:
    """A process in which a long dbt has just begun."""

    def __init__(self, folder: Path, dbt: str, how: str = "run", sigint: str = "heard") -> None:
        program = script(folder / "dbt", dbt)
        environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(program), how, sigint],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        ready = folder / "ready"
        until = time.monotonic() + 30
        while not (ready.exists() and ready.read_text()):
            assert time.monotonic() < until, "it did not start"
            time.sleep(0.01)
        self.dbt = int(ready.read_text())

    def end(self) -> list[str]:
        """What it printed."""
        return self.process.communicate(timeout=30)[0].splitlines()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_reaches_dbt_once_and_is_waited_for(tmp_path: Path, number: int) -> None:
    running = Running(tmp_path, LONG.replace("NEEDED", "1"))
    # as a terminal does it: to the whole group
    os.killpg(running.process.pid, number)
    said = running.end()
    assert sorted(said[:2]) == ["heard 1", "left 2"]
    assert said[2:] == ["wrote results 1", "ended 1 True", "restored True"]
    assert gone(running.dbt)


def test_a_stop_of_the_process_alone_reaches_dbt_too(tmp_path: Path) -> None:
    running = Running(tmp_path, LONG.replace("NEEDED", "1"), "ask")
    running.process.send_signal(signal.SIGINT)
    assert running.end() == ["stopped asking", "restored True"]
    assert gone(running.dbt)


def test_the_third_stop_is_the_last(tmp_path: Path) -> None:
    running = Running(tmp_path, LONG.replace("NEEDED", "99"))
    for _ in range(3):
        running.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    said = running.end()
    assert said[-2:] == ["ended 137 True", "restored True"]
    assert [line for line in said if line.startswith("left")] == ["left 2", "left 1", "left 0"]
    assert gone(running.dbt)


def test_an_ignored_stop_stays_ignored_but_dbt_can_be_stopped(tmp_path: Path) -> None:
    running = Running(tmp_path, LONG.replace("NEEDED", "1"), sigint="ignored")
    running.process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert running.process.poll() is None
    running.process.send_signal(signal.SIGTERM)
    assert running.end()[2:4] == ["wrote results 1", "ended 1 True"]


def test_ctrl_z_lets_dbt_rest(tmp_path: Path) -> None:
    def states() -> set[str]:
        pids = f"{running.process.pid},{running.dbt}"
        told = subprocess.run(
            ["ps", "-o", "stat=", "-p", pids], check=True, capture_output=True, text=True
        )
        return {line.strip()[0] for line in told.stdout.splitlines()}

    def reach(stopped: bool) -> None:
        until = time.monotonic() + 10
        while (states() == {"T"}) is not stopped:
            assert time.monotonic() < until
            time.sleep(0.05)

    running = Running(tmp_path, LONG.replace("NEEDED", "1"))
    running.process.send_signal(signal.SIGTSTP)
    reach(True)
    running.process.send_signal(signal.SIGCONT)
    reach(False)
    running.process.send_signal(signal.SIGINT)
    assert running.end()[2:] == ["wrote results 1", "ended 1 True", "restored True"]


def test_dbt_does_not_go_on_unseen(tmp_path: Path) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(text)

    dbt = script(tmp_path / "dbt", LONG.replace("NEEDED", "1").replace("while", "print(1)\nwhile"))
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with pytest.raises(BrokenPipeError):
        run_dbt(dbt, ["build"], root=tmp_path, environ=environ, output=Closed())
    assert gone(int((tmp_path / "ready").read_text()))


def test_a_question_begins_where_the_users_dbt_left_off(tmp_path: Path) -> None:
    folders, artifacts = folders_in(tmp_path / ".sqb" / "dbt"), tmp_path / "target"
    make_ready(folders, artifacts)
    assert list(folders.target.iterdir()) == []
    artifacts.mkdir()
    (artifacts / "partial_parse.msgpack").write_text("theirs")
    (artifacts / "sources.json").write_text("{}")
    make_ready(folders, artifacts)
    assert folders.parsed.read_text() == "theirs"
    os.utime(folders.parsed, ns=(1, 1))
    assert newer_parse(folders, artifacts) is None
    assert (folders.target / "sources.json").read_text() == "{}"
    # one of its own that is newer stays
    folders.parsed.write_text("own")
    (artifacts / "sources.json").unlink()
    make_ready(folders, artifacts)
    assert sorted(p.name for p in folders.target.iterdir()) == ["partial_parse.msgpack"]
    assert folders.parsed.read_text() == "own"
    assert newer_parse(folders, artifacts) == folders.parsed
    assert sorted(p.name for p in artifacts.iterdir()) == ["partial_parse.msgpack"]


def test_a_machine_without_java_gets_one_for_dbt(tmp_path: Path) -> None:
    bare = {"PATH": str(tmp_path), "SQB_JAVA_HOME": find_java(os.environ).home}
    found = with_java(bare, tmp_path / "cache")
    assert found.keys() - bare.keys() == {"JAVA_HOME"}
    assert os.access(f"{found['JAVA_HOME']}/bin/java", os.X_OK)
    # one that the user has is the user's business
    assert with_java({**bare, "JAVA_HOME": "/mine"}, tmp_path)["JAVA_HOME"] == "/mine"
    (tmp_path / "java").touch(0o755)
    assert with_java(bare, tmp_path) == bare
