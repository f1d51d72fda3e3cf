"""A server that says what it is told: it answers each connection, after the first bytes that come, with what stood on
its stdin, and closes it. It prints its port.

    listen.py [HOLD]    with HOLD it leaves the connections open; so does nothing at all make a server that never answers
"""

import socket
import sys

reply = sys.stdin.buffer.read()
held = []
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(reply)
        held = held + [connection] if sys.argv[1:] else []
        if not held:
            connection.close()
