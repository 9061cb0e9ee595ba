#!/usr/bin/env bash
# Makes the wheels of Horovod and of this package: scripts/wheel.sh [--python PY] [options; see --help].
# --python PY: for that Python and its torch. Without it for .venv here, which is set up first.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ "${1:-}" = --python ]; then
  python=${2:?--python needs a value}
  shift 2
else
  case " $* " in
    *" --help "* | *" -h "*) python=python3 ;;
    *)
      "$root/scripts/setup.sh"
      python="$root/.venv/bin/python"
      export DEFT_WERROR=1 # as setup.sh compiles it, so that nothing is compiled again
      ;;
  esac
fi
PYTHONPATH=$root exec "$python" -m scripts.horovod.bundle "$@"
