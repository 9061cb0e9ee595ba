"""Examines the machines of all ranks, and the links between them."""

from __future__ import annotations

import torch

from deft_horovod.config import Config
from deft_horovod.doctor.machine import Checkup, this_machine, traffic
from deft_horovod.peers import stock
from deft_horovod.profile import LinkProfile
from deft_horovod.runtime.links.links import Links
from deft_horovod.runtime.links.message_stream import Allowance
from deft_horovod.runtime.links.probe import probe_links
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.reduction import Reduction

_LARGEST_BYTES = 16 << 20


def examine(config: Config) -> Checkup:
    """All ranks call it together, with Horovod initialised; all get the same answer."""
    everyone = stock.global_process_set
    agreement = Agreement(everyone, config.deadline_s)
    links: tuple[LinkProfile, ...] = ()
    before = traffic()
    if stock.size() > 1:
        reduction = Reduction(stock.Average, stock.Compression.none, 1.0, False, everyone)
        opened = Links(reduction, config)
        opened.open(agreement, 0)
        allowance = Allowance(config.probe_s, config.deadline_s, _LARGEST_BYTES)
        links = probe_links(agreement, opened.links, "deft.examination", allowance)
        opened.close()
    carried = {name: after - before.get(name, 0) for name, after in traffic().items()}
    machine = this_machine(
        stock.rank(),
        ranks_on_host=stock.local_size(),
        threads=torch.get_num_threads(),
        transports=(name for name, has in _transports().items() if has),
        carried=carried,
    )
    mine = Checkup(machines=(machine,), links=links)
    all_of_them = [Checkup.from_json(text) for text in agreement.collect(mine.to_json())]
    return Checkup(machines=tuple(c.machines[0] for c in all_of_them), links=links)


def _transports() -> dict[str, bool]:
    return {
        "Gloo": bool(stock.gloo_built()),
        "MPI": bool(stock.mpi_built()),
        "NCCL": bool(stock.nccl_built()),
    }
