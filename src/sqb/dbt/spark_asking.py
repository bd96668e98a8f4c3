"""Queries of a dbt project whose Spark lives only while dbt runs: a session of sqb's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sqb.dbt.warehouse import Rows
from sqb.project.config_values import CatalogConfig, Config
from sqb.spark.settings import SparkSettings, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Settings of the profile that say what a query means or may read; the rest is about dbt's JVM.
_MEANING = ("spark.sql.catalog.", "spark.sql.session.", "spark.hadoop.")


class SparkAsking:
    """One session, started by the first query; ``starting`` and ``started`` are told of it."""

    def __init__(
        self,
        settings: SparkSettings,
        *,
        environ: Mapping[str, str],
        log_file: Path,
        starting: Callable[[], None],
        started: Callable[[], None],
    ) -> None:
        self._settings, self._environ, self._log_file = settings, environ, log_file
        self._starting, self._started = starting, started
        self._session: SparkSession | None = None

    def rows(self, sql: str) -> Rows:
        found = self._opened().sql(sql).collect()
        return [[None if value is None else str(value) for value in row] for row in found]

    def close(self) -> None:
        if self._session is None:
            return
        from sqb.spark.session import stop_session

        stop_session(self._session)
        self._session = None

    def _opened(self) -> SparkSession:
        if self._session is None:
            from sqb.spark.session import start_session

            self._starting()
            self._session = start_session(
                self._settings,
                log_file=self._log_file,
                app_name="sqb dbt",
                environ=self._environ,
            )
            self._started()
        return self._session


def asking_settings(
    catalog: CatalogConfig, conf: Mapping[str, str], config: Config | None
) -> SparkSettings:
    """A session that sees what dbt's session sees.

    >>> asking_settings(CatalogConfig(), {"spark.jars": "/a.jar"}, None).conf
    {'spark.sql.ansi.enabled': 'false'}
    """
    import msgspec

    kept = {name: value for name, value in conf.items() if name.startswith(_MEANING)}
    base = settings_of(config) if config is not None else None
    own = SparkSettings(
        catalog_name=catalog.name,
        catalog_uri=catalog.uri,
        warehouse=catalog.warehouse,
        catalog_type=catalog.type,
        properties=catalog.properties,
    )
    if base is not None:
        own = msgspec.structs.replace(
            own,
            master=base.master,
            packages=base.packages,
            jars=base.jars,
            conf=base.conf,
            class_archive=base.class_archive,
        )
    # as dbt-spark sets it in every session
    return msgspec.structs.replace(
        own, conf={**own.conf, **kept, "spark.sql.ansi.enabled": "false"}
    )
