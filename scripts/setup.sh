#!/usr/bin/env bash
# Makes or updates .venv in the repository root: torch, Horovod, the tools, this package (editable).
# Does nothing, within a second, when all is up to date. --no-package stops before this package,
# --to-run leaves out the tools that only checks and tests need.
set -euo pipefail

TORCH="torch==2.13.0"

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
venv="$root/.venv"
python="$venv/bin/python"
with_package=1
with_tools=1
# Seconds of each step, measured on two cores; what is left to do is scaled by what was done.
declare -A usual_s=([torch]=30 [horovod]=90 [packages]=15 [extension]=55)

case "${1:-}" in
  "") ;;
  --no-package) with_package=0 ;;
  --to-run) with_tools=0 ;;
  -h | --help) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "error: unknown option '$1'; expected --no-package, --to-run or nothing" >&2; exit 2 ;;
esac

say() { echo "setup: $*"; }

# Says what is done now, and how long it takes until the end.
begin() {
  local step left_s=0
  for step in "${!usual_s[@]}"; do left_s=$((left_s + usual_s[$step])); done
  [ "$done_s" = 0 ] || left_s=$((left_s * (SECONDS - begun_s) / done_s))
  say "$1 (about $(((left_s + 59) / 60)) min left in all)"
}

finish() {
  done_s=$((done_s + usual_s[$1]))
  skip "$1"
}

skip() { unset "usual_s[$1]"; }

fail() {
  echo "error: $*" >&2
  exit 1
}

# Runs a command and shows what it printed only if it failed.
quietly() {
  local output
  if ! output=$("$@" 2>&1); then
    # Without pip's remarks on its configuration and without the compilers' command lines.
    grep -vE '^ *(WARNING: Location .* is ignored|\[[0-9]+/[0-9]+\] |[^ ]*c\+\+ -MMD|ninja: |(running|creating|writing|reading|adding|copying) )' \
      <<<"$output" >&2 || true
    fail "failed: $*"
  fi
}

find_python() {
  local name path
  for name in python3.11 python3.12 python3.13 python3.10 python3; do
    path=$(command -v "$name") || continue
    if "$path" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      echo "$path"
      return
    fi
  done
  fail "no Python 3.10 or newer found: apt-get install -y python3 python3-venv python3-dev"
}

make_venv() {
  [ -x "$python" ] && "$python" -c '' 2>/dev/null && return
  local base
  base=$(find_python)
  say "making .venv with $("$base" -V)"
  rm -rf "$venv"
  if ! "$base" -m venv "$venv" >"$root/build/venv.log" 2>&1; then
    cat "$root/build/venv.log" >&2
    rm -rf "$venv"
    fail "$base cannot make virtual environments: apt-get install -y python3-venv"
  fi
}

# Of everything that decides what is installed; the names of dist-info folders carry the versions.
environment_state() {
  {
    sha256sum pyproject.toml scripts/setup.sh scripts/install_horovod.sh scripts/horovod/*.py
    ls -d "$venv"/lib/python3*/site-packages/*.dist-info | grep -v /deft_horovod-
    cat "$venv"/lib/python3*/site-packages/horovod/_deft_build.py 2>/dev/null || true
  } | sha256sum
}

run_environment_state() { environment_state; }

# Of everything that decides what is in the extension.
extension_state() {
  {
    find csrc -type f -print0 | sort -z | xargs -0 sha256sum
    sha256sum setup.py scripts/extension/*.py scripts/horovod/source.py
    ls -d "$venv"/lib/python3*/site-packages/{torch,horovod}-*.dist-info
    cat "$venv"/lib/python3*/site-packages/horovod/_deft_build.py 2>/dev/null || true
    echo "${DEFT_FORCE_CPU:-} ${DEFT_FORCE_CUDA:-} ${CUDA_HOME:-} ${CXX:-}"
  } | sha256sum
}

up_to_date() { [ -f "$venv/.deft-$1" ] && [ "$(cat "$venv/.deft-$1")" = "$("$1"_state)" ]; }

mark() { "$1"_state >"$venv/.deft-$1"; }

requirements() {
  "$python" - "$with_tools" <<'PY'
import sys
try:
    import tomllib
except ModuleNotFoundError:
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    read = tomllib.load(file)
project, extras = read["project"], read["project"]["optional-dependencies"]
more = extras["dev"] if sys.argv[1] == "1" else extras["plot"] + read["build-system"]["requires"]
print(*project["dependencies"], *more, sep="\n")
PY
}

# Python compiles what is imported when it is imported; pip would compile everything, in one process.
install_environment() {
  if ! "$python" -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null; then
    begin "installing $TORCH"
    quietly "$python" -m pip install --quiet --no-compile "$TORCH"
    finish torch
  else
    skip torch
  fi
  local horovod_s=$SECONDS
  scripts/install_horovod.sh --python "$python"
  # A wheel that is kept says nothing of how fast this machine compiles.
  if [ $((SECONDS - horovod_s)) -lt 30 ]; then skip horovod; else finish horovod; fi
  begin "installing packages"
  local packages
  mapfile -t packages < <(requirements)
  [ "${#packages[@]}" -gt 0 ] || fail "pyproject.toml names no dependencies"
  quietly "$python" -m pip install --quiet --no-compile "${packages[@]}"
  finish packages
  if [ "$with_tools" = 1 ]; then mark environment; else mark run_environment; fi
}

# With the tools it has everything that it needs without.
environment_is_there() {
  up_to_date environment || { [ "$with_tools" = 0 ] && up_to_date run_environment; }
}

editable_is_current() {
  local state
  state=$(sha256sum pyproject.toml setup.py)
  [ "$(cat "$venv/.deft-editable" 2>/dev/null)" = "$state" ] &&
    ls -d "$venv"/lib/python3*/site-packages/deft_horovod-*.dist-info >/dev/null 2>&1
}

extension_exists() { compgen -G "deft_horovod/_C.*.so" >/dev/null; }

install_package() {
  local started=$SECONDS
  export DEFT_WERROR=1
  begin "compiling the extension"
  if editable_is_current; then
    quietly "$python" setup.py --quiet build_ext --inplace
  else
    quietly "$python" -m pip install --quiet --no-build-isolation --no-deps --editable .
    sha256sum pyproject.toml setup.py >"$venv/.deft-editable"
  fi
  mark extension
  say "compiled in $((SECONDS - started)) s"
}

begun_s=$SECONDS
done_s=0
[ "$with_package" = 1 ] || skip extension
mkdir -p build
exec 9>build/.setup.lock
flock -w 1800 9 || fail "another scripts/setup.sh has held build/.setup.lock for half an hour"
export PATH="$venv/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1
make_venv
if environment_is_there; then unset 'usual_s[torch]' 'usual_s[horovod]' 'usual_s[packages]'; else install_environment; fi
[ "$with_package" = 1 ] || exit 0
if ! { up_to_date extension && editable_is_current && extension_exists; }; then
  install_package
fi
