#!/usr/bin/env python3
"""Holds the tree to its layers and to the few rules that no compiler checks.

    tools/check_includes.py [ROOT]       check; prints file:line: message, exits 1 on errors
    tools/check_includes.py --self-test  check the checker on a small tree of violations

The table below is the one place where the layers are written down for machines; docs/architecture.md explains it.
"""

import pathlib
import re
import sys
import tempfile
from typing import NamedTuple

# Folder of src/, from the bottom up -> the folders it names. What those may include, it may include too.
LAYERS = {
    "base": [],
    "gin": ["base"],
    "core": ["base"],
    "graph": ["core"],
    "ops": ["graph"],
    "pjrt": ["core"],
    "partition": ["graph"],
    "runtime": ["graph", "pjrt", "partition"],
    "nn": ["ops", "partition"],
    "optim": ["ops", "nn"],
    "models": ["nn"],
    "decode": ["models"],
    "seqio": ["core"],
    "checkpoint": ["core"],
    "train": ["gin", "runtime", "optim", "decode", "seqio", "checkpoint"],
    "apps": ["train", "gin"],
}
# Libraries that only their own folder may see.
PRIVATE_HEADERS = {"xla/pjrt/c/pjrt_c_api.h": "pjrt"}

CODE_FOLDERS = ("src", "tests", "bench", "fuzz")
WARN_LINES, MAX_LINES = 300, 600

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
TEST_FILE = re.compile(r"(_test\.cc|_test\.h|test_util\.h|testing\.h)$")
# A path that exists on one machine only, in quotes or bare.
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|farm|home|root|Users)/\w")
USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\s+(?!std::(?:\w+::)*\w*literals\b)")


class Finding(NamedTuple):
    path: str
    line: int
    message: str
    error: bool = True


def closure(folder):
    """The folders that `folder` may include: itself, those it names, and theirs."""
    seen, todo = set(), [folder]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += LAYERS[name]
    return seen


def allowed_folders(folder, is_test):
    """A test may run what its folder traces: besides its layer's own, it sees runtime and every folder above its own."""
    allowed = closure(folder)
    if is_test:
        allowed |= closure("runtime")
        for name in LAYERS:
            if name == folder:
                break
            allowed |= closure(name)
    return allowed


def check_include(folder, is_test, target, quoted, path, number):
    owner = PRIVATE_HEADERS.get(target)
    if owner and owner != folder:
        yield Finding(path, number, f"<{target}> may be included by src/{owner}/ only; use what {owner}/ offers")
    layer = target.split("/")[0] if "/" in target else None
    if quoted and layer is None and folder:
        yield Finding(path, number, f'"{target}": project headers are included as "folder/file.h"')
    if not folder or layer not in LAYERS:
        return
    if not quoted:
        yield Finding(path, number, f'<{target}>: project headers are included in quotes, as "{target}"')
    allowed = allowed_folders(folder, is_test)
    if layer not in allowed:
        names = ", ".join(name for name in LAYERS if name in allowed)
        yield Finding(path, number, f'{folder}/ may not include "{target}"; it may include {names} (docs/architecture.md)')


def check_own_header_first(root, file, includes):
    header = file.with_suffix(".h")
    if file.suffix != ".cc" or not header.exists():
        return
    own = header.relative_to(root / "src").as_posix()
    if not includes or includes[0][1] != own:
        line = includes[0][0] if includes else 1
        yield Finding(file.relative_to(root).as_posix(), line, f'the first include must be the own header, "{own}"')


def check_file(root, file):
    path = file.relative_to(root).as_posix()
    lines = file.read_text(encoding="utf-8").splitlines()
    parts = file.relative_to(root).parts
    folder = parts[1] if parts[0] == "src" and len(parts) > 2 else None
    if folder and folder not in LAYERS:
        yield Finding(path, 1, f"src/{folder}/ is not a layer; add it to the table in tools/check_includes.py")
        return

    if len(lines) > MAX_LINES:
        yield Finding(path, len(lines), f"{len(lines)} lines, at most {MAX_LINES} are allowed; split the file by its parts")
    elif len(lines) > WARN_LINES:
        yield Finding(path, len(lines), f"{len(lines)} lines, aim for at most {WARN_LINES}", error=False)
    if file.suffix == ".h" and not any(line.strip() == "#pragma once" for line in lines):
        yield Finding(path, 1, "a header needs `#pragma once`")

    includes = []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            target = match.group(1) or match.group(2)
            includes.append((number, target))
            is_test = bool(TEST_FILE.search(file.name))
            yield from check_include(folder, is_test, target, match.group(1) is not None, path, number)
        if USING_NAMESPACE.match(line):
            yield Finding(path, number, "no `using namespace`; name what is used, or alias the namespace")
    if folder:
        yield from check_own_header_first(root, file, includes)


def check_machine_paths(root, file):
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(lines, 1):
        match = MACHINE_PATH.search(line)
        if match:
            path = file.relative_to(root).as_posix()
            yield Finding(path, number, f"an absolute path of one machine ({match.group().strip()}...); use a relative one")


def check_tree(root):
    files = [f for folder in CODE_FOLDERS for f in sorted((root / folder).rglob("*")) if f.suffix in (".h", ".cc")]
    for file in files:
        yield from check_file(root, file)
    texts = [f for pattern in ("run", "*.md", "*.txt", "*.json", ".ci/run") for f in sorted(root.glob(pattern))]
    for folder in ("cmake", "configs", "docs", "tools"):
        texts += [f for f in sorted((root / folder).rglob("*")) if f.is_file() and "__pycache__" not in f.parts]
    cmake_lists = [f for folder in CODE_FOLDERS for f in sorted((root / folder).rglob("CMakeLists.txt"))]
    for file in files + texts + cmake_lists:
        if file.resolve() != pathlib.Path(__file__).resolve():
            yield from check_machine_paths(root, file)


def self_test():
    """Each entry: a file, its text, and what must be said of it (nothing, when empty)."""
    good = "#pragma once\n"
    cases = [
        ("src/core/shape.h", good + '#include "base/error.h"\n', ""),
        ("src/core/shape.cc", '#include "core/shape.h"\n#include <vector>\n', ""),
        ("src/core/up.h", good + '#include "ops/ops.h"\n', "core/ may not include"),
        ("src/seqio/traced.h", good + '#include "graph/tensor.h"\n', "seqio/ may not include"),
        ("src/models/t5.h", good + '#include "graph/tensor.h"\n#include "base/error.h"\n', ""),
        ("src/ops/ops_test.cc", '#include "runtime/jit.h"\n', ""),
        ("src/ops/add.cc", '#include "runtime/jit.h"\n', "ops/ may not include"),
        ("src/core/late_test.cc", '#include "train/trainer.h"\n', "core/ may not include"),
        ("src/train/trainer.cc", '#include "xla/pjrt/c/pjrt_c_api.h"\n', "src/pjrt/ only"),
        ("src/core/near.cc", '#include "shape.h"\n', "folder/file.h"),
        ("src/core/angle.cc", "#include <base/error.h>\n", "in quotes"),
        ("src/core/bare.h", "int f();\n", "#pragma once"),
        ("src/core/late.h", good, ""),
        ("src/core/late.cc", '#include <vector>\n#include "core/late.h"\n', "own header"),
        ("src/core/wide.cc", "using namespace std;\n", "using namespace"),
        ("src/core/literals.cc", "using namespace std::chrono_literals;\n", ""),
        ("src/core/long.cc", "\n" * (MAX_LINES + 1), "split the file"),
        ("src/core/medium.cc", "\n" * (WARN_LINES + 1), "aim for"),
        ("src/core/path.cc", 'auto p = "/ho' + 'me/me/data";\n', "one machine"),
        ("src/core/relative.cc", '// see base/home/me and https://example.org/home/me\n', ""),
        ("src/extra/new.h", good, "not a layer"),
        ("tests/all_test.cc", '#include "train/trainer.h"\n', ""),
        ("docs/page.md", "cd /wo" + "rk/main\n", "one machine"),
    ]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text, _ in cases:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        found = list(check_tree(root))
        for name, _, expected in cases:
            messages = [f.message for f in found if f.path == name]
            if expected and not any(expected in message for message in messages):
                failures.append(f"{name}: expected a finding with {expected!r}, found {messages}")
            if len(messages) > (1 if expected else 0):
                failures.append(f"{name}: too many findings: {messages}")
    for failure in failures:
        print(failure)
    print(f"check_includes self-test: {len(cases)} cases, {len(failures)} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    findings = list(check_tree(root))
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {'error' if finding.error else 'warning'}: {finding.message}")
    errors = sum(f.error for f in findings)
    print(f"check_includes: {errors} errors, {len(findings) - errors} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
