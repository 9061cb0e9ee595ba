"""Forks ranks for warm_rank.py, which stands in their place for whoever has started them.

python -m tests.parallel.warm_server SOCKET PACKAGE
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from scripts.cluster.jobs import end_with_parent

# torch._dynamo comes with the first optimizer; the rest is what nearly all programs import.
_IMPORTS: Final = ("numpy", "torch", "torch._dynamo")


@dataclass(frozen=True)
class Request:
    """A program to run as if this process had been started for it."""

    argv: list[str]
    env: dict[str, str]
    cwd: str

    def become(self, standard: list[int]) -> None:
        """The process is that of the program from now on."""
        for target, descriptor in enumerate(standard):
            os.dup2(descriptor, target)
            os.close(descriptor)
        os.chdir(self.cwd)
        os.environ.clear()
        os.environ.update(self.env)
        tempfile.tempdir = None  # imports have asked where it is
        folders = self.env.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [str(Path(self.argv[0]).parent), *filter(None, folders)]
        sys.argv = self.argv
        if self.env.get("PYTHONFAULTHANDLER"):
            faulthandler.enable()

    def run(self) -> None:
        program = ModuleType("__main__")
        program.__file__ = self.argv[0]
        sys.modules["__main__"] = program
        source = Path(self.argv[0]).read_bytes()
        exec(compile(source, self.argv[0], "exec"), program.__dict__)  # noqa: S102  (a test's)


@dataclass
class Server:
    """One thread, so that a fork has all of the process."""

    listener: socket.socket
    ranks: dict[int, socket.socket] = field(default_factory=dict)  # by process

    def serve(self) -> Request:
        """Returns in each fork, with what it is to run."""
        ended, tells = socket.socketpair()
        for side in (ended, tells):
            side.setblocking(False)
        signal.set_wakeup_fd(tells.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as ready:
            for source in (self.listener, ended):
                ready.register(source, selectors.EVENT_READ)
            while (request := self._attend(ready, ended)) is None:
                pass
        # What follows is a rank.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (self.listener, ended, tells, *self.ranks.values()):
            one.close()
        return request

    def _attend(self, ready: selectors.BaseSelector, ended: socket.socket) -> Request | None:
        """What is to be done now; the request, in the rank that it is for."""
        for key, _ in ready.select():
            source: Any = key.fileobj
            if source is self.listener:
                request = self._start(ready)
                if request is not None:
                    return request
            elif source is ended:
                ended.recv(4096)
                self._tell_of_ends(ready)
            else:
                self._signal(source)
        return None

    def _start(self, ready: selectors.BaseSelector) -> Request | None:
        """The request, in the rank that it is for."""
        client, _ = self.listener.accept()
        size, standard, _, _ = socket.recv_fds(client, 4, 3)
        text = b""
        while len(text) < int.from_bytes(size, "big"):
            part = client.recv(1 << 16)
            if not part:
                break
            text += part
        process = os.fork()
        if process:
            for descriptor in standard:
                os.close(descriptor)
            self.ranks[process] = client
            ready.register(client, selectors.EVENT_READ)
            return None
        client.close()
        request = Request(**json.loads(text))
        request.become(standard)
        return request

    def _tell_of_ends(self, ready: selectors.BaseSelector) -> None:
        for process in list(self.ranks):
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                client = self.ranks.pop(process)
                ready.unregister(client)
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError), client:
                    client.sendall(code.to_bytes(4, "big", signed=True))

    def _signal(self, client: socket.socket) -> None:
        """Hands on what its stand-in was sent; a rank without one is killed."""
        process = next((p for p, one in self.ranks.items() if one is client), None)
        if process is None:
            return
        with contextlib.suppress(OSError):
            for number in client.recv(64) or [signal.SIGKILL]:
                os.kill(process, number)


def main() -> Request:
    end_with_parent()
    for name in (*_IMPORTS, sys.argv[2]):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else a collection in a rank touches, and so copies, all that it shares
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        print("ready", flush=True)
        return Server(listener).serve()


if __name__ == "__main__":
    request = main()
    end_with_parent()
    request.run()
