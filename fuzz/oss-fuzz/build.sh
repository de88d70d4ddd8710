#!/bin/bash -eu
# Builds the fuzz targets in OSS-Fuzz's container, each with its seeds, its dictionary and its options.
cd "$SRC/pmc"
cargo fuzz build -O
for source in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$source" .rs)
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$name" "$OUT/"
    # Several targets share the folder and the dictionary that are named by the first word of their names.
    seeds=fuzz/corpus/$name dictionary=fuzz/dictionaries/$name.dict
    [ -d "$seeds" ] || seeds=fuzz/corpus/${name%%_*}
    [ -f "$dictionary" ] || dictionary=fuzz/dictionaries/${name%%_*}.dict
    (cd "$seeds" && find . -type f | sort | zip -q -@ "$OUT/${name}_seed_corpus.zip")
    if [ -f "$dictionary" ]; then
        cp "$dictionary" "$OUT/$name.dict"
    fi
    # pmc's own messages would fill the logs. capstone's C code has two tables of one name.
    printf '[libfuzzer]\nclose_fd_mask = 1\ntimeout = 20\n[asan]\ndetect_odr_violation = 0\n' >"$OUT/$name.options"
done
