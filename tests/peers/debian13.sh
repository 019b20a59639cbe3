#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and tests this tree in a Debian 13 chroot that has no PyPI. Needs root; reached by `tools/check debian13`.
#   --short   builds the command line only and runs the models that are made already
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/tools/common.sh"

short=0
[ "${1:-}" != --short ] || short=1
[ "$(id -u)" = 0 ] || fail "debootstrap and chroot need root" "run tools/check debian13 as root"

chroot_dir="$root/build/debian13"
log="$root/build/logs/debian13.log"
mkdir -p "$root/build/logs"
: >"$log"
if ! command -v debootstrap >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends debootstrap >>"$log" 2>&1 ||
    fail "debootstrap could not be installed (log: build/logs/debian13.log)" "apt-get update, then again"
fi
if [ ! -f "$chroot_dir/.complete" ]; then
  say "debian13: making a chroot in build/debian13"
  rm -rf "$chroot_dir"
  debootstrap --variant=minbase trixie "$chroot_dir" >>"$log" 2>&1 || { tail -n 5 "$log" >&2; fail "debootstrap failed (log: build/logs/debian13.log)"; }
  touch "$chroot_dir/.complete"
fi
cp /etc/resolv.conf "$chroot_dir/etc/resolv.conf"

# The models are made outside and only read inside, at the same path.
mounted=()
unmount() { for place in "${mounted[@]}"; do umount "$place" || true; done; }
trap unmount EXIT
mount -t proc proc "$chroot_dir/proc" && mounted+=("$chroot_dir/proc")
if [ -d "$root/build/models" ]; then
  mkdir -p "$chroot_dir$root/build/models"
  mount --bind "$root/build/models" "$chroot_dir$root/build/models" && mounted=("$chroot_dir$root/build/models" "${mounted[@]}")
fi

# The working tree as git sees it: tracked files and new ones that are not ignored. Its build folder is kept.
mkdir -p "$chroot_dir/millstream"
find "$chroot_dir/millstream" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
(cd "$root" && git ls-files -z --cached --others --exclude-standard | xargs -0 -r sh -c 'for f; do [ -e "$f" ] && printf "%s\0" "$f"; done' sh |
  tar --null -T - -cf -) | tar -xf - -C "$chroot_dir/millstream"

inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PIP_NO_INDEX=1 chroot "$chroot_dir" bash -c "cd /millstream && $1"
}
passed=0 failed=0
check_part() {  # NAME COMMAND
  local status=0
  inside "$2" >>"$log" 2>&1 || status=$?
  if [ "$status" = 0 ]; then passed=$((passed + 1)); say "debian13: $1: ok"; else
    failed=$((failed + 1))
    say "debian13: $1: FAILED (log: build/logs/debian13.log)"
    tail -n 25 "$log"
  fi
  return "$status"
}
finish() { say "debian13: $passed passed, $failed failed"; [ "$failed" = 0 ] || exit 1; exit 0; }

check_part "set up without PyPI" "tools/setup --no-python" || finish
check_part "configure" "cmake --preset release" || finish
target=
[ "$short" = 0 ] || target="--target millstream"
check_part "build with $(inside 'g++ -dumpfullversion')" "cmake --build build/release -j $(jobs) $target" || finish
if [ "$short" = 0 ]; then
  check_part "ctest" "ctest --test-dir build/release -j $(jobs) --timeout 300 --output-on-failure --no-tests=error" || true
fi
check_part "a generated graph" "build/release/tools/millstream/millstream gen randwire -o /tmp/g.mst && build/release/tools/millstream/millstream run /tmp/g.mst --streams 4 --force-streams --compare single --repeat 3" || true
if [ -f "$root/build/models/index.json" ]; then
  while IFS= read -r line; do
    check_part "${line%%|*}" "build/release/tools/millstream/millstream run ${line#*|} --streams 4 --force-streams --compare single --repeat 2" || true
  done < <("$root/.venv/bin/python" - "$root/tests/peers" <<'PY'
import shlex, sys
sys.path.insert(0, sys.argv[1])
from command import arguments_of, index
for entry in index():
    if entry["reweighted"] and entry["name"] not in ("light_vgg19_rw", "light_bvlc_alexnet_rw", "light_zfnet512_rw"):
        print(entry["name"] + "|" + " ".join(shlex.quote(str(w)) for w in arguments_of(entry)))
PY
  )
fi
finish
