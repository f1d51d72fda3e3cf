"""Whether a client can tell by the reply, or by its time, that another API key has stored a matrix under some name.

Starts a matmuld with two keys. One stores matrices; the other asks for their names and for names that nobody has, over
one keep-alive connection, in random order. Statuses, headers and bodies must be equal, except for the name and the date.
So must the times: it fails if the means differ significantly and by more than 1% of the median.

- Significantly: |t| > 4.5 in Welch's test, the usual limit for timing leaks (Reparaz and others, "Dude, is my code
  constant time?", 2017). By chance one line in 100,000 says so.
- More than 1% of the median: with enough requests a nanosecond becomes significant, such as one of the client's cache. A
  reply takes some 50 µs here, and a network's jitter hides half a microsecond.
- The slowest 5% of all are left out of the means: there the system did something else.

Run it on a quiet machine. --replies-only judges no times.
"""

import argparse
import gc
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

OWNER, STRANGER = "owner-" + "0" * 20, "other-" + "1" * 20  # API keys
NAMES = 64  # that the owner has, the stranger has, and nobody has, each
T_MAX, PART_MAX, KEPT = 4.5, 0.01, 0.95
START_S, REPLY_S = 60, 60
REQUESTS = {
    "GET": "GET /v1/matrices/{}",
    "HEAD": "HEAD /v1/matrices/{}",
    "DELETE": "DELETE /v1/matrices/{}",
    "POST": "POST /v1/matmul?a_from={}&b_from=identity()&reply=none",
}


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), REPLY_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, request):
        """The reply's head and body, and the nanoseconds until all of it was there."""
        is_head = request.startswith(b"HEAD")
        begun_ns = time.perf_counter_ns()
        self.socket.sendall(request)
        reply = b""
        while True:
            part = self.socket.recv(65536)
            ended_ns = time.perf_counter_ns()
            if not part:
                sys.exit(f"names: the service closed the connection after {request!r}")
            reply += part
            head, end, body = reply.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            if end and (is_head or length is None or len(body) >= int(length[1])):
                return head, body, ended_ns - begun_ns


def make_request(line, key, body=""):
    """All under one ID, which the service else makes."""
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nX-Request-Id: names\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def draw_names():
    return [f"{random.getrandbits(64):016x}" for _ in range(NAMES)]


def store(client, key, names):
    for name in names:
        head, body, _ = client.exchange(make_request(f"PUT /v1/matrices/{name}", key, '{"a": [[1]]}'))
        if not head.startswith(b"HTTP/1.1 201"):
            sys.exit(f"names: a PUT had {head!r} {body!r}")


def without_its_own(head, body, name):
    """What must be the same for every name."""
    text = re.sub(rb"(?i)\r\ndate:[^\r]*", b"", head) + b"\r\n\r\n" + body
    return text.replace(name.encode(), b"NAME")


def ask(client, names, count):
    """The times and the replies of each kind of request, for the names of another and of nobody."""
    found = {(kind, whose): ([], set()) for kind in REQUESTS for whose in names}
    order = list(found) * count
    random.shuffle(order)
    for kind, whose in order:
        name = random.choice(names[whose])
        head, body, took_ns = client.exchange(make_request(REQUESTS[kind].format(name), STRANGER))
        times, replies = found[kind, whose]
        times.append(took_ns)
        replies.add(without_its_own(head, body, name))
    return found


def judge(kind, another, nobody, replies_only):
    """Prints a line for this kind of request; whether the names cannot be told apart."""
    replies = another[1] | nobody[1]
    if len(replies) != 1 or not next(iter(replies)).startswith(b"HTTP/1.1 404"):
        print(f"{kind:6} the replies differ, or are not 404:", *sorted(replies), sep="\n")
        return False
    limit = sorted(another[0] + nobody[0])[int(KEPT * 2 * len(nobody[0])) - 1]
    kept = [[took for took in times if took <= limit] for times in (another[0], nobody[0])]
    medians = [statistics.median(times) for times in (another[0], nobody[0])]
    means = [statistics.fmean(times) for times in kept]
    error = sum(statistics.variance(times) / len(times) for times in kept) ** 0.5
    t = (means[0] - means[1]) / error
    leaks = abs(t) > T_MAX and abs(means[0] - means[1]) > PART_MAX * medians[1]
    print(
        f"{kind:6} another's and nobody's: median {medians[0] / 1e3:.2f} and {medians[1] / 1e3:.2f} µs, "
        f"mean {means[0] / 1e3:.3f} and {means[1] / 1e3:.3f} µs, t {t:+.2f}"
        f"{', not judged' if replies_only else ': THEY DIFFER' if leaks else ''}"
    )
    return replies_only or not leaks


def start(matmuld, folder):
    """The service, and its port once it multiplies."""
    keys, log = os.path.join(folder, "keys"), os.path.join(folder, "log")
    with open(keys, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(f"owner {OWNER}\nstranger {STRANGER}\n")
    options = ["--port", "0", "--backend", "cpu", "--log-format", "json", "--api-key-file", keys]
    with open(log, "w") as file:
        service = subprocess.Popen([matmuld, *options], stderr=file)
    until = time.monotonic() + START_S
    text = ""
    while time.monotonic() < until and service.poll() is None:
        with open(log) as file:
            text = file.read()
        if '"message":"ready"' in text:
            return service, int(re.search(r"listening on http://[^ \"]*:(\d+)", text)[1])
        time.sleep(0.05)
    service.kill()
    sys.exit(f"names: the service does not start: {text}")


def main():
    parser = argparse.ArgumentParser(description="Whether replies tell that another API key has a matrix of some name.")
    parser.add_argument("matmuld", help="the program")
    parser.add_argument("--requests", type=int, default=20000, help="of each kind, for either sort of names (20000)")
    parser.add_argument("--replies-only", action="store_true", help="judge no times")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        service, port = start(options.matmuld, folder)
        try:
            client = Client(port)
            names = {"another": draw_names(), "nobody": draw_names()}
            store(client, OWNER, names["another"])
            store(client, STRANGER, draw_names())
            gc.disable()  # it would count in a request's time
            found = ask(client, names, options.requests)
        finally:
            service.terminate()
            status = service.wait()
    passed = [judge(kind, found[kind, "another"], found[kind, "nobody"], options.replies_only) for kind in REQUESTS]
    sys.exit(status != 0 or not all(passed))


if __name__ == "__main__":
    main()
