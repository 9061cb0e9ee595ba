"""deft_horovod: data-parallel training on slow networks, as a drop-in for Horovod.

``import deft_horovod.torch as hvd`` is the whole API; this package itself stays light, so that
plans and policies can be used where neither torch nor Horovod is installed.
"""

from typing import Final

__version__: Final = "0.1.0"
