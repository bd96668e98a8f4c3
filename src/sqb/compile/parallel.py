"""Work on compiled models in forked children: the parent's memory in, msgpack out."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import msgspec

from sqb.compile.nodes import CompiledModel

T = TypeVar("T")

_decoder = msgspec.msgpack.Decoder(list[CompiledModel])


def fork_map(
    work: Callable[[list[T]], list[CompiledModel]], items: list[T], processes: int
) -> list[CompiledModel]:
    """``work`` on ``items``, split among processes; results in order.

    A child that fails or dies is not asked again: the parent does its share itself, so that the
    error comes out as it would on one core.
    """
    size = -(-len(items) // processes)
    chunks = [items[i : i + size] for i in range(0, len(items), size)]
    children = [_fork(work, chunk) for chunk in chunks[1:]]
    try:
        out = work(chunks[0])
    finally:
        answers = [_answer(pid, pipe) for pid, pipe in children]
    for chunk, data in zip(chunks[1:], answers, strict=True):
        out += _decoder.decode(data) if data else work(chunk)
    return out


def _answer(pid: int, pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as reader:
        data = reader.read()
    os.waitpid(pid, 0)
    return data


def _fork(work: Callable[[list[T]], list[CompiledModel]], chunk: list[T]) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.close(reading)
        data = msgspec.msgpack.encode(work(chunk))
        with os.fdopen(writing, "wb") as writer:
            writer.write(data)
    finally:
        # nothing of the parent's (buffers, exit handlers) may run twice
        os._exit(0)
