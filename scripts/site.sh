#!/usr/bin/env bash
# Builds the documentation as a site, in build/site, and serves it: scripts/site.sh [--no-serve].
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
serve=1
case "${1:-}" in
  "") ;;
  --no-serve) serve=0 ;;
  *) sed -n '2s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
scripts/setup.sh
export PATH="$root/.venv/bin:$PATH" NO_MKDOCS_2_WARNING=1
mkdocs build --quiet
echo "site: build/site/index.html"
[ "$serve" = 0 ] || exec python -m http.server --bind 127.0.0.1 --directory build/site 8000
