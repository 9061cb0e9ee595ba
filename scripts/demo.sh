#!/usr/bin/env bash
# Sets up, then trains a small network on real data with stock Horovod and with deft_horovod, on two
# ranks over a slow link, and prints how they compare. About a minute and a half after set-up.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/setup.sh"
PYTHONPATH=$root exec "$root/.venv/bin/python" -m scripts.demo "$@"
