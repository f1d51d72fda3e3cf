"""Sends requests to a server: keeps connections, retries, and raises exceptions. Knows no paths of the API.

The buffers of a body are sent without a copy. A reply of raw elements is read directly into an array.
"""

from __future__ import annotations

import collections
import http.client
import json
import os
import ssl
import time
import urllib.parse
from typing import Any, Deque, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

__version__ = "0.1.0"
RAW = "application/octet-stream"

# HTTP headers by their names in lower case.
Headers = Dict[str, str]

# The server closes a connection that was idle for a minute, or earlier if it needs the descriptor. A request
# that must not be sent twice therefore uses only connections that were used in the last FRESH_S seconds.
FRESH_S = 5.0

# Errors, besides ConnectionError, that Python raises if the server has closed a TLS connection.
CLOSED_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Error(Exception):
    """The server rejected a request, or failed to compute it.

    code         for programs, such as "bad_shape" (docs/http-api.md), or "http_502" for a proxy's status 502.
    detail       for people: what was wrong, what was expected, what to do.
    status       the HTTP status.
    problem      all members of the reply, such as `field`, `limit` and `request_id`.
    retry_after  the seconds to wait before another try, or None.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code: str = str(problem.get("code", f"http_{status}"))
        self.detail: str = str(problem.get("detail", ""))
        self.retry_after = retry_after
        super().__init__(f"{self.code}: {self.detail}" if self.detail else self.code)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.status, self.problem, self.retry_after)


def dtype_of(name: str) -> np.dtype[Any]:
    """Returns the little-endian NumPy type. Raises ImportError if ml_dtypes is needed and missing."""
    try:
        dtype = np.dtype(name)
    except TypeError:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, name))
    return dtype.newbyteorder("<")


def bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    """Returns the bytes of a C-contiguous array of any type, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def shape_of(headers: Headers) -> Tuple[int, ...]:
    """Reads the header Matmul-Shape, which is empty for a number."""
    return tuple(int(part) for part in headers.get("matmul-shape", "").split(",") if part.strip())


def _read_array(response: http.client.HTTPResponse, headers: Headers) -> np.ndarray[Any, Any]:
    array = np.empty(shape_of(headers), dtype_of(headers.get("matmul-dtype", "")))
    rest = bytes_of(array)
    if response.length is not None and response.length != len(rest):
        raise ConnectionError(f"the reply has {response.length} bytes, but its shape and type say {len(rest)}")
    while len(rest) > 0:
        count = response.readinto(rest)
        if count == 0:
            raise ConnectionError(f"the connection ended {len(rest)} bytes before the end of the reply")
        rest = rest[count:]
    response.read()  # http.client requires this before the next request
    return array


def _read_error(response: http.client.HTTPResponse, headers: Headers) -> Error:
    text = response.read()
    try:
        problem = dict(json.loads(text))
    except (ValueError, TypeError):
        problem = {"detail": text[:200].decode("utf-8", "replace").strip() or response.reason}
    after = headers.get("retry-after", "")
    return Error(response.status, problem, float(after) if after.isdigit() else None)


class Transport:
    """Connections to one server. Any number of threads may call its methods."""

    def __init__(
        self, url: str, key: Optional[str], timeout_s: float, retry_s: float, context: Optional[ssl.SSLContext]
    ) -> None:
        # Idle connections, with the process and time of the last use. append and pop of a deque are atomic.
        self._free: Deque[Tuple[int, float, http.client.HTTPConnection]] = collections.deque()
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a server: use http://HOST:PORT or https://HOST:PORT")
        self._host, self._port, self._prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._timeout_s, self._retry_s = timeout_s, retry_s
        self._headers: Dict[str, str] = {"Authorization": f"Bearer {key}"} if key else {}

    def close(self) -> None:
        """Closes the idle connections."""
        try:
            while True:
                self._free.pop()[-1].close()
        except IndexError:
            pass

    __del__ = close

    def call(
        self,
        method: str,
        path: str,
        query: Optional[Mapping[str, Any]] = None,
        body: Sequence[memoryview] = (),
        headers: Optional[Mapping[str, str]] = None,
        repeatable: bool = True,
    ) -> Tuple[Headers, Any]:
        """Sends a request. Returns the reply's headers and body: an array, a JSON value, text, or None.

        Raises Error for a status of 300 or more. 429 or 503 with Retry-After means that the server has done
        nothing. The request is then sent again after that time, for up to retry_s in total. A repeatable
        request is also sent once more if the connection breaks before the reply begins, or if a proxy replies
        502 because its connection to the server broke. All other broken connections raise ConnectionError. Raises TimeoutError (socket.timeout) if the server is silent for
        too long.
        """
        target = self._prefix + path + ("?" + urllib.parse.urlencode(query, safe=",:()") if query else "")
        fields = {**self._headers, **(headers or {})}
        if method not in ("GET", "HEAD"):
            fields["Content-Length"] = str(sum(part.nbytes for part in body))
        deadline = time.monotonic() + self._retry_s
        while True:
            try:
                return self._send_once(method, target, body, fields, repeatable)
            except Error as error:
                wait_s = error.retry_after
                if error.status not in (429, 503) or wait_s is None or time.monotonic() + wait_s > deadline:
                    raise
            time.sleep(max(wait_s, 0.1))

    def _send_once(
        self, method: str, target: str, body: Sequence[memoryview], headers: Dict[str, str], repeatable: bool
    ) -> Tuple[Headers, Any]:
        connection = self._acquire(repeatable)
        try:
            try:
                response, is_sent = self._begin(connection, method, target, body, headers)
                if response.status == 502 and repeatable:
                    raise ConnectionError("the proxy's connection to the server broke")
            except (ConnectionError, *CLOSED_TLS):
                if not repeatable:
                    raise
                # The server may have closed the idle connection, or may have restarted.
                connection.close()
                response, is_sent = self._begin(connection, method, target, body, headers)
            # A dictionary is faster than http.client's headers, which compare all names.
            reply_headers = {name.lower(): value for name, value in response.headers.items()}
            media_type = reply_headers.get("content-type", "").split(";")[0].strip()
            if response.status >= 300:
                result: Any = _read_error(response, reply_headers)
            elif method == "HEAD" or response.status == 204:
                result = response.read() and None
            elif media_type == RAW:
                result = _read_array(response, reply_headers)
            elif media_type == "application/json":
                result = json.loads(response.read())
            else:
                result = response.read().decode()
        except (http.client.HTTPException, *CLOSED_TLS) as error:
            connection.close()
            raise ConnectionError(f"the reply is no whole HTTP reply: {error!r}") from error
        except BaseException:
            connection.close()
            raise
        if not is_sent:
            connection.close()
        self._free.append((os.getpid(), time.monotonic(), connection))
        if isinstance(result, Error):
            raise result
        return reply_headers, result

    @staticmethod
    def _begin(
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: Sequence[memoryview],
        headers: Dict[str, str],
    ) -> Tuple[http.client.HTTPResponse, bool]:
        """Sends the request, and waits for the reply's head. Also returns whether all of it was sent."""
        try:
            connection.request(method, target, iter(body) if body else None, headers)
        except (BrokenPipeError, ConnectionResetError):
            if connection.sock is None:
                raise
            # The server can reject a request without reading its body, so the reply may have arrived already.
            return connection.getresponse(), False
        return connection.getresponse(), True

    def _acquire(self, repeatable: bool) -> http.client.HTTPConnection:
        """Returns an idle connection, or a new one that is not connected yet."""
        try:
            process, used, connection = self._free.pop()
            # After a fork, the child can close the parent's connections without sending data.
            while process != os.getpid():
                connection.close()
                process, used, connection = self._free.pop()
            if repeatable or time.monotonic() - used < FRESH_S:
                return connection
            connection.close()
        except IndexError:
            pass
        if self._context:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
