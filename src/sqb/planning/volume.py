"""How many bytes a plan's work reads: what Spark's start is tuned by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


def input_bytes(
    work: Collection[str],
    inputs: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int | None],
) -> int | None:
    """The bytes of all tables that ``work`` reads, each once; None if one's size is not known.

    ``inputs`` are what nodes read, by name. ``sizes`` holds tables; a node that is not in it (a
    view, or one that this work builds first) stands for what it reads in turn.
    """
    total, seen, pending = 0, set(work), [name for node in work for name in inputs.get(node, ())]
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in sizes:
            size = sizes[name]
            if size is None:
                return None
            total += size
        elif name in inputs:
            pending += inputs[name]
        else:
            return None
    return total
