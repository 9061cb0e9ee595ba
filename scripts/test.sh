#!/usr/bin/env bash
# All tests: scripts/test.sh [unit|browser|cpp|parallel|cluster|gpu|all] [options of pytest]. Sets up first.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
suite=${1:-all}
[ $# -eq 0 ] || shift
results="$root/build/test-results"
broken=0

case "$suite" in
  unit | browser | cpp | parallel | cluster | gpu | all) ;;
  *) sed -n '2s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

say() { echo "test: $*"; }

# A suite that could not even run counts as one failure.
broke() {
  echo "test: FAILED: $*" >&2
  broken=$((broken + 1))
}

run_pytest() {
  local name=$1 status=0
  shift
  if [ -z "$(find "tests/$name" -name 'test_*.py' -print -quit 2>/dev/null)" ]; then
    broke "tests/$name holds no tests"
    return
  fi
  say "tests/$name"
  python -m pytest "tests/$name" --junitxml="$results/$name.xml" "$@" || status=$?
  # 1: some failed, and the report counts them; 5: -k selected none.
  case "$status" in
    0 | 1 | 5) ;;
    *) [ -s "$results/$name.xml" ] || broke "pytest tests/$name ended with status $status" ;;
  esac
}

have_gtest() { echo '#include <gtest/gtest.h>' | g++ -E -x c++ - >/dev/null 2>&1; }

install_gtest() {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing GoogleTest and CMake"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends libgtest-dev cmake g++ make; } >build/apt.log 2>&1 || tail -n 5 build/apt.log
  fi
}

run_cpp_variant() {
  local name=$1 sanitize=$2 folder="build/cpp${2:+-$2}" generator=()
  if command -v ninja >/dev/null && [ ! -f "$folder/CMakeCache.txt" ]; then
    generator=(-G Ninja)
  fi
  say "tests/cpp${sanitize:+ under the $sanitize sanitizer}"
  if ! { cmake -S . -B "$folder" "${generator[@]}" -DDEFT_SANITIZE="$sanitize" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo && cmake --build "$folder" -j "$(nproc)"; } \
    >"$results/$name-build.log" 2>&1; then
    tail -n 40 "$results/$name-build.log" >&2
    broke "the C++ tests${sanitize:+ with -DDEFT_SANITIZE=$sanitize} do not build"
    return
  fi
  # Each binary reports its own cases; ctest adds those that crashed or hung before they could.
  GTEST_OUTPUT="xml:$results/$name/" ctest --test-dir "$folder" --output-on-failure \
    --timeout 300 --output-junit "$results/$name.ctest.xml" >"$results/$name.log" 2>&1 || true
  if ! grep -q '<testcase' "$results/$name.ctest.xml" 2>/dev/null; then
    tail -n 20 "$results/$name.log" >&2
    broke "ctest ran no test in $folder"
    return
  fi
  grep '% tests passed' "$results/$name.log" || true
  if grep -q '<failure' "$results/$name.ctest.xml"; then cat "$results/$name.log" >&2; fi
}

run_cpp() {
  if [ ! -f CMakeLists.txt ]; then
    broke "CMakeLists.txt is missing; it builds the C++ tests"
    return
  fi
  command -v cmake >/dev/null && have_gtest || install_gtest
  if ! { command -v cmake >/dev/null && have_gtest; }; then
    say "SKIPPED tests/cpp: GoogleTest or CMake is missing: apt-get install -y libgtest-dev cmake g++"
    echo '<testsuite><testcase name="cpp"><skipped/></testcase></testsuite>' >"$results/cpp.xml"
    return
  fi
  run_cpp_variant cpp ""
  run_cpp_variant cpp-address address
  run_cpp_variant cpp-thread thread
}

scripts/setup.sh
rm -rf "$results"
mkdir -p "$results"
export PATH="$root/.venv/bin:$PATH"
case "$suite" in unit | all) run_pytest unit "$@" ;; esac
case "$suite" in browser | all) run_pytest browser "$@" ;; esac
case "$suite" in cpp | all) run_cpp ;; esac
case "$suite" in parallel | all) run_pytest parallel "$@" ;; esac
case "$suite" in cluster | all) run_pytest cluster "$@" ;; esac
case "$suite" in gpu | all) run_pytest gpu "$@" ;; esac
scripts/results_summary.py "$results" "$broken"
