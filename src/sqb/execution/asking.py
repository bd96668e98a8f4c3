"""Asking Spark for the values of sources, all in one query where that works."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sqb.execution.failures import message_of
from sqb.execution.files import bind_files, release_files
from sqb.execution.sources import SourceLook, files_below
from sqb.freshness.files import changed
from sqb.freshness.values import Answer, Probe, evaluate
from sqb.identity.expected import session_conf
from sqb.project.config import Config
from sqb.project.secrets import mask
from sqb.spark.pool import SessionPool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ask(
    session: SparkSession,
    look: SourceLook,
    names: Iterable[str],
    config: Config,
    constants: Mapping[str, str],
) -> dict[str, Answer]:
    """The freshness value of each source; one that can't be had is told and spoils no other."""

    def tell(error: Exception) -> str:
        return mask(f"its freshness query failed: {message_of(error)}", config)

    out: dict[str, Answer] = {}
    probes: dict[str, Probe] = {}
    pool = SessionPool(session, 1, session_conf(config.spark.conf))
    with contextlib.closing(pool), pool.acquire() as sibling:
        bound: list[str] = []
        try:
            for name in names:
                read = [b.name for b in look.compiled.probes[name].bindings]
                try:
                    bound += bind_files(sibling, look, read)
                except Exception as error:  # noqa: BLE001 - told of this source alone
                    out[name] = Answer(None, tell(error), lasting=False)
                else:
                    probes[name] = look.probe(name, constants)
            out |= evaluate(probes, lambda sql: sibling.sql(sql).collect(), tell)
            for name in probes:
                read = [b.name for b in look.compiled.probes[name].bindings]
                out[name] = _settled(look, read, out[name])
        finally:
            release_files(sibling, bound)
    return out


def _settled(look: SourceLook, read: Iterable[str], answer: Answer) -> Answer:
    """The answer, unless files changed while they were asked: then it belongs to no version."""
    files = files_below(look.compiled, read)
    if any(changed(look.listings[name]) for name in files):
        return Answer(None, "its files changed while they were read", lasting=False)
    return answer
