"""A proxy in front of a REST catalog that refuses what stricter servers refuse."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

#: Method, path and body of a request -> the status to answer with, or None to let it through.
Rule = Callable[[str, str, bytes], int | None]


def no_second_name(method: str, path: str, _: bytes) -> int | None:
    """As servers that allow one table at a location: registering one again is forbidden."""
    return 403 if method == "POST" and path.endswith("/register") else None


def no_branches(method: str, path: str, body: bytes) -> int | None:
    """Neither a second name nor a branch."""
    if no_second_name(method, path, body):
        return 403
    if method != "POST" or "/tables/" not in path:
        return None
    updates = json.loads(body).get("updates", [])
    named = [u["ref-name"] for u in updates if u.get("type") == "branch"]
    return 400 if any(name != "main" for name in named) else None


#: publish mode -> the rule that leaves only this mode.
RULES: dict[str, Rule | None] = {
    "alias": None,
    "branch": no_second_name,
    "replace": no_branches,
}


#: Told of every request before it is forwarded: what a test lets happen in that moment.
MEANWHILE: list[Callable[[str, str, bytes], None]] = []


@contextlib.contextmanager
def proxy(address: str, rule: Rule, port: int = 0) -> Iterator[str]:
    """Forward to ``address``, all but what the rule refuses; the address to use instead."""
    opener = build_opener(ProxyHandler({}))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            refused = rule(self.command, self.path.partition("?")[0], body)
            if refused is not None:
                error = {"message": "refused", "type": "ForbiddenException", "code": refused}
                self._answer(refused, json.dumps({"error": error}).encode())
                return
            for happening in tuple(MEANWHILE):
                happening(self.command, self.path, body)
            kept = {k: v for k, v in self.headers.items() if k.lower() in _KEPT}
            request = Request(address + self.path, body or None, kept, method=self.command)
            try:
                with opener.open(request, timeout=60) as found:
                    self._answer(found.status, found.read())
            except HTTPError as error:
                with error:
                    self._answer(error.code, error.read())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_POST = do_DELETE = do_HEAD = _forward  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_KEPT = {"content-type", "authorization", "accept"}
