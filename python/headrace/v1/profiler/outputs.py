"""Where profiles go: the screen, files, traces for Chrome, samples for pprof."""

import gzip
import json
import os
import sys

from headrace._protos import message
from headrace.v1.profiler import report, stats

_TYPES = ("file", "none", "pprof", "stdout", "timeline")
_WRITTEN = """
******************************************************
Timeline file is written to {}.
Open a Chrome browser, enter URL chrome://tracing and load the timeline file.
******************************************************
"""
_PRINTED = """
=========================Options=============================
{table}

==================Model Analysis Report======================
{text}
======================End of Report==========================
"""
_ABOUT = {
    "float_ops": "Model float operations (Only available if defined).",
    "params": "Model parameters.",
    "bytes": "Model requested bytes.",
    "micros": "Model execution time (micros).",
    "occurrence": "Model occurrences.",
}


def is_known(options):
    """Whether the options say an output that there is; says so if not."""
    kind, given = options.output, options.output_options
    problem = None
    if kind not in _TYPES:
        known = ",".join(_TYPES)
        problem = f"E.g. Unknown output type: {kind}, Valid types: {known}\n"
    elif not options.output_is_pairs:
        problem = f"Visualize format: -output {kind}:key=value,key=value,..."
    elif extra := [
        key for key in given if kind in ("stdout", "none") or key != "outfile"
    ]:
        problem = f"Unrecognized options {extra[0]} for output_type: {kind}\n"
    elif kind not in ("stdout", "none") and not given.get("outfile"):
        problem = f"Missing required output_options for {kind}\n"
        problem += f"E.g. -output {kind}:outfile=...\n"
    if problem:
        sys.stderr.write(f"INVALID_ARGUMENT: {problem}\n")
    return problem is None


def write(command, view, facts, options):
    """Writes a view where the options say."""
    kind = options.output
    if kind == "none":
        return
    if kind == "timeline":
        _write_timeline(command, view, facts, options)
        return
    if kind == "pprof":
        _write_pprof(command, view, options)
        return
    text = report.text_of(command, view, options)
    if kind == "file":
        _write_file(options.output_options["outfile"], text.encode())
        return
    table = "\n".join(options.lines())
    sys.stdout.write(_PRINTED.format(table=table, text=text))


def _write_file(path, data):
    with open(path, "wb") as f:
        f.write(data)


def _event(name, process, thread, start, length, **arguments):
    arguments = {"name": name, **arguments}
    place = {"pid": process, "tid": thread, "ts": start}
    return dict(place, args=arguments, cat="Op", dur=length, name=name, ph="X")


def _process(name, process):
    return {"args": {"name": name}, "name": "process_name", "ph": "M", "pid": process}


def _tree_events(view):
    """Nodes as bars of their total time, each below the one it belongs to."""
    events, depths = [], set()
    open_nodes = [(view.root, 0, 0)]
    while open_nodes:
        node, depth, start = open_nodes.pop()
        if depth not in depths:
            depths.add(depth)
            events.append(_process(f"Scope:{depth}", depth))
        length = node.total.exec_micros
        events.append(_event(node.name, depth, 0, start, length, op=node.name))
        below = []
        for child in node.shown:
            below.append((child, depth + 1, start))
            start += child.total.exec_micros
        open_nodes += reversed(below)
    return events


def _run_events(facts, options):
    """Runs of operations on each device, side by side where they overlap."""
    by_device = {}
    for entry in facts.entries.values():
        ran = entry.executions.get(options.step)
        if ran is None:
            continue
        for device, runs in ran.times.items():
            label = f"Op scheduling threads: {device}"
            by_device.setdefault(label, []).extend((b, n, entry.name) for b, n in runs)
        for device, runs in ran.accelerators.items():
            label = f"Op execution threads: {device}"
            by_device.setdefault(label, []).extend((b, n, entry.name) for b, n in runs)
    events = []
    for process, (label, runs) in enumerate(sorted(by_device.items())):
        events.append(_process(label, process))
        ends = []
        for begin, length, name in sorted(runs):
            free = (i for i, end in enumerate(ends) if end <= begin)
            lane = next(free, len(ends))
            ends[lane : lane + 1] = [begin + length]
            events.append(_event(name, process, lane, begin, length))
    return events


def _write_timeline(command, view, facts, options):
    if command == "op":
        sys.stderr.write(
            "op view doesn't support timeline yet. Consider graph/scope/code view.\n"
        )
        return
    if command == "graph":
        sys.stdout.write("generating trace file.\n")
        events = _run_events(facts, options)
    else:
        events = _tree_events(view)
    path = f"{options.output_options['outfile']}_{options.step}"
    text = json.dumps({"traceEvents": events}, separators=(",", ":"), sort_keys=True)
    _write_file(path, f"{text}\n".encode())
    sys.stdout.write(_WRITTEN.format(path))


class _Samples:
    """A pprof Profile that grows."""

    def __init__(self, selected):
        self.proto = message("tensorflow.tfprof.pprof.Profile")()
        self._field = stats.NAMES[selected]
        self._texts, self._locations, self._functions = {"": 0}, {}, {}
        self._selected = selected

    def text(self, text):
        return self._texts.setdefault(text, len(self._texts))

    def add(self, entry, step):
        """Adds an operation: its count, below the lines that made it."""
        value = getattr(entry.stats(step), self._field)
        if not entry.trace or not value:
            return
        places = [self._location(frame) for frame in entry.trace]
        sample = self.proto.sample.add(location_id=places[::-1], value=[1, value])
        sample.label.add(key=self.text("graph node:"), str=self.text(entry.name))

    def _location(self, frame):
        known = self._locations.get(frame)
        if known is None:
            file, line, function = frame
            known = self._locations[frame] = len(self._locations) + 1
            place = self.proto.location.add(id=known)
            place.line.add(function_id=self._function(file, function), line=line)
        return known

    def _function(self, file, function):
        known = self._functions.get((file, function))
        if known is None:
            known = self._functions[file, function] = len(self._functions) + 1
            base = os.path.splitext(os.path.basename(file))[0]
            self.proto.function.add(
                id=known,
                name=self.text(f"{base}:{function}"),
                filename=self.text(file),
                start_line=-1,
            )
        return known

    def data(self):
        """The file's bytes."""
        count = self.text("count")
        self.proto.sample_type.add(type=count, unit=count)
        self.proto.sample_type.add(type=count, unit=self.text(self._selected))
        about = _ABOUT.get(self._selected, f"Model {self._selected}.")
        self.proto.comment.append(self.text(about))
        self.proto.string_table.extend(self._texts)
        return gzip.compress(self.proto.SerializeToString())


def _write_pprof(command, view, options):
    selected = [s for s in options.select if s in stats.NAMES]
    if command != "code":
        sys.stderr.write("Only 'code' view supports pprof output now.\n")
        return
    if len(options.select) != 1 or not selected:
        sys.stderr.write("Can only select 1 attribute for pprof output.\n")
        return
    samples = _Samples(selected[0])
    open_nodes = [view.root]
    for node in open_nodes:
        open_nodes += node.shown
        for entry in node.entries:
            samples.add(entry, options.step)
    path = options.output_options["outfile"]
    _write_file(path, samples.data())
    sys.stdout.write(f"\nRun pprof -png --nodecount=100 --sample_index=1 <{path}>\n")
