"""How gradients are reduced: the arguments of ``hvd.DistributedOptimizer`` that say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deft_horovod.base.parameter import WIRES
from deft_horovod.peers import stock


@dataclass(frozen=True)
class Reduction:
    """Operation, scaling, compression and ranks of a reduction."""

    op: Any
    compression: Any
    predivide: float
    sparse_as_dense: bool
    process_set: Any

    @property
    def prescale(self) -> float:
        return 1.0 / self.predivide if self.op == stock.Average else 1.0

    @property
    def postscale(self) -> float:
        # Horovod divides by the number of ranks on top of this.
        return self.predivide if self.op == stock.Average else 1.0

    @property
    def plannable(self) -> bool:
        """Whether our messages can carry it; everything else goes through Horovod's own calls."""
        return self.op in (stock.Average, stock.Sum) and self.compression in (
            stock.Compression.none,
            stock.Compression.fp16,
        )

    def wire(self, dtype: str) -> str | None:
        """The dtype in which a gradient of this dtype travels; None: it cannot."""
        wires = WIRES.get(dtype)
        if wires is None:
            return None
        return wires[-1] if self.compression is stock.Compression.fp16 else wires[0]

    def facts(self) -> dict[str, Any]:
        """What has to be equal on all ranks."""
        return {
            "op": str(self.op),
            "compression": getattr(self.compression, "__name__", str(self.compression)),
            "gradient_predivide_factor": self.predivide,
            "sparse_as_dense": self.sparse_as_dense,
        }
