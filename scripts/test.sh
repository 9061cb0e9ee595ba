#!/usr/bin/env bash
# Tests; sets up first: scripts/test.sh [all|unit|browser|cpp|parallel|mpi|launchers|conformance|faults|cluster|gpu] [options of pytest].
# Without a suite: some tests of each, for a first look. .ci/run runs all.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
suite=${1:-quick}
[ $# -eq 0 ] || shift
results="$root/build/test-results"
broken=0
cores=$(nproc)

# Without an argument these of the rank suites run, of unit what is not marked slow, and of cpp what is
# built without a sanitizer; browser and gpu run whole.
killed=tests/parallel/failures/test_killed_peer.py::test_the_survivor_gets_an_internal_error_of_horovod
declare -A quick=(
  [parallel]="tests/parallel/runtime/test_links.py tests/parallel/torch/test_functions.py $killed[bucket-backward]"
  [conformance]="tests/conformance/test_joining.py"
  [faults]="tests/faults/test_fatal.py::test_it_comes_to_a_good_end[killed]"
  [cluster]="tests/cluster/test_cluster.py::test_refusals"
)

case "$suite" in
  quick | all | unit | browser | cpp | parallel | mpi | launchers | conformance | faults | cluster | gpu) ;;
  *) sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

say() { echo "test: $*"; }

# A suite that could not even run counts as one failure.
broke() {
  echo "test: FAILED: $*" >&2
  broken=$((broken + 1))
}

# run_pytest FOLDER REPORT OPTIONS...
run_pytest() {
  local folder=$1 report="$results/$2.xml" status=0 targets="tests/$1"
  shift 2
  [ "$suite" != quick ] || targets=${quick[$folder]:-$targets}
  if [ -z "$(find "tests/$folder" -name 'test_*.py' -print -quit 2>/dev/null)" ]; then
    broke "tests/$folder holds no tests"
    return
  fi
  say "$targets $*"
  # shellcheck disable=SC2086  (several words)
  python -m pytest $targets --junitxml="$report" "$@" || status=$?
  # 1: some failed, and the report counts them; 5: none is selected.
  case "$status" in
    0 | 1 | 5) ;;
    *) [ -s "$report" ] || broke "pytest $targets ended with status $status" ;;
  esac
}

# Ranks wait much of their time, so more jobs than cores at a time; but for tests that measure how
# long they do.
run_ranks() {
  local folder=$1
  shift
  run_pytest "$folder" "$folder" -n $((cores + 1)) --dist loadfile -m "not alone" "$@"
  run_pytest "$folder" "$folder-alone" -m alone "$@"
}

run_unit() {
  local but=""
  [ "$suite" != quick ] || but=" and not slow"
  run_pytest unit unit -n "$cores" --dist worksteal -m "not alone$but" "$@"
  run_pytest unit unit-alone -m "alone$but" "$@"
}

# Rank tests under mpirun, beside a Horovod that is built with MPI. Their own reports are counted.
run_mpi() {
  local parallel="tests/parallel"
  if ! command -v mpicxx >/dev/null || ! command -v mpirun >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      say "installing Open MPI"
      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends libopenmpi-dev openmpi-bin; } >build/apt.log 2>&1 || tail -n 5 build/apt.log
    fi
  fi
  if ! command -v mpicxx >/dev/null; then
    say "SKIPPED tests under MPI: apt-get install -y libopenmpi-dev openmpi-bin"
    echo '<testsuite><testcase name="mpi"><skipped/></testcase></testsuite>' >"$results/mpi.xml"
    return
  fi
  say "Horovod and the extension with MPI, in build/mpi"
  if ! python -m scripts.horovod.mpi_tree; then
    broke "there is no Horovod with MPI"
    return
  fi
  (
    cd build/mpi
    export PATH="$PWD/.venv/bin:$PATH"
    pass() { # LAUNCHER FILES...; 1: some failed, and the report counts them
      say "under $1: ${*:2}"
      TEST_LAUNCHER=$1 python -m pytest "${@:2}" -n 2 --dist loadfile \
        --junitxml="$results/mpi-$1.xml" || [ "$?" = 1 ]
    }
    pass mpirun "$parallel/torch/test_functions.py" "$parallel/failures/test_elastic_mpi.py" \
      "$parallel/runtime/test_links.py" &&
      pass mpi "$parallel/runtime/test_formats.py" "$parallel/runtime/test_parity.py"
  ) || broke "the tests under MPI did not run"
}

# Jobs under Slurm, Ray and Spark. Without root to install Slurm or Java their tests are skipped.
run_launchers() {
  local missing=() apt=""
  command -v slurmctld >/dev/null || missing+=(slurm-wlm)
  command -v java >/dev/null || missing+=(default-jre-headless)
  if [ "${#missing[@]}" -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing ${missing[*]}"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends "${missing[@]}"; } >build/apt.log 2>&1 &
    apt=$!
  fi
  say "Ray and Spark, in build/launchers"
  python -m scripts.horovod.ray_and_spark || broke "Ray and Spark cannot be installed"
  [ -z "$apt" ] || wait "$apt" || tail -n 5 build/apt.log
  PATH="$root/build/launchers/.venv/bin:$PATH" PYTHONPATH="$root" \
    run_pytest launchers launchers -n 2 --dist loadfile "$@"
}

have_gtest() { echo '#include <gtest/gtest.h>' | g++ -E -x c++ - >/dev/null 2>&1; }

install_gtest() {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing GoogleTest and CMake"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends libgtest-dev cmake g++ make; } >build/apt.log 2>&1 || tail -n 5 build/apt.log
  fi
}

run_cpp_variant() { # NAME SANITIZER OPTIONS OF CMAKE...
  local name=$1 sanitize=$2 folder="build/cpp${2:+-$2}" generator=()
  shift 2
  if command -v ninja >/dev/null && [ ! -f "$folder/CMakeCache.txt" ]; then
    generator=(-G Ninja)
  fi
  say "tests/cpp${sanitize:+ under the $sanitize sanitizer}"
  if ! { cmake -S . -B "$folder" "${generator[@]}" -DDEFT_SANITIZE="$sanitize" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo "$@" && cmake --build "$folder" -j "$cores"; } \
    >"$results/$name-build.log" 2>&1; then
    tail -n 40 "$results/$name-build.log" >&2
    broke "the C++ tests${sanitize:+ with -DDEFT_SANITIZE=$sanitize} do not build"
    return
  fi
  # Each binary reports its own cases; ctest adds those that crashed or hung before they could.
  GTEST_OUTPUT="xml:$results/$name/" ctest --test-dir "$folder" --output-on-failure \
    -j "$cores" --timeout 300 --output-junit "$results/$name.ctest.xml" >"$results/$name.log" 2>&1 || true
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
  # The sanitizers run the same tests, so one build without them is for a first look only.
  if [ "$suite" = quick ]; then
    run_cpp_variant cpp ""
    return
  fi
  run_cpp_variant cpp-address address
  # One of them with what takes the place of csrc/cuda where there is no nvcc.
  run_cpp_variant cpp-thread thread -DDEFT_CUDA=OFF
}

scripts/setup.sh
# Ranks start by the hundred; where Python keeps no bytecode, each compiles this package again.
unset PYTHONDONTWRITEBYTECODE
rm -rf "$results"
mkdir -p "$results"
export PATH="$root/.venv/bin:$PATH"
wanted() { case "$suite" in quick | all | "$1") ;; *) return 1 ;; esac; }
if wanted unit; then run_unit "$@"; fi
if wanted browser; then run_pytest browser browser "$@"; fi
if wanted cpp; then run_cpp; fi
if [ "$suite" = all ] || [ "$suite" = mpi ]; then run_mpi; fi
if [ "$suite" = all ] || [ "$suite" = launchers ]; then run_launchers "$@"; fi
for ranks in parallel conformance faults; do
  if wanted "$ranks"; then run_ranks "$ranks" "$@"; fi
done
if wanted cluster; then run_pytest cluster cluster "$@"; fi
if wanted gpu; then run_pytest gpu gpu "$@"; fi
python -m scripts.checks.results_summary "$results" "$broken"
