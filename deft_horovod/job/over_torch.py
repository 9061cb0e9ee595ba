"""One rank of a job of torchrun of which something is asked.

``python -m`` this, and the module that asks, with its arguments.
"""

from __future__ import annotations

import importlib
import sys

import deft_horovod.distributed  # noqa: F401  first: from here on, ranks meet over torch.distributed


def main(arguments: list[str]) -> int:
    """The exit status."""
    asking = importlib.import_module(arguments[0])
    return int(asking.main(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
