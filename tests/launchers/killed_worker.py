"""The elastic example on a Ray of two nodes, of which one loses its worker in step 12.

python killed_worker.py elastic.py PORT
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import ray
from horovod.ray import RayExecutor

BEGIN_S = 60


def killing(step: int) -> None:
    if step == 12 and int(os.environ["HOROVOD_RANK"]) == 1 and os.environ["HOROVOD_SIZE"] == "2":
        os.kill(os.getpid(), signal.SIGKILL)


def wait_until(done: Callable[[], bool]) -> None:
    end_s = time.monotonic() + BEGIN_S
    while not done():
        if time.monotonic() > end_s:
            sys.exit(f"Ray has not begun within {BEGIN_S} s")
        time.sleep(0.2)


def add_node(stack: ExitStack, folder: Path, *words: str) -> None:
    """Until the end; its own processes end with it."""
    log = stack.enter_context((folder / f"node{words[0]}.log").open("w"))
    command = ["start", "--block", "--num-cpus=1", "--disable-usage-stats", *words]
    command = [sys.executable, "-m", "ray.scripts.scripts", *command]
    node = subprocess.Popen(command, stdout=log, stderr=log)
    stack.callback(node.wait, 30)
    stack.callback(node.terminate)


def main() -> None:
    train = runpy.run_path(sys.argv[1])["train"]
    folder = Path(os.environ["RAY_TMPDIR"])
    port = sys.argv[2]
    with ExitStack() as stack:
        add_node(
            stack,
            folder,
            "--head",
            f"--port={port}",
            "--include-dashboard=false",
            "--node-ip-address=127.0.0.3",
            f"--temp-dir={folder}",
        )
        address = f"127.0.0.3:{port}"
        add_node(stack, folder, f"--address={address}", "--node-ip-address=127.0.0.2")
        ray.init(address=address)
        wait_until(lambda: len(ray.nodes()) == 2)
        settings = RayExecutor.create_settings(timeout_s=BEGIN_S, nics={"lo"})
        executor = RayExecutor(settings, min_workers=1, max_workers=2)
        executor.start()
        results = executor.run(train, kwargs={"steps": 20, "before_step": killing})
        print("ranks of each step:", *(ranks for _, ranks in results[0]))
        executor.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
