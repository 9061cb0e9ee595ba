#!/usr/bin/env bash
# Builds (once; the wheel is cached) and installs Horovod 0.28.1 for one Python. See --help.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'TEXT'
usage: install_horovod.sh [--python PY] [--mpi] [--gpu nccl|staged|none|auto] [--sdist PATH] [--tree FOLDER] [--force]
  --python PY   the Python to install for (default: the active virtual environment, else .venv here)
  --mpi         build with MPI beside Gloo
  --gpu HOW     nccl: NCCL for CUDA tensors; staged: through host memory and Gloo; none: CPU only;
                auto (default): nccl if torch has CUDA and nvcc is there, else none
  --sdist PATH  horovod-0.28.1.tar.gz, for machines without network
  --tree FOLDER a checkout of Horovod with its submodules, such as of its main branch, to build instead
  --force       build and install again
Environment: XDG_CACHE_HOME (wheels and source), HOROVOD_BUILD_CUDA_CC_LIST (e.g. "80,90"), CUDA_HOME.
TEXT
}

fail() {
  echo "error: $*" >&2
  exit 1
}

python=""
arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    --python) python=${2:?--python needs a value}; shift 2 ;;
    --python=*) python=${1#*=}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) arguments+=("$1"); shift ;;
  esac
done
if [ -z "$python" ]; then
  for candidate in "${VIRTUAL_ENV:-/nonexistent}/bin/python" "$here/../.venv/bin/python" python3; do
    python=$(command -v "$candidate" || true)
    [ -z "$python" ] || break
  done
fi
[ -n "$python" ] && command -v "$python" >/dev/null ||
  fail "no Python found (looked for '${python:-python3}'): apt-get install -y python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  fail "$python is $("$python" -V); expected Python 3.10 or newer"
"$python" -m pip --version >/dev/null 2>&1 ||
  fail "$python has no pip: $python -m ensurepip, or apt-get install -y python3-pip"
PYTHONPATH=$(dirname "$here") exec "$python" -m scripts.horovod.wheel "${arguments[@]}"
