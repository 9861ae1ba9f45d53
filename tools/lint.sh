#!/usr/bin/env bash
# One lint for people and CI: clang-format 14, the include rules, shellcheck where it is installed, clang-tidy 14.
#
#   tools/lint.sh            format and includes: seconds
#   tools/lint.sh --fix      the same, but formats instead of complaining
#   tools/lint.sh --changed  and clang-tidy over the sources changed since the merge base with main, within a time limit;
#                            where nothing changed (a fresh clone of main), over the sources of the last commit
#   tools/lint.sh --tidy     and clang-tidy over everything: many minutes
#   tools/lint.sh FILE.cc... clang-tidy over these
#
# clang-tidy reads the compile commands of build/dev.
set -euo pipefail
cd "$(dirname "$0")/.."

JOBS=${T5X_JOBS:-$(nproc)}
TIDY_SECONDS=${T5X_TIDY_SECONDS:-150}  # what --changed may take
TIDY_FILES=24                          # and how many files, the rest is named

failed=0
complain() {
  printf 'lint: %s\n' "$*" >&2
  failed=1
}

need() {
  command -v "$1" >/dev/null || {
    printf 'lint: error: %s is not installed; run ./run setup\n' "$1" >&2
    exit 1
  }
}

# list_code FOLDER...: its sources, ended by zeros; folders that this tree does not have are left out.
list_code() {
  local folder
  for folder in "$@"; do
    if [[ -d $folder ]]; then find "$folder" \( -name '*.cc' -o -name '*.h' \) -print0; fi
  done
}

check_format() {
  need clang-format-14
  if [[ $fix == 1 ]]; then
    list_code src tests bench fuzz | xargs -0r clang-format-14 -i
    return
  fi
  # One line a file says enough: the cure is the same for all.
  local unformatted
  unformatted=$(list_code src tests bench fuzz | xargs -0r clang-format-14 --dry-run 2>&1 | sed -n 's/:[0-9]*:[0-9]*: warning: .*//p' | sort | uniq -c)
  if [[ -n $unformatted ]]; then
    printf '%s\n' "$unformatted"
    complain "the files above differ from .clang-format (places, file); run ./run lint --fix"
  fi
}

check_shell() {
  if ! command -v shellcheck >/dev/null; then
    echo "lint: shellcheck is not installed, scripts not checked"
  elif ! shellcheck run .ci/run tools/*.sh; then
    complain "shellcheck found something in the scripts above"
  fi
}

# Where this branch left main; the commit before, when it has not left it.
merge_base() {
  local main base
  for main in origin/HEAD origin/main main; do
    base=$(git merge-base HEAD "$main" 2>/dev/null) || continue
    if [[ $base != $(git rev-parse HEAD) ]]; then
      echo "$base"
      return
    fi
  done
  git rev-parse --verify --quiet 'HEAD~1' || true
}

changed_sources() {
  local base
  base=$(merge_base)
  [[ -n $base ]] || return 0
  { git diff --name-only --diff-filter=d "$base" -- '*.cc'; git ls-files --others --exclude-standard -- '*.cc'; } | sort -u
}

tidy() {  # SECONDS FILE...
  local limit=$1 status=0 log=build/tidy.log
  shift
  need clang-tidy-14
  [[ -f build/dev/compile_commands.json ]] || {
    complain "clang-tidy needs build/dev/compile_commands.json; run ./run build dev"
    return
  }
  # Fuzz targets and sources that this build does not compile have no command to check them by.
  local file known=()
  for file in "$@"; do
    if grep -qF "\"file\": \"$PWD/$file\"" build/dev/compile_commands.json; then known+=("$file"); fi
  done
  ((${#known[@]})) || return 0
  echo "lint: clang-tidy over ${#known[@]} files"
  printf '%s\0' "${known[@]}" |
    timeout "$limit" xargs -0 -n 1 -P "$JOBS" clang-tidy-14 -p build/dev --quiet 2>/dev/null | tee "$log" ||
    status=$?
  if ((status == 124)); then echo "lint: clang-tidy stopped after $limit s; ./run lint --tidy checks everything"; fi
  if ((status != 0 && status != 124)) || grep -q ' error: ' "$log"; then
    complain "clang-tidy found something; fix it, or write NOLINT(check-name) with the reason"
  fi
}

fix=0
mode=fast
files=()
for argument in "$@"; do
  case $argument in
    --fix) fix=1 ;;
    --tidy) mode=all ;;
    --changed) mode=changed ;;
    -*)
      echo "lint: error: unknown flag $argument; known are --fix, --changed, --tidy" >&2
      exit 2
      ;;
    *) files+=("$argument") ;;
  esac
done

if ((${#files[@]})); then
  tidy 3600 "${files[@]}"
  exit "$failed"
fi

check_format
python3 tools/check_includes.py --self-test || complain "tools/check_includes.py does not find what it should"
python3 tools/check_includes.py || complain "the rules above are explained in docs/architecture.md and CONTRIBUTING.md"
check_shell
case $mode in
  all)
    mapfile -t files < <(list_code src tests bench | tr '\0' '\n' | grep '\.cc$' | sort)
    tidy 7200 "${files[@]}"
    ;;
  changed)
    mapfile -t files < <(changed_sources)
    if ((${#files[@]} > TIDY_FILES)); then
      echo "lint: ${#files[@]} sources changed, clang-tidy takes $TIDY_FILES of them, evenly spaced"
      mapfile -t files < <(printf '%s\n' "${files[@]}" | awk -v n="${#files[@]}" -v k="$TIDY_FILES" 'int(NR * k / n) > int((NR - 1) * k / n)')
    fi
    tidy "$TIDY_SECONDS" "${files[@]}"
    ;;
esac
if ((failed == 0)); then echo "lint: ok"; fi
exit "$failed"
