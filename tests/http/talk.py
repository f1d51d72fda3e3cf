#!/usr/bin/env -S python3 -IS
"""Sends stdin to a TCP port, and copies the reply to stdout until the server closes the connection.

    talk.py HOST PORT PIECE [LEAVE | HALF | FOREVER | UNREAD | PAUSE_MS]

Writes PIECE bytes at a time, with pauses of PAUSE_MS milliseconds (default 2). After stdin, LEAVE closes the
connection without waiting for a reply, HALF closes only the sending side, and FOREVER sends zeros until the
connection breaks. UNREAD reads nothing for a minute and has a small receive buffer.
"""

import select
import socket
import sys
import time

PATIENCE_S, PAUSE_MS, UNREAD_MS = 30, 2, 60000


def talk(host, port, piece, how=str(PAUSE_MS)):
    data, piece = sys.stdin.buffer.read(), int(piece)
    pause_ms = int(how) if how.isdigit() else UNREAD_MS if how == "UNREAD" else PAUSE_MS
    with socket.socket() as connection:
        connection.settimeout(PATIENCE_S)
        if how == "UNREAD":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # 1 gives the smallest possible buffer
        connection.connect((host, int(port)))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # sends each write as a packet
        other = select.poll()
        other.register(connection, select.POLLRDHUP)
        for at in range(0, len(data), piece):
            if pause_ms > PAUSE_MS and other.poll(0):
                break
            connection.sendall(data[at : at + piece])
            time.sleep(pause_ms / 1000)
        try:
            while how == "FOREVER":
                connection.sendall(bytes(piece))
        except OSError:
            pass
        if how == "HALF":
            connection.shutdown(socket.SHUT_WR)
        while how != "LEAVE" and (got := connection.recv(4096)):
            sys.stdout.buffer.write(got)


try:
    talk(*sys.argv[1:])
except OSError as error:
    sys.exit(f"talk: {error}")
