#!/bin/bash -eu
# Copyright 2026 The authors of pmc
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
#
################################################################################

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
# Files that targets read. OSS-Fuzz runs them without the source folder.
mkdir "$OUT/source"
cp -r --parents tests/data/sysfs tests/data/host/two-sockets fuzz/corpus/recording "$OUT/source"
