#!/usr/bin/env python3
"""Makes the data of configs/examples/pronounce.gin from the CMU pronouncing dictionary.

    tools/pronounce_data.py cmudict.dict OUTPUT_DIR

Writes train.tsv, validation.tsv and test.tsv: a word and its phonemes without stress marks, a tab between. Words of
letters only, the first pronunciation of each. A word's split is drawn from its SHA-256, so it never changes: one in
fifty for validation, one in fifty for test.
"""

import hashlib
import os
import pathlib
import re
import sys

LINE = re.compile(r"^([a-z]{2,24}) ([A-Z0-2 ]+?)\s*(#.*)?$")


def split_of(word):
    draw = int(hashlib.sha256(word.encode()).hexdigest()[:8], 16) % 50
    return {0: "validation", 1: "test"}.get(draw, "train")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if not source.is_file():
        sys.exit(f"error: '{source}' is missing; ./run setup fetches it")
    rows = {"train": [], "validation": [], "test": []}
    for line in source.read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        if match:
            word, phonemes = match.group(1), re.sub(r"[0-2]", "", match.group(2))
            rows[split_of(word)].append(f"{word}\t{phonemes}\n")
    target.mkdir(parents=True, exist_ok=True)
    for split, lines in rows.items():
        temporary = target / f"{split}.tsv.tmp"
        temporary.write_text("".join(lines), encoding="utf-8")
        os.replace(temporary, target / f"{split}.tsv")
        print(f"{target / (split + '.tsv')}: {len(lines):,} words")


if __name__ == "__main__":
    main()
