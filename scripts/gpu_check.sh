#!/usr/bin/env bash
# The GPU check: builds, tests and measures on a machine with a GPU and without network. See --help.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  echo "error: $*" >&2
  exit 2
}

# For a GPU: the Python that has a CUDA torch; for a dry run and to prepare: this project's own.
find_python() {
  local wanted=$1 candidate path
  for candidate in "${GPU_CHECK_PYTHON:-}" "$here/../.venv/bin/python" python3 python; do
    [ -n "$candidate" ] || continue
    path=$(command -v "$candidate") || continue
    if [ "$wanted" = any ] || "$path" -c 'import sys, torch; sys.exit(torch.version.cuda is None)' \
      2>/dev/null; then
      echo "$path"
      return
    fi
  done
  fail "no Python $([ "$wanted" = any ] || echo 'with a CUDA torch ')found; set GPU_CHECK_PYTHON," \
    "or try --device cpu"
}

wanted=cuda
for argument in "$@"; do
  case "$argument" in
    cpu | --device=cpu | --prepare | --plan | --extract* | -h | --help) wanted=any ;;
  esac
done
python=$(find_python "$wanted")
export PYTHONUNBUFFERED=1
# Not an exec under timeout(1): the check itself keeps to --budget-s, and writes its files then.
PYTHONPATH=$(dirname "$here") exec "$python" -m scripts.gpu.check "$@"
