# SPDX-License-Identifier: Apache-2.0
# What the scripts in tools/ share; sourced, never run. The caller has set -eu and root.

# Builds in different folders (release, and the mutants'; a second clone) share what they compile alike. Paths count from the
# build folder, so it is always one of build/.
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$root

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  help: %s\n' "$line" >&2; done
  exit 1
}

# Parallel compile jobs: one a core, at most one for each 2 GiB of memory.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  [ "${memory:-1}" -ge 1 ] || memory=1
  [ "$cores" -le "$memory" ] && echo "$cores" || echo "$memory"
}

# build PRESET [TARGET...]: configures when needed, then builds. Output goes to build/PRESET.log, whose
# end is shown when something fails.
build() {
  local preset=$1 log="$root/build/$1.log" start=$SECONDS
  shift
  mkdir -p "$root/build"
  : >"$log"
  (cd "$root" && cmake --preset "$preset") >>"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; fail "cmake --preset $preset failed (whole log: build/$preset.log)"; }
  local targets=()
  [ $# -gt 0 ] && targets=(--target "$@")
  say "building preset $preset (log: build/$preset.log)"
  if cmake --build "$root/build/$preset" -j "$(jobs)" "${targets[@]}" 2>&1 | tee -a "$log" | status_lines; then
    say "built preset $preset in $((SECONDS - start)) s"
    return 0
  fi
  grep -E -A12 'error:|FAILED:' "$log" | tail -n 60 >&2 || tail -n 40 "$log" >&2
  fail "building preset $preset failed (whole log: build/$preset.log)"
}

# Shows ninja's "[done/all] what" as one changing line on a terminal, else as a line every 15 seconds.
status_lines() {
  local line last=0 shown=0
  while IFS= read -r line; do
    [[ $line =~ ^\[[0-9]+/[0-9]+\] ]] || continue
    if [ -t 1 ]; then
      printf '\r\033[K%.100s' "$line"
      shown=1
    elif [ $((SECONDS - last)) -ge 15 ]; then
      printf '%.100s\n' "$line"
      last=$SECONDS
    fi
  done
  [ "$shown" = 0 ] || printf '\r\033[K'
}

# patiently WHAT COMMAND...: runs it, and says every 15 seconds that it still does.
patiently() {
  local what=$1 status=0 watcher start=$SECONDS
  shift
  ( while sleep 15 >/dev/null 2>&1; do say "$what: $((SECONDS - start)) s so far"; done ) &
  watcher=$!
  "$@" || status=$?
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  return "$status"
}

# run_ctest PRESET [CTEST OPTIONS]: shows what failed and ends with "ctest: N passed, N failed, N skipped". `wrap`
# may hold a command to run it under. The lines of single tests are counted, since the summary's words change with
# ctest's version.
wrap=()
run_ctest() {
  local preset=$1 out="$root/build/logs/ctest-$1.txt" status=0 ran good skip
  shift
  mkdir -p "$root/build/logs"
  (cd "$root/build/$preset" && "${wrap[@]}" ctest -j "$(jobs)" --output-on-failure --no-tests=error "$@") >"$out" 2>&1 || status=$?
  [ "$status" = 0 ] || grep -vE '^ *Start +[0-9]+:| Passed +[0-9.]+ sec$' "$out" | tail -n 80
  ran=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+:' "$out") || true
  good=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+:.* Passed +[0-9.]+ sec' "$out") || true
  skip=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+:.*\*\*\*Skipped' "$out") || true
  ctest_passed=$good ctest_failed=$((ran - good - skip)) ctest_skipped=$skip
  [ "$status" = 0 ] || [ "$ctest_failed" -gt 0 ] || ctest_failed=1
  say "ctest: $ctest_passed passed, $ctest_failed failed, $ctest_skipped skipped"
  return "$status"
}

python() { "$root/.venv/bin/python" "$@"; }
