"""Sends requests to a server: keeps connections, repeats requests, and raises exceptions. Knows no paths of the API.

The bytes of arrays are sent without a copy. A reply of raw elements is read directly into an array.
"""

from __future__ import annotations

import collections
import hashlib
import http.client
import itertools
import json
import os
import re
import socket
import ssl
import time
import urllib.parse
import warnings
from typing import Any, Callable, Deque, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._arrays import dtype_of
from ._cancellation import current

__version__ = "0.1.0"
RAW = "application/octet-stream"

# HTTP headers by their names in lower case.
Headers = Dict[str, str]

# Called with "upload" or "download", the bytes so far, and all bytes.
Progress = Callable[[str, int, int], None]

# The server closes a connection that was idle for a minute, or earlier if it needs the descriptor. A request
# that must not be sent twice therefore uses only connections that were used in the last FRESH_S seconds.
FRESH_S = 5.0

# Bytes of an array that are converted, hashed or reported at a time.
PIECE_BYTES = 1 << 20

# A body of at most so many bytes is copied, because that is faster than sending each array by itself.
SMALL_BYTES = 1 << 16

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
        # The server says "set transpose_b to true".
        self.detail: str = re.sub(
            r"set (\w+) to (true|false)", lambda found: f"{found[1]}={found[2].title()}", str(problem.get("detail", ""))
        )
        self.retry_after = retry_after
        super().__init__(f"{self.code}: {self.detail}" if self.detail else self.code)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.status, self.problem, self.retry_after)


class _Broken(Exception):
    """The connection failed. The server may have got the request, unless has_left is False. `was_idle`: the connection
    was an old one, which the server may have closed in the meantime."""

    def __init__(self, cause: str, has_left: bool = True, was_idle: bool = False) -> None:
        super().__init__(cause)
        self.has_left, self.was_idle = has_left, was_idle


def bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    """Returns the bytes of a C-contiguous array of any type, without a copy."""
    return array.reshape(-1).view(np.uint8).data


class Body:
    """The elements of arrays as bytes, row after row, converted to a type. Iterating yields buffers, which are
    valid until the next one. Arrays that need a conversion or have gaps are copied piece by piece.

    If the body is hashed, `digest` is the SHA-256 of the bytes that the last iteration yielded.
    """

    def __init__(self, is_hashed: bool = False) -> None:
        self.nbytes = 0
        self._arrays: list[Tuple[np.ndarray[Any, Any], np.dtype[Any]]] = []
        self._is_hashed = is_hashed
        self.digest = b""

    def add(self, array: np.ndarray[Any, Any], dtype: Optional[np.dtype[Any]] = None) -> None:
        wanted: np.dtype[Any] = (array.dtype if dtype is None else dtype).newbyteorder("<")
        self._arrays.append((array, wanted))
        self.nbytes += array.size * wanted.itemsize

    def _buffers(self) -> Iterator[memoryview]:
        for array, dtype in self._arrays:
            if array.flags.c_contiguous and array.dtype == dtype:
                yield bytes_of(array)
            elif array.size:
                # NumPy converts as many elements at a time as its buffer has.
                elements = PIECE_BYTES // dtype.itemsize
                for piece in np.nditer(
                    [array], ["external_loop", "buffered"], [["readonly"]], [dtype], "C", "same_kind", buffersize=elements
                ):
                    yield bytes_of(np.ascontiguousarray(piece))

    def __iter__(self) -> Iterator[memoryview]:
        digest = hashlib.sha256()
        for buffer in self._buffers():
            for start in range(0, len(buffer), PIECE_BYTES):
                piece = buffer[start : start + PIECE_BYTES]
                if self._is_hashed:
                    digest.update(piece)
                yield piece
        self.digest = digest.digest()


def shape_of(headers: Headers) -> Tuple[int, ...]:
    """Reads the header Matmul-Shape, which is empty for a number."""
    return tuple(int(part) for part in headers.get("matmul-shape", "").split(",") if part.strip())


def _read_array(response: http.client.HTTPResponse, headers: Headers, progress: Optional[Progress]) -> np.ndarray[Any, Any]:
    array = np.empty(shape_of(headers), dtype_of(headers.get("matmul-dtype", "")))
    rest = bytes_of(array)
    if response.length is not None and response.length != len(rest):
        raise http.client.HTTPException(f"{response.length} bytes, but the shape and type say {len(rest)}")
    while len(rest) > 0:
        count = response.readinto(rest[:PIECE_BYTES] if progress else rest)
        if count == 0:
            raise _Broken(f"the connection ended {len(rest)} bytes before the end of the reply")
        rest = rest[count:]
        if progress:
            progress("download", array.nbytes - len(rest), array.nbytes)
    response.read()  # http.client requires this before the next request
    return array


def _read_error(response: http.client.HTTPResponse, headers: Headers) -> Error:
    text = response.read()
    try:
        problem = dict(json.loads(text))
    except (ValueError, TypeError):
        detail = text[:200].decode("utf-8", "replace").strip()
        if detail[:1] in ("", "<"):  # nothing, or a page
            detail = f"{response.reason}: not a matmuld replied, but another server or a proxy; check the URL"
        problem = {"detail": detail}
    after = headers.get("retry-after", "")
    return Error(response.status, problem, float(after) if after.isdigit() else None)


class _Server:
    """The connections to one server."""

    def __init__(self, url: str, timeout_s: float, context: Optional[ssl.SSLContext]) -> None:
        # Idle connections, with the process and time of the last use. append and pop of a deque are atomic.
        self.free: Deque[Tuple[int, float, http.client.HTTPConnection]] = collections.deque()
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a server: use http://HOST:PORT or https://HOST:PORT")
        if "@" in parts.netloc:  # messages would show the password
            raise ValueError("the URL has a user or a password: pass a key instead")
        self.url, self._timeout_s = url, timeout_s
        self._host, self._port, self.prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None

    def close(self) -> None:
        try:
            while True:
                self.free.pop()[-1].close()
        except IndexError:
            pass

    def acquire(self, repeatable: bool) -> http.client.HTTPConnection:
        """Returns an idle connection or a new one."""
        try:
            process, used, connection = self.free.pop()
            # After a fork, the child can close the parent's connections without sending data.
            while process != os.getpid():
                connection.close()
                process, used, connection = self.free.pop()
            if repeatable or time.monotonic() - used < FRESH_S:
                return connection
            connection.close()
        except IndexError:
            pass
        if self._context:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)

    def connect(self, connection: http.client.HTTPConnection) -> None:
        try:
            connection.connect()
        except socket.gaierror as error:
            raise _Broken(f"the name {self._host!r} is unknown ({error.strerror})", False) from error
        except ConnectionRefusedError as error:
            raise _Broken("nothing listens there; is the server running?", False) from error
        except socket.timeout as error:
            raise _Broken(f"no connection within {self._timeout_s:g} s (timeout_s)", False) from error
        except ssl.SSLCertVerificationError as error:
            hint = "pass context=ssl.create_default_context(cafile=…)"
            raise _Broken(f"its certificate is not trusted ({error.verify_message}); {hint}", False) from error
        except ssl.SSLError as error:
            raise _Broken(f"no TLS there ({error.reason or error}); perhaps the server needs http://", False) from error
        except OSError as error:
            raise _Broken(error.strerror or repr(error), False) from error


class Transport:
    """Connections to one or several servers. Any number of threads may call its methods."""

    def __init__(
        self,
        urls: Sequence[str],
        key: Optional[str],
        timeout_s: float,
        retry_s: float,
        context: Optional[ssl.SSLContext],
        progress: Optional[Progress],
    ) -> None:
        self.servers = [_Server(url, timeout_s, context) for url in urls]
        self._current = 0  # the index of the server that gets the next request
        self._has_answered = False
        self._timeout_s, self._retry_s, self._progress = timeout_s, retry_s, progress
        key = (key or "").strip()
        if not (key.isascii() and key.isprintable()):  # http.client's exception would show the key
            raise ValueError("the key has a line break, or a character that is not ASCII: give one key")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    @property
    def url(self) -> str:
        """The server that gets the next request."""
        return self.servers[self._current].url

    def close(self) -> None:
        """Closes the idle connections."""
        for server in self.servers:
            server.close()

    def __del__(self) -> None:
        if hasattr(self, "servers"):
            self.close()

    def call(
        self,
        method: str,
        path: str,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[Body] = None,
        headers: Optional[Mapping[str, str]] = None,
        repeatable: bool = True,
        stays: bool = False,
    ) -> Tuple[Headers, Any]:
        """Sends a request. Returns the reply's headers and body: an array, a JSON value, or None.

        Raises Error for a status of 300 or more, ConnectionError if a server cannot be reached or the
        connection breaks, and TimeoutError (socket.timeout) if the server is silent for too long.

        The request is sent again for up to retry_s:
        - after 429 or 503 with Retry-After, because the server has done nothing: to the next server, or with
          `stays` to the same one after that time;
        - to the next server if a connection is refused, or breaks, or a proxy replies 502 because its connection
          broke. If an idle connection breaks, the server may have closed it, so that server is asked again first. If
          not `repeatable`, only a connection that was never made counts.
        If no server has answered yet, each is tried once. A cancelled call sends nothing again.
        """
        target = path + ("?" + urllib.parse.urlencode(query, safe=",:()") if query else "")
        fields = {**self._headers, **(headers or {})}
        if method not in ("GET", "HEAD"):
            fields["Content-Length"] = str(body.nbytes if body else 0)
        deadline = time.monotonic() + self._retry_s
        for tries in itertools.count(1):
            server = self.servers[self._current]
            # Errors are raised where they are caught: a variable of them would keep the arrays of all callers.
            try:
                return self._send_once(server, method, target, body, fields, repeatable)
            except Error as error:
                wait_s = self._plan_retry(server, error, tries, repeatable, stays)
                if wait_s is None or time.monotonic() + wait_s > deadline:
                    raise
            except _Broken as broken:
                is_cancelled = current.cancellation.event.is_set()
                wait_s = None if is_cancelled else self._plan_retry(server, broken, tries, repeatable, stays)
                if wait_s is None or time.monotonic() + wait_s > deadline:
                    raise ConnectionError(f"{server.url}: {broken}") from broken.__cause__
            except socket.timeout:
                # The request may be sent again by the caller. It then goes to the next server, as all later ones.
                self._leave(server)
                raise
            if current.cancellation.event.wait(wait_s):
                raise ConnectionAbortedError("the call was cancelled")
        raise AssertionError

    def _plan_retry(
        self, server: _Server, error: Union[Error, _Broken], tries: int, repeatable: bool, stays: bool
    ) -> Optional[float]:
        """Chooses the server of the next try. Returns the seconds to wait before it, or None if there is none."""
        all_tried = tries % len(self.servers) == 0
        if isinstance(error, Error) and error.status != 502:
            if error.status not in (429, 503) or error.retry_after is None:
                return None
            if stays:
                return max(error.retry_after, 0.1)
            wait_s = max(error.retry_after, 0.1)
        else:
            has_left = isinstance(error, Error) or error.has_left
            if has_left and not repeatable or all_tried and not has_left and not self._has_answered:
                return None
            server.close()  # the other idle connections are likely broken too
            if isinstance(error, _Broken) and error.was_idle:
                return 0  # to the same server, by a new connection
            wait_s = 0 if tries == 1 else min(0.1 * 2 ** min(tries // len(self.servers), 5), 2)
        self._leave(server)
        return wait_s if all_tried else 0

    def _leave(self, server: _Server) -> None:
        """Sends later requests to the next server, unless another thread has done so."""
        index = self.servers.index(server)
        if self._current == index:
            self._current = (index + 1) % len(self.servers)

    def _send_once(
        self, server: _Server, method: str, target: str, body: Optional[Body], headers: Dict[str, str], repeatable: bool
    ) -> Tuple[Headers, Any]:
        connection = server.acquire(repeatable)
        response: Optional[http.client.HTTPResponse] = None
        was_idle = connection.sock is not None
        try:
            if not was_idle:
                server.connect(connection)
            current.cancellation.watch(connection.sock)
            # A cancelled call may still delete the inner products of a chain.
            if current.cancellation.event.is_set() and method != "DELETE":
                raise ConnectionAbortedError("the call was cancelled")
            response, is_sent = self._begin(connection, method, server.prefix + target, body, headers)
            # A dictionary is faster than http.client's headers, which compare all names.
            reply_headers = {name.lower(): value for name, value in response.headers.items()}
            media_type = reply_headers.get("content-type", "").split(";")[0].strip()
            has_length = response.length is not None if method != "HEAD" else "content-length" in reply_headers
            if not has_length and not response.chunked:
                raise _Broken("the connection ended within the head of the reply")
            if response.status >= 300:
                result: Any = _read_error(response, reply_headers)
            elif method == "HEAD" or response.status == 204:
                result = response.read() and None
            elif media_type == RAW:
                result = _read_array(response, reply_headers, self._progress)
            elif media_type == "application/json":
                result = json.loads(response.read())
            else:
                raise http.client.HTTPException(f"a body of the type {media_type!r}")
        except BaseException as error:
            current.cancellation.watch(None)
            connection.close()
            if response:
                response.close()
            if isinstance(error, (ConnectionError, http.client.IncompleteRead, *CLOSED_TLS)):
                raise _Broken(str(error) or "the server closed the connection", True, was_idle) from error
            if isinstance(error, http.client.HTTPException):
                hint = "" if self._has_answered else "; perhaps the server needs https://, or is no HTTP server"
                raise ConnectionError(f"{server.url}: this is no reply of matmuld: {error!r}{hint}") from error
            if isinstance(error, socket.timeout):
                raise socket.timeout(f"{server.url}: silent for {self._timeout_s:g} s (timeout_s)") from error
            raise
        if not self._has_answered:
            _check_version(server.url, reply_headers)
            self._has_answered = True
        current.cancellation.watch(None)
        if is_sent and not current.cancellation.event.is_set():
            server.free.append((os.getpid(), time.monotonic(), connection))
        else:
            connection.close()
        if isinstance(result, Error):
            try:
                raise result
            finally:
                del result
        return reply_headers, result

    def _begin(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: Optional[Body],
        headers: Dict[str, str],
    ) -> Tuple[http.client.HTTPResponse, bool]:
        """Sends the request, and waits for the reply's head. Also returns whether all of it was sent."""
        content: Any = body
        if body and self._progress:
            content = self._report(body)
        elif body and body.nbytes <= SMALL_BYTES:
            content = b"".join(body)
        try:
            connection.request(method, target, content, headers)
        except (BrokenPipeError, ConnectionResetError):
            if connection.sock is None:
                raise
            # The server can reject a request without reading its body, so the reply may have arrived already.
            return connection.getresponse(), False
        return connection.getresponse(), True

    def _report(self, body: Body) -> Iterator[memoryview]:
        done = 0
        for piece in body:
            yield piece
            done += len(piece)
            assert self._progress
            self._progress("upload", done, body.nbytes)


def _check_version(url: str, headers: Headers) -> None:
    """Warns if the server is another minor version than the client, because the API may differ."""
    name, _, version = headers.get("server", "").partition("/")
    if name == "matmuld" and version.split(".")[:2] != __version__.split(".")[:2]:
        warnings.warn(f"{url} is matmuld {version}, but this client is {__version__}: install the server's", stacklevel=6)
