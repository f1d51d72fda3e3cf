"""Lets another thread end the requests of a thread. Knows no HTTP."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Optional


class Cancellation:
    """The cancellation of one call, which may need several requests. `event` is set after `cancel`."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._lock = threading.Lock()  # guards _socket
        self._socket: Optional[socket.socket] = None

    def watch(self, connected: Optional[socket.socket]) -> None:
        """Takes the socket of the request that begins, or None after its end."""
        with self._lock:
            self._socket = connected

    def cancel(self) -> None:
        """Breaks the connection of the request under way, so the server cancels the request too."""
        self.event.set()
        with self._lock, contextlib.suppress(OSError):
            if self._socket:
                # A TLS socket's own shutdown would disturb the thread that reads from it.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.cancellation = Cancellation()


# The cancellation of the calling thread's call. Each thread begins with a cancellation that nobody uses.
current = _OfThread()
