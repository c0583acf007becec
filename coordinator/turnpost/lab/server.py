"""HTTP on loopback for the scripted model: reads requests, writes answers, knows nothing of scripts."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast


@dataclass(frozen=True)
class Reply:
    """One HTTP answer."""

    status: int
    body: bytes
    content_type: str = "application/json"


# Called in a thread of its own for each `POST /v1/messages`; None closes the connection without an answer.
Respond = Callable[[Mapping[str, str], Mapping[str, Any]], Reply | None]


class LoopbackServer(ThreadingHTTPServer):
    """Serves on a free port of 127.0.0.1 from `start` to `stop`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, respond: Respond) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.respond = respond
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.05,), name="lab-model", daemon=True
        )

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return f"http://127.0.0.1:{self.server_port}"

    def start(self) -> None:
        """Begin to serve in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and cut every connection, so that no thread stays in a read on a kept-alive one."""
        self.shutdown()
        self._thread.join()
        with self._guard:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, then serve it in a thread as usual."""
        with self._guard:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection, then close it as usual."""
        with self._guard:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: sessions are stopped in the middle of requests all the time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if path == "/v1/messages":
            headers = {name.lower(): value for name, value in self.headers.items()}
            server = cast("LoopbackServer", self.server)
            self._send(server.respond(headers, json.loads(raw)))
        elif path == "/v1/messages/count_tokens":
            self._send(Reply(200, b'{"input_tokens": 100}'))
        else:
            self._send(_NOT_HERE)

    def do_GET(self) -> None:
        self._send(_NOT_HERE)

    def do_HEAD(self) -> None:
        self._send(Reply(200, b""))

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the requests are recorded by the model."""

    def _send(self, reply: Reply | None) -> None:
        if reply is None:
            self.close_connection = True
            return
        self.send_response(reply.status)
        self.send_header("content-type", reply.content_type)
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)


_NOT_HERE = Reply(
    404, b'{"type": "error", "error": {"type": "not_found_error", "message": "not in this laboratory"}}'
)
