#!/bin/bash
# pyinstrument 5.1.3 (PyPI): functions that take all of the time are missing in the speedscope file if they take turns.
#
# All renderers remove frames with less than 1 % of the time. The others add up the calls of a function first. The
# speedscope renderer keeps each visit apart, because its format has a time axis, and then applies the same limit to
# each visit. Here, `main` calls `load` and `store` in turn, 150 times each, for 3 ms. JSON says that each takes half of
# the time. The speedscope file contains neither of them: the time is `main`'s own. Nothing in the file says that
# something was left out.
#
# Seen:
#   json: load 50 %, store 50 %
#   speedscope: load 0 %, store 0 %, main itself 100 %
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyinstrument==5.1.3
cat >"$folder/report.py" <<'PYTHON'
import json
import time

from pyinstrument import Profiler
from pyinstrument.renderers import JSONRenderer, SpeedscopeRenderer


def load():
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end:
        pass


def store():
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end:
        pass


def main():
    for _ in range(150):
        load()
        store()


profiler = Profiler(interval=0.0005)
profiler.start()
main()
profiler.stop()


def time_in(frame, function):
    if frame["function"] == function:
        return frame["time"]
    return sum(time_in(child, function) for child in frame["children"])


session = json.loads(profiler.output(JSONRenderer()))
root = session["root_frame"]
load, store = (time_in(root, name) / time_in(root, "main") * 100 for name in ("load", "store"))
print(f"json: load {load:.0f} %, store {store:.0f} %")

document = json.loads(profiler.output(SpeedscopeRenderer()))
names = [frame["name"] for frame in document["shared"]["frames"]]
[profile] = document["profiles"]
own, stack, last = {"load": 0, "store": 0, "main": 0}, [], 0
for event in profile["events"]:
    # A frame `[self]` is the own time of its caller.
    functions = [name for name in stack if name != "[self]"]
    if functions:
        own[functions[-1]] = own.get(functions[-1], 0) + event["at"] - last
    last = event["at"]
    stack.append(names[event["frame"]]) if event["type"] == "O" else stack.pop()
load, store, main = (own[name] / sum(own.values()) * 100 for name in ("load", "store", "main"))
print(f"speedscope: load {load:.0f} %, store {store:.0f} %, main itself {main:.0f} %")
PYTHON
output=$("$folder/venv/bin/python" "$folder/report.py")
echo "$output"
grep -qxE 'json: load [45][0-9] %, store [45][0-9] %' <<<"$output"
# On a busy machine, a single visit may be long.
grep -qxE 'speedscope: load [0-9] %, store [0-9] %, main itself (9[0-9]|8[0-9]|100) %' <<<"$output"
