#!/usr/bin/env bash
# Sets up, then trains a small GPT on real text with stock Horovod and with deft_horovod, on two ranks
# over a slow link, and shows how they compare. About three minutes after set-up.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/setup.sh" --to-run
PYTHONPATH=$root exec "$root/.venv/bin/python" -m scripts.demo "$@"
