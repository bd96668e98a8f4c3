"""YAML with lines."""

from __future__ import annotations

import pytest

from sqb.errors import SqbError
from sqb.project.yaml_files import load_yaml


def test_keys_know_their_lines() -> None:
    found = load_yaml(b"\xef\xbb\xbfa: 1\nb:\n  - name: x\n    when: 2024-01-01\n", "f.yml", {})
    inner = found.tables("b")[0]
    assert (found.place("b"), inner.line, inner.place("when"), inner.place("zzz")) == (2, 3, 4, 3)
    assert found.plain() == {"a": 1, "b": [{"name": "x", "when": "2024-01-01"}]}


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"---\n", b"null"])
def test_an_empty_file_is_an_empty_mapping(content: bytes) -> None:
    assert load_yaml(content, "f.yml", {}).values == {}


BOMB = b"a: &a [x, x, x, x, x, x, x, x]\n" + b"".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 8)}]\n".encode()
    for n in range(8)
)


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"a: 1\n b: 2", "P011", 2),
        (b"a: [1", "P011", 1),
        (b"a: 1\nb: 2\na: 3", "P011", 3),
        (b"- a", "P011", 1),
        (b"text", "P011", 1),
        (b"a: !!python/object:os.system x", "P011", 1),
        (b"a: 1\n---\nb: 2", "P011", 2),
        (b"? [a]\n: b", "P011", 1),
        (b"a: 2024-13-45", "P011", 1),
        (b"a: &a [*a]", "P011", 1),
        (BOMB, "P011", 1),
        (b"a: 1\nb: \xff", "P017", 2),
        (b"a: \x07", "P011", None),
        (b"a: " + b"[" * 100 + b"]" * 100, "P011", 1),
        (b"a: 1\nb: ${ENV:NOPE}", "C005", 2),
    ],
)
def test_bad_files_are_reported_with_their_line(
    content: bytes, code: str, line: int | None
) -> None:
    with pytest.raises(SqbError) as caught:
        load_yaml(content, "f.yml", {})
    assert (caught.value.code, caught.value.file) == (code, "f.yml")
    assert caught.value.line == line


def test_variables_are_filled_in() -> None:
    found = load_yaml(b"a: ${ENV:X}/y\nb: ['${ENV:Z:-d}']", "f.yml", {"X": "x: y"})
    assert found.plain() == {"a": "x: y/y", "b": ["d"]}
