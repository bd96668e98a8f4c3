"""Calls to a REST catalog: JSON in, JSON out, through pyiceberg's authenticated session.

pyiceberg brings the log-in (tokens, OAuth, request signing) and the server's configuration; what
is sent and read are the documents of the specification themselves, so that nothing is lost on
tables that pyiceberg's own models do not know in full.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.errors import SqbError
from sqb.lake.iceberg import open_iceberg

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog

TIMEOUT_S = 60
_TRIES = 3
_BUSY = frozenset({429, 502, 503, 504})
_DENIED = frozenset({401, 403, 419})

#: Answers that say "not now" or "not you", never "not like this".
_NO_REFUSAL = frozenset({401, 408, 419, 429})


class Answer(msgspec.Struct, frozen=True):
    """What the server said."""

    status: int
    body: dict[str, Any]

    @property
    def good(self) -> bool:
        """Was it done?"""
        return self.status < 300

    @property
    def refused(self) -> bool:
        """Does the server decline this request for good, whoever asks again?"""
        return self.status == 501 or (400 <= self.status < 500 and self.status not in _NO_REFUSAL)

    @property
    def message(self) -> str:
        """The server's own words."""
        error = self.body.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        return f"{said} (status {self.status})" if said else f"status {self.status}"


class UnknownOutcome(SqbError):  # noqa: N818 - an outcome, not always a failure
    """The connection or the server broke off; whether the request was done is not known."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            "L001",
            f"the catalog at {place} broke off while sqb wrote to it: {why}",
            help="build again: sqb looks at what is there and goes on from it",
            exit_code=1,
        )


class RestClient:
    """One REST catalog. The connection is made by the first call."""

    def __init__(self, name: str, uri: str, warehouse: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self._uri, self._warehouse, self._properties = uri, warehouse, dict(properties)
        self._catalog: RestCatalog | None = None
        self._opening = threading.Lock()

    @property
    def place(self) -> str:
        """The address as it may be shown."""
        from urllib.parse import urlsplit

        parts = urlsplit(self._uri)
        address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        return f"{address} ({self._warehouse})" if self._warehouse else address

    def get(self, path: str, **params: str) -> Answer:
        """Read; tried again when the server is busy."""
        return self._call("GET", path, None, params, again=True)

    def post(self, path: str, body: object, *, again: bool = False) -> Answer:
        """Write. Only what may be done twice is sent ``again`` by itself."""
        return self._call("POST", path, body, {}, again=again)

    def delete(self, path: str, **params: str) -> Answer:
        """Remove; the files behind it stay."""
        return self._call("DELETE", path, None, params, again=True)

    def expect(self, answer: Answer, doing: str) -> dict[str, Any]:
        """The body of a good answer; any other is an error that says what was attempted."""
        if answer.good:
            return answer.body
        if answer.status in _DENIED:
            help_text = "check `token` or `credential` in [catalog.properties], and its rights"
        else:
            help_text = "the message is the server's own; its log may say more"
        raise SqbError(
            "L001",
            f"the catalog at {self.place} did not let sqb {doing}: {answer.message}",
            help=help_text,
        )

    def close(self) -> None:
        """Let go of the connections."""
        if self._catalog is not None:
            self._catalog._session.close()
            self._catalog = None

    def _call(
        self, method: str, path: str, body: object, params: Mapping[str, str], *, again: bool
    ) -> Answer:
        from requests import RequestException

        catalog = self._open()
        data = None if body is None else msgspec.json.encode(body)
        for turn in range(1, _TRIES + 1):
            last = turn == _TRIES or not again
            try:
                found = catalog._session.request(
                    method,
                    catalog.url("") + path,
                    params=dict(params),
                    data=data,
                    headers={"Content-Type": "application/json"},
                    timeout=TIMEOUT_S,
                )
            except RequestException as error:
                if not last:
                    continue
                if method == "POST":
                    raise UnknownOutcome(self.place, type(error).__name__) from error
                raise self._unreachable(error) from error
            if found.status_code in _BUSY and not last:
                time.sleep(0.3 * turn)
                continue
            if method == "POST" and found.status_code >= 500 and found.status_code != 501:
                said = Answer(found.status_code, _object(found.content)).message
                raise UnknownOutcome(self.place, said)
            return Answer(found.status_code, _object(found.content))
        raise AssertionError("unreachable")

    def _open(self) -> RestCatalog:
        with self._opening:
            if self._catalog is None:
                from pyiceberg.exceptions import RESTError
                from requests import RequestException

                try:
                    opened = open_iceberg(
                        self.name, self._uri, self._warehouse, "rest", self._properties
                    )
                except (RESTError, RequestException, ValueError) as error:
                    raise self._unreachable(error) from error
                self._catalog = opened  # type: ignore[assignment]
            return self._catalog  # type: ignore[return-value]

    def _unreachable(self, error: Exception) -> SqbError:
        from pyiceberg.exceptions import RESTError
        from requests import ConnectionError as NoConnection

        if isinstance(error, NoConnection):
            said, help_text = "no connection", "is the server up, and is `[catalog] uri` right?"
        elif isinstance(error, RESTError):
            said = f"{type(error).__name__}: {error}"
            help_text = "check `token` or `credential` in [catalog.properties]"
        else:
            said = type(error).__name__
            help_text = "check `[catalog] uri` and [catalog.properties]"
        return SqbError(
            "L001", f"the catalog at {self.place} can't be used: {said}", help=help_text
        )


def _object(content: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any]) if content else {}
    except msgspec.DecodeError:
        return {}
