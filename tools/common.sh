# SPDX-License-Identifier: Apache-2.0
# What the scripts in tools/ share; sourced, never run. The caller has set -eu and root.

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
  local preset=$1 log="$root/build/$1.log"
  shift
  mkdir -p "$root/build"
  : >"$log"
  (cd "$root" && cmake --preset "$preset") >>"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; fail "cmake --preset $preset failed (whole log: build/$preset.log)"; }
  local targets=()
  [ $# -gt 0 ] && targets=(--target "$@")
  if [ -t 1 ]; then
    cmake --build "$root/build/$preset" -j "$(jobs)" "${targets[@]}" 2>&1 | tee -a "$log" |
      stdbuf -o0 grep -E '^\[[0-9]+/[0-9]+\]' | stdbuf -o0 tr '\n' '\r' | cut -c1-100
    [ "${PIPESTATUS[0]}" -eq 0 ] || { tail -n 40 "$log" >&2; fail "building preset $preset failed (whole log: build/$preset.log)"; }
  else
    cmake --build "$root/build/$preset" -j "$(jobs)" "${targets[@]}" >>"$log" 2>&1 ||
      { grep -E -A12 'error:|FAILED:' "$log" | tail -n 60 >&2; fail "building preset $preset failed (whole log: build/$preset.log)"; }
  fi
}

python() { "$root/.venv/bin/python" "$@"; }
