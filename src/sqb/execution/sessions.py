"""The Spark session of a project: handed in, borrowed from a warm server, or started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sqb.project.config import Config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Sessions:
    """Opens one session at most, and closes what it opened."""

    def __init__(
        self, config: Config, environ: Mapping[str, str], given: SparkSession | None
    ) -> None:
        self._config = config
        self._environ = environ
        self._given = given
        self._own: SparkSession | None = None
        self._log: Path | None = None
        self._started_jvm = False
        #: Set by a build that went well: the moment to make the next start quicker.
        self.content = False

    @property
    def there(self) -> bool:
        """Is a session there without starting one?"""
        return self._given is not None or self._own is not None

    def get(self, log_file: Path, input_bytes: int | None = None) -> SparkSession:
        """The session; ``log_file`` is for what a JVM that is started now prints."""
        from sqb.spark.session import check_session, start_session
        from sqb.spark.settings import settings_of
        from sqb.spark.warm import borrow

        settings = settings_of(self._config)
        if self._given is not None:
            check_session(self._given, settings)
            return self._given
        if self._own is None:
            self._own = borrow(settings, self._environ)
        if self._own is None:
            self._own = start_session(
                settings,
                log_file=log_file,
                app_name=f"sqb {self._config.name}",
                environ=self._environ,
                input_bytes=input_bytes,
            )
            self._started_jvm = settings.remote is None
            self._log = log_file
        return self._own

    def close(self) -> None:
        """Stop the session that was opened here; one that was handed in goes on."""
        if self._own is None:
            return
        from sqb.spark.session import stop_session

        stop_session(self._own)
        self._own = None
        if self._log is not None:
            from sqb.execution.artifacts import mask_log
            from sqb.project.secrets import mask

            mask_log(self._log, lambda text: mask(text, self._config, environ=self._environ))
        if self._started_jvm and self.content:
            from sqb.spark.archive import make_later
            from sqb.spark.settings import settings_of

            make_later(settings_of(self._config), self._environ)
