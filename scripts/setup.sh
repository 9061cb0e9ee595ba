#!/usr/bin/env bash
# Makes or updates .venv in the repository root: torch, Horovod, the tools, this package (editable).
# Does nothing, within a second, when all is up to date. --no-package stops before this package.
set -euo pipefail

TORCH="torch==2.13.0"

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
venv="$root/.venv"
python="$venv/bin/python"
with_package=1

case "${1:-}" in
  "") ;;
  --no-package) with_package=0 ;;
  -h | --help) sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "error: unknown option '$1'; expected --no-package or nothing" >&2; exit 2 ;;
esac

say() { echo "setup: $*"; }

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

# Of everything that decides what is in the extension.
extension_state() {
  {
    find csrc -type f -print0 | sort -z | xargs -0 sha256sum
    sha256sum setup.py scripts/horovod/source.py
    ls -d "$venv"/lib/python3*/site-packages/{torch,horovod}-*.dist-info
    cat "$venv"/lib/python3*/site-packages/horovod/_deft_build.py 2>/dev/null || true
    echo "${DEFT_FORCE_CPU:-} ${DEFT_FORCE_CUDA:-} ${CUDA_HOME:-} ${CXX:-}"
  } | sha256sum
}

up_to_date() { [ -f "$venv/.deft-$1" ] && [ "$(cat "$venv/.deft-$1")" = "$("$1"_state)" ]; }

mark() { "$1"_state >"$venv/.deft-$1"; }

requirements() {
  "$python" - <<'PY'
try:
    import tomllib
except ModuleNotFoundError:
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
print(*project["dependencies"], *project["optional-dependencies"]["dev"], sep="\n")
PY
}

install_environment() {
  if ! "$python" -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null; then
    say "installing $TORCH"
    quietly "$python" -m pip install --quiet "$TORCH"
  fi
  scripts/install_horovod.sh --python "$python"
  say "installing the tools and dependencies"
  local packages
  mapfile -t packages < <(requirements)
  [ "${#packages[@]}" -gt 0 ] || fail "pyproject.toml names no dependencies"
  quietly "$python" -m pip install --quiet "${packages[@]}"
  mark environment
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
  if editable_is_current; then
    say "compiling the extension"
    quietly "$python" setup.py --quiet build_ext --inplace
  else
    say "compiling the extension and installing the package"
    quietly "$python" -m pip install --quiet --no-build-isolation --no-deps --editable .
    sha256sum pyproject.toml setup.py >"$venv/.deft-editable"
  fi
  mark extension
  say "compiled in $((SECONDS - started)) s"
}

mkdir -p build
exec 9>build/.setup.lock
flock -w 1800 9 || fail "another scripts/setup.sh has held build/.setup.lock for half an hour"
export PATH="$venv/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1
make_venv
up_to_date environment || install_environment
[ "$with_package" = 1 ] || exit 0
if ! { up_to_date extension && editable_is_current && extension_exists; }; then
  install_package
fi
