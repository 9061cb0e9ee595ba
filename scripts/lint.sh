#!/usr/bin/env bash
# Every check that needs no test run: scripts/lint.sh [py|cpp] [--fix]. --fix formats what it can.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
part=all
fix=0
for argument in "$@"; do
  case "$argument" in
    py | cpp) part=$argument ;;
    --fix) fix=1 ;;
    *) sed -n '2s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
done

failed=()

# check NAME COMMAND...: silent but for one line when it passes.
check() {
  local name=$1 started=$SECONDS output
  shift
  if output=$("$@" 2>&1); then
    echo "lint: $name ok ($((SECONDS - started)) s)"
  else
    echo "$output"
    echo "lint: $name FAILED ($((SECONDS - started)) s)"
    failed+=("$name")
  fi
}

python_paths() { for path in deft_horovod tests scripts docs/examples setup.py; do [ ! -e "$path" ] || echo "$path"; done; }

cpp_paths() { find csrc tests/cpp -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh'; }

bash_syntax() {
  local status=0
  for script in scripts/*.sh .ci/run; do bash -n "$script" || status=1; done
  return "$status"
}

lint_python() {
  local paths
  mapfile -t paths < <(python_paths)
  if [ "$fix" = 1 ]; then
    ruff format --quiet "${paths[@]}"
    ruff check --quiet --fix "${paths[@]}" || true
  fi
  check "ruff" ruff check --quiet "${paths[@]}"
  check "ruff format" ruff format --quiet --diff "${paths[@]}"
  check "mypy" mypy --strict -p deft_horovod -p scripts
  check "import-linter" lint-imports
  check "codespell" codespell deft_horovod csrc tests scripts docs .ci setup.py pyproject.toml ./*.md
  check "bash -n" bash_syntax
  check "hadolint" hadolint Dockerfile Dockerfile.cuda
  check "rules" python -m scripts.checks.rules
}

# One stamp per file under build/clang-tidy: nothing it depends on has changed since it passed.
tidy_unless_passed() {
  local source=$1 key=$2 output
  shift 2
  [ ! -e "build/clang-tidy/$key" ] || return 0
  if output=$(clang-tidy --quiet --warnings-as-errors='*' "$source" "$@" 2>&1); then
    : >"build/clang-tidy/$key"
  else
    echo "$output" | grep -vE '^[0-9]+ warnings?( treated|.*generated)' || true
    return 1
  fi
}

# Of what the file depends on.
tidy_key() {
  local source=$1 used
  mapfile -t used < <(awk -v object="/${source%.cpp}.o:" '
    /^[^ ]/ { wanted = index($1, object) > 0 }
    wanted && /\/csrc\/.*\.(h|cpp)$/ { print $1 }' build/clang-tidy/deps | sort -u)
  cat "$source" "${used[@]}" build/clang-tidy/state | sha256sum | cut -c1-40
}

tidy_one() { tidy_unless_passed "$1" "$(tidy_key "$1")" "${@:2}" -p build/clang-tidy; }

# A room that uses torch, which setup.py compiles as one file.
tidy_room() {
  tidy_one "$1" --header-filter='csrc/.*' --checks=-bugprone-suspicious-include
}

# What runs on the host, of sources that nvcc compiles. clang asks for a header of cuRAND, which
# nothing here uses.
tidy_cuda_one() {
  local source=$1 toolkit=$2 key
  key=$(find csrc/cuda csrc/wire -name '*.h' -o -name '*.cuh' | sort |
    xargs cat "$source" build/clang-tidy/state | sha256sum | cut -c1-40)
  tidy_unless_passed "$source" "$key" -- -x cuda --cuda-host-only "--cuda-path=$toolkit" \
    -isystem build/clang-tidy/cuda -std=c++17 -Icsrc -Wno-unknown-cuda-version
}

tidy_cuda() {
  local toolkit
  toolkit=$("$(nvcc_path)" --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#[$] TOP=//p')
  mkdir -p build/clang-tidy/cuda
  : >build/clang-tidy/cuda/curand_mtgp32_kernel.h
  export -f tidy_unless_passed tidy_cuda_one
  find csrc/cuda -name '*.cu' -print0 | sort -z |
    xargs -0 -P "$(nproc)" -I{} bash -c "tidy_cuda_one {} '$toolkit'"
}

# The flags and the headers of each file are those of the real build: ninja knows them.
tidy() {
  local build
  build=$(find build/extension -name build.ninja -printf '%T@ %h\n' 2>/dev/null | sort -n | tail -n 1)
  build=${build#* }
  if [ -z "$build" ]; then
    echo "build/extension holds no build.ninja; run scripts/setup.sh (with ninja) first"
    return 1
  fi
  mkdir -p build/clang-tidy
  ninja -C "$build" -t deps 2>/dev/null >build/clang-tidy/deps
  ninja -C "$build" -t compdb 2>/dev/null >build/clang-tidy/compile_commands.json
  { cat .clang-tidy build/clang-tidy/compile_commands.json && clang-tidy --version; } |
    sha256sum >build/clang-tidy/state
  export -f tidy_unless_passed tidy_key tidy_one tidy_room
  {
    printf 'tidy_room %s\n' "$build"/{torch,bindings}.cpp
    find csrc/core csrc/wire csrc/horovod -name '*.cpp' | sort | sed 's/^/tidy_one /'
  } | xargs -P "$(nproc)" -I{} bash -c '{}'
}

nvcc_path() {
  local there=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
  command -v nvcc || { [ ! -x "$there" ] || echo "$there"; }
}

lint_cpp() {
  local paths
  mapfile -t paths < <(cpp_paths)
  [ "$fix" = 0 ] || clang-format -i "${paths[@]}"
  check "clang-format" clang-format --dry-run -Werror "${paths[@]}"
  check "clang-tidy" tidy
  if [ -n "$(nvcc_path)" ]; then
    check "clang-tidy cuda" tidy_cuda
    check "cubins" python -m scripts.checks.cubins
  else
    echo "lint: clang-tidy cuda, cubins SKIPPED: there is no nvcc"
  fi
}

scripts/setup.sh
export PATH="$root/.venv/bin:$PATH"
[ "$part" = cpp ] || lint_python
[ "$part" = py ] || lint_cpp
if [ "${#failed[@]}" -gt 0 ]; then
  echo "lint: FAILED: ${failed[*]}"
  exit 1
fi
echo "lint: all ok"
