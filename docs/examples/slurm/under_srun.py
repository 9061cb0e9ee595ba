"""Makes a task of srun a rank of Horovod over Gloo, for nodes without ssh.

MASTER_ADDR=node1 srun --distribution=block python under_srun.py python -m deft_horovod train.py
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from horovod.runner.common.util.hosts import HostInfo, get_host_assignments
from horovod.runner.gloo_run import create_slot_env_vars
from horovod.runner.http.http_server import RendezvousServer
from torch.distributed import TCPStore


def main() -> int:
    rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    address = os.environ["MASTER_ADDR"]
    port = int(os.environ.get("MASTER_PORT", "29500"))
    store = TCPStore(address, port, size, is_master=rank == 0)
    store.set(f"node of {rank}", os.environ["SLURMD_NODENAME"])
    nodes = [store.get(f"node of {other}").decode() for other in range(size)]
    slots = get_host_assignments([HostInfo(n, nodes.count(n)) for n in dict.fromkeys(nodes)], size)
    mine = slots[rank]
    if mine.local_rank != int(os.environ["SLURM_LOCALID"]):
        sys.exit("ranks are numbered node by node: use srun --distribution=block")
    if rank == 0:
        server = RendezvousServer()
        store.set("port", str(server.start()))
        server.init(slots)
        store.set("ready", "")
    store.get("ready")
    # Horovod resolves no names.
    meeting = {
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": socket.gethostbyname(address),
        "HOROVOD_GLOO_RENDEZVOUS_PORT": store.get("port").decode(),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }
    status = subprocess.call(
        sys.argv[1:], env={**os.environ, **create_slot_env_vars(mine), **meeting}
    )
    # The store and the server are those of rank 0, so it leaves last.
    store.set(f"end of {rank}", "")
    if rank == 0 and status == 0:
        store.wait([f"end of {other}" for other in range(size)])
    return status


if __name__ == "__main__":
    sys.exit(main())
