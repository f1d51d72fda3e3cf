"""Makes allocations of a server fail with the preloaded library failing.c. For each allocation there are two
runs: in one only this allocation fails, in the other all later allocations fail too.

    malloc.py CONTROL requests PORT GROUP MOST [CERTIFICATE]    while a server answers requests
    malloc.py CONTROL start MOST OUTPUT PROGRAM [OPTION…]       while a server starts; OUTPUT is a file for its log
    malloc.py CONTROL arm FIRST LAST                            allocations FIRST to LAST will fail
    malloc.py CONTROL disarm                                    prints how many allocations failed

Tests at most MOST allocations, evenly spread. MOST 0 means all. A request must get its normal reply, a
problem with status 500 or 503, or a closed connection. The next request must succeed. A start must fail with
exit status 1 or 2 and a sentence, or the server must become ready and end normally on SIGTERM.
"""

import json
import mmap
import select
import socket
import ssl
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from malloc_requests import ALL_MEMORY, CLOSE, MAPPED, REQUESTS, SECOND, SHORT_OF_LARGE, STEADY

# A reply that takes longer counts as hung. The limit is long because sanitizers on a busy machine are slow.
PATIENCE_S = 60
LARGE_BYTES = 256 << 10
NEVER = 2**64 - 1
# With TLS, only allocations up to this number fail. Otherwise libmicrohttpd would poll forever.
LAST_BY_TLS = 20000


class Control:
    """The memory shared with failing.c."""

    ARMED, BYTES, FIRST, LAST, SEEN, FAILED = range(6)

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.words = memoryview(mmap.mmap(file.fileno(), 48)).cast("Q")

    def arm(self, first, last, least_bytes=0):
        """Makes allocations number first to last fail, counting only those of least_bytes or more."""
        for word, value in enumerate((least_bytes, first, last, 0, 0), self.BYTES):
            self.words[word] = value
        self.words[self.ARMED] = 1

    def disarm(self):
        self.words[self.ARMED] = 0
        return self.words[self.FAILED]


def stride_of(sites, most):
    return 1 if most == 0 or sites <= most else -(-sites // most)


class Reply:
    """A reply, and how the request ended: "complete", "closed" before the end of the reply, or "hung"."""

    def __init__(self, ending, text=b""):
        self.ending, self.text, self.status, self.headers, self.body = ending, text, 0, {}, b""

    def is_whole(self):
        text = self.text
        while True:
            head, end, body = text.partition(b"\r\n\r\n")
            if not end or not head.startswith(b"HTTP/1.1 "):
                return False
            if not head.startswith(b"HTTP/1.1 1"):
                break
            text = body  # drops an interim reply, such as 100 Continue
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status, self.body = int(first.split()[1]), body
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = self.headers.get("content-length")
        return self.status == 204 if length is None else len(body) >= int(length)

    def is_refusal(self):
        if self.ending != "complete" or self.status < 500:
            return False
        problem = json.loads(self.body)
        if self.headers.get("content-type") == "application/json":  # the errors under /v2
            return self.status in (500, 503) and bool(problem["error"] and self.headers.get("x-request-id"))
        return (self.status, problem["code"]) in ((500, "internal"), (503, "not_ready")) and bool(
            problem["detail"] and self.headers.get("x-request-id")
        )


def talk(connection, request):
    """Sends and reads at the same time, because a server that rejects early does not read the whole
    request. If the request says Connection: close, waits until the server closes, because the server has
    then freed its memory."""
    until, sent, to_end = time.monotonic() + PATIENCE_S, 0, CLOSE.encode() in request
    reply = Reply("hung")
    connection.setblocking(False)
    while reply.ending == "hung" and time.monotonic() < until:
        if sent < len(request):
            try:
                sent += connection.send(request[sent : sent + (1 << 16)])
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            except OSError:
                sent = len(request)  # a server that rejects early may still reply
        try:
            got = connection.recv(1 << 16)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            to_send = [connection] if sent < len(request) else []
            select.select([connection], to_send, [], max(0, until - time.monotonic()))
            continue
        except OSError:
            got = b""
        reply.text += got
        if not got:
            reply.ending = "closed"
        if reply.is_whole() and (not to_end or not got):
            reply.ending = "complete"
    return reply


class Subject:
    """A request that is repeated many times."""

    def __init__(self, control, port, request, certificate):
        self.control, self.port, self.request = control, port, request
        self.text = request.encode()
        self.tls = ssl.create_default_context(cafile=certificate) if certificate else None
        for _ in range(2):  # the first request may fill caches
            self.baseline, _ = self.ask(NEVER, NEVER)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        return self.tls.wrap_socket(connection, server_hostname="localhost") if self.tls else connection

    def prepare(self):
        """Opens the connection in advance if the request is the second one of its connection."""
        connection = None
        if SECOND in self.request.flags:
            connection = self.connect()
            talk(connection, self.text)
        if MAPPED in self.request.flags:
            with self.connect() as before:
                talk(before, ALL_MEMORY.encode())
        return connection

    def ask(self, first, last):
        """Sends the request while allocations fail. Returns the reply, and how many allocations failed."""
        connection = self.prepare()
        self.control.arm(first, last, LARGE_BYTES if SHORT_OF_LARGE in self.request.flags else 0)
        try:
            connection = connection or self.connect()
            reply = talk(connection, self.text)
        except TimeoutError:
            reply = Reply("hung")
        except OSError:
            reply = Reply("closed")
        failed = self.control.disarm()
        if connection:
            connection.close()
        return reply, failed

    def steady_bytes(self):
        """Returns the part of a reply's body that is equal in all replies."""
        body = self.baseline.body
        types = ("application/octet-stream", "application/x-npy")
        if STEADY in self.request.flags or self.baseline.headers.get("content-type") in types:
            return len(body)
        return max(body.find(b"]]"), 0) if body.startswith(b'{"c":') else 0

    def is_expected(self, reply):
        steady = self.steady_bytes()
        return (
            reply.ending == "complete"
            and reply.status == self.request.status
            and self.request.expected.encode() in reply.body
            and self.baseline.headers.keys() <= reply.headers.keys()
            and reply.body[:steady] == self.baseline.body[:steady]
        )

    def outcome(self, reply, when):
        if reply.ending == "closed":
            return "closed"
        if self.is_expected(reply):
            return "as with memory"
        return "refused" if reply.is_refusal() else self.wrong(reply, when)

    def wrong(self, reply, when):
        missing = self.baseline.headers.keys() - reply.headers.keys()
        print(f"FAILED: {self.request.name}: {when}: {reply.ending}, status {reply.status}, without {missing}:")
        print(reply.text[:1000].decode("latin-1"))
        return "wrong"

    def run(self, is_once, first, outcomes):
        """Returns False if no allocation failed, or if the server no longer works."""
        reply, failed = self.ask(first, first if is_once else LAST_BY_TLS if self.tls else NEVER)
        if failed == 0:
            return False
        when = f"without {'the allocation' if is_once else 'allocations from'} {first}"
        outcomes[self.outcome(reply, when)] += 1
        after, _ = self.ask(NEVER, NEVER)
        if self.is_expected(after):
            return True
        outcomes[self.wrong(after, f"after a run {when}")] += 1
        return False

    def run_all(self, is_once, stride):
        outcomes = Counter()
        first = (stride + 1) // 2
        while self.run(is_once, first, outcomes):
            first += stride
        print(f"  {'one' if is_once else 'all from it'}: {dict(outcomes)}")
        return outcomes["wrong"] == 0


def try_request(control, port, request, most, certificate):
    subject = Subject(control, port, request, certificate)
    sites = control.words[control.SEEN]
    print(f"{request.name}: {sites} allocations", flush=True)
    if not subject.is_expected(subject.baseline):
        return subject.wrong(subject.baseline, "with memory") != "wrong"
    if SHORT_OF_LARGE in request.flags:  # one run, because the order of allocations varies
        outcomes = Counter()
        subject.run(False, 1, outcomes)
        return outcomes["wrong"] == 0
    stride = stride_of(sites, most)
    # If no allocation was counted, failing.c is not loaded.
    return all([sites > 0, subject.run_all(True, stride), subject.run_all(False, stride)])


def try_group(control, port, group, most, certificate=None):
    rows = [request for request in REQUESTS if request.group == group]
    return bool(rows) and all([try_request(control, int(port), row, int(most), certificate) for row in rows])


def check_start(child, said):
    """Returns "ready", "refused", or a text that says what was wrong with the start."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if child.poll() is not None:
            text = said()
            has_reason = ("matmuld: " in text or " error " in text) and "Sanitizer" not in text
            return "refused" if child.returncode in (1, 2) and has_reason else "it ended badly"
        if " ready\n" in said():
            return "ready"
        time.sleep(0.002)
    return "it hangs"


def await_sleep(pid):
    """Waits until the main thread sleeps. Before that, ThreadSanitizer of gcc 12 can lose a signal."""
    until = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "S" and time.monotonic() < until:
        time.sleep(0.002)


def start(control, output, command, first, last):
    """Starts the server once. Returns the outcome, and how many allocations failed."""
    with open(output, "wb") as file:
        control.arm(first, last)
        child = subprocess.Popen(command, stderr=file)
    outcome = check_start(child, lambda: Path(output).read_text(errors="replace"))
    failed = control.disarm()
    if outcome == "ready":
        await_sleep(child.pid)
        child.terminate()
        try:
            if child.wait(PATIENCE_S) != 0:
                outcome = "it stopped badly"
        except subprocess.TimeoutExpired:
            outcome = "it does not stop"
    child.kill()
    child.wait()
    if outcome not in ("ready", "refused"):
        said = Path(output).read_text(errors="replace")[:3000]
        print(f"FAILED: {outcome}, without {first}: {child.returncode}:\n{said}")
    return outcome, failed


def try_starts(control, most, output, *command):
    outcome, _ = start(control, output, command, NEVER, NEVER)
    sites = control.words[control.SEEN]
    stride = stride_of(sites, int(most))
    print(f"start: {sites} allocations", flush=True)
    good = outcome == "ready" and sites > 0
    for is_once in (True, False) if good else ():
        outcomes, first, failed = Counter(), (stride + 1) // 2, 1
        while failed > 0 and good:
            outcome, failed = start(control, output, command, first, first if is_once else NEVER)
            outcomes[outcome] += 1
            good &= outcome in ("ready", "refused")
            first += stride
        print(f"  {'one' if is_once else 'all from it'}: {dict(outcomes)}", flush=True)
    return good


def main(path, task, *arguments):
    control = Control(path)
    if task == "arm":
        control.arm(*map(int, arguments))
    elif task == "disarm":
        print(control.disarm())
    else:
        return {"requests": try_group, "start": try_starts}[task](control, *arguments)
    return True


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
