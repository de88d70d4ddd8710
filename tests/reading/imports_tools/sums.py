"""Prints the sums of a profile, by function: lines `own inclusive name`. Reads it without pmc: with the tool
that wrote it, where that has a report, or else by its format.

    sums.py py-spy-raw FILE            samples, which py-spy writes without a report
    sums.py py-spy-speedscope FILE     nanoseconds
    sums.py py-spy-chrometrace FILE    nanoseconds
    sums.py pyinstrument APP FILE      runs the program, writes FILE for speedscope; its JSON report, nanoseconds
    sums.py memray FILE                memray's records of the peak, bytes
    sums.py xdebug FILE                units of 10 nanoseconds; the calls follow their callees
"""

import collections
import json
import re
import sys

own, inclusive = collections.Counter(), collections.Counter()


def add(stack, value):
    """Adds a value to a stack of names, outermost first."""
    stack = stack or ["[not mapped]"]
    own[stack[-1]] += value
    for name in set(stack):
        inclusive[name] += value


def py_spy_raw(file):
    for line in open(file):
        stack, value = line.rstrip("\n").rsplit(" ", 1)
        # The name of a thread may contain the separator. Functions end with their places.
        stack = re.sub(r"^thread \([^()]*\)(: .*?)?(;(?=[^;]*\)(;|$))|$)", "", stack)
        add([re.sub(r" \([^()]*\)$", "", frame) for frame in stack.split(";") if frame], int(value))


def py_spy_speedscope(file):
    profile = json.load(open(file))
    frames = [frame["name"] for frame in profile["shared"]["frames"]]
    for thread in profile["profiles"]:
        for stack, weight in zip(thread["samples"], thread["weights"]):
            add([frames[frame] for frame in stack], weight * 1e9)


def py_spy_chrometrace(file):
    stacks, last = collections.defaultdict(list), {}
    for event in json.load(open(file)):
        stack, now = stacks[event["tid"]], event["ts"]
        if stack:
            add(stack, (now - last[event["tid"]]) * 1000)
        last[event["tid"]] = now
        if event["ph"] == "B":
            stack.append(event["name"])
        else:
            assert event["ph"] == "E" and stack.pop() == event["name"]


def pyinstrument(app, file):
    from pyinstrument import Profiler
    from pyinstrument.renderers import JSONRenderer, SpeedscopeRenderer

    code = compile(open(app).read(), app, "exec")
    sys.argv = [app, "0.3"]
    profiler = Profiler(interval=0.001)
    with profiler:
        exec(code, {"__name__": "__main__"})
    # By default, pyinstrument hides frames with less than 1 % of the time: in this format, nearly all.
    options = {"filter_threshold": 0}
    with open(file, "w") as out:
        out.write(profiler.output(SpeedscopeRenderer(processor_options=options)))

    def walk(frame, stack):
        # A function's own time is a frame, too.
        stack = stack if frame["function"] == "[self]" else stack + [frame["function"]]
        time = frame["time"] - sum(child["time"] for child in frame["children"])
        add(stack, time * 1e9)
        for child in frame["children"]:
            walk(child, stack)

    walk(json.loads(profiler.output(JSONRenderer(processor_options=options)))["root_frame"], [])


def memray(file):
    from memray import FileReader

    with FileReader(file) as reader:
        for record in reader.get_high_watermark_allocation_records(merge_threads=True):
            add([frame[0] for frame in reversed(record.stack_trace())], record.size)


def xdebug(file):
    names, calls, in_call = {}, [], False

    def name_of(text):
        number, name = re.fullmatch(r"\((\d+)\)(?: (.*))?", text).groups()
        return names.setdefault(number, name)

    # Each block is a call, with its own cost and the calls from it, which the file lists before it.
    blocks = []
    for line in open(file):
        line = line.rstrip("\n")
        if line.startswith("fn="):
            blocks.append([name_of(line[3:]), 0, 0])
        elif line.startswith("cfn="):
            name_of(line[4:])
        elif line.startswith("calls="):
            blocks[-1][2] += 1
            in_call = True
        elif line[:1].isdigit():
            if not in_call:
                blocks[-1][1] = int(line.split()[1])
            in_call = False
    for name, cost, count in blocks:
        callees = calls[len(calls) - count :]
        del calls[len(calls) - count :]
        calls.append((name, cost, callees))

    def walk(call, stack):
        name, cost, callees = call
        stack = stack + [name]
        add(stack, cost)
        for callee in callees:
            walk(callee, stack)

    for call in calls:
        walk(call, [])


READERS = {
    "py-spy-raw": py_spy_raw,
    "py-spy-speedscope": py_spy_speedscope,
    "py-spy-chrometrace": py_spy_chrometrace,
    "pyinstrument": pyinstrument,
    "memray": memray,
    "xdebug": xdebug,
}
sys.setrecursionlimit(10000)
READERS[sys.argv[1]](*sys.argv[2:])
for name in own | inclusive:
    print(round(own[name]), round(inclusive[name]), name)
