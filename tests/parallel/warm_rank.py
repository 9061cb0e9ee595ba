"""Stands in the place of a rank that a warm server runs (warm_ranks.py), for horovodrun, which sees
its output, its end and its status, and can send it signals.

    python -S -E warm_rank.py SOCKET,... SCRIPT WORDS

It imports as little as it can, as what it saves is the time that imports take.
"""

import json
import os
import signal
import socket
import sys

HANDED_ON = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGHUP),
    *(signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
)


def main():
    servers = sys.argv[1].split(",")
    rank = os.environ.get("HOROVOD_RANK") or os.environ.get("RANK", "0")
    place = servers[int(rank) % len(servers)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.connect(place)
        for number in HANDED_ON:
            signal.signal(number, lambda got, _: server.sendall(bytes([got])))
        request = {"argv": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd()}  # noqa: PTH109
        text = json.dumps(request).encode()
        socket.send_fds(server, [len(text).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(text)
        answer = server.recv(4)
    if len(answer) < 4:
        sys.exit("the server of warm ranks is gone")
    status = int.from_bytes(answer, "big", signed=True)
    if status < 0:  # as the rank ended
        if -status in HANDED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main()
