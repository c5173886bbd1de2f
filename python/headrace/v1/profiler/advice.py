"""Checks that say what in a profile costs most."""

import sys

from headrace.framework.support import protos
from headrace.v1.profiler import stats, views
from headrace.v1.profiler.options import Options

_MIN_MICROS, _MIN_LINE_MICROS = 100, 1000  # what takes less is not worth a word
_MOST = 3  # rows of each report


def _options(**own):
    all_names = {"account_type_regexes", "start_name_regexes", "show_name_regexes"}
    given = {name: [".*"] for name in all_names}
    return Options({**given, "order_by": "micros", "max_depth": 10000, **own})


def _times(of):
    return (
        f"cpu: {stats.time(of.cpu_exec_micros)}, "
        f"accelerator: {stats.time(of.accelerator_exec_micros)}, "
        f"total: {stats.time(of.exec_micros)}"
    )


def _expensive_kinds(facts):
    view = views.view_of("op", facts, _options())
    whole = view.root.total.exec_micros
    rows = [node for node in view.shown if node.own.exec_micros][:_MOST]
    return "\n".join(
        f"top {i} operation type: {node.name}, {_times(node.own)} "
        f"({100 * node.own.exec_micros / whole:.2f}%)"
        for i, node in enumerate(rows, 1)
    )


def _expensive_scopes(facts):
    options = _options(min_micros=_MIN_MICROS)
    view = views.view_of("scope", facts, options)
    return "\n".join(
        f"top {i} graph node: {node.name}, {_times(node.own)}"
        for i, node in enumerate(view.root.shown[:_MOST], 1)
    )


def _expensive_lines(facts):
    if not facts.has_trace:
        return ""
    view = views.view_of("code", facts, _options(min_micros=_MIN_LINE_MICROS))
    lines = []
    for node in view.root.shown[:_MOST]:
        lines.append(f"{node.name}, {_times(node.total)}")
        if len(lines) == 1:  # of the most expensive one also what it calls
            lines += [f"  {n.name}, {_times(n.total)}" for n in node.shown[:1]]
    return "\n".join(lines)


def _expensive(facts):
    """Kinds of operations, scopes and lines that take longest."""
    if not facts.steps:
        return []
    checks = (_expensive_kinds, _expensive_scopes, _expensive_lines)
    return [check(facts) for check in checks]


def _utilization(facts):
    """How much of the time accelerators were at work."""
    busy, first, last = {}, {}, {}
    for entry in facts.entries.values():
        for ran in entry.executions.values():
            for device, runs in ran.accelerators.items():
                for begin, length in runs:
                    busy[device] = busy.get(device, 0) + length
                    first[device] = min(first.get(device, begin), begin)
                    last[device] = max(last.get(device, 0), begin + length)
    rows = []
    for device, micros in sorted(busy.items()):
        share = micros / max(last[device] - first[device], 1)
        rows.append(f"device: {device} utilization: {share:.2f}")
    return rows


def _layouts(facts):
    """Convolutions on GPUs with channels last."""
    for entry in facts.entries.values():
        if entry.op is None or "gpu" not in entry.device:
            continue
        if "data_format" not in entry.op._node.attr_names():
            continue
        if entry.op.get_attr("data_format") == b"NHWC":
            return [
                "Found operation using NHWC data_format on GPU. Maybe NCHW is faster."
            ]
    return []


_CHECKS = {
    "AcceleratorUtilizationChecker": _utilization,
    "ExpensiveOperationChecker": _expensive,
    "OperationChecker": _layouts,
}


def advise(facts, options):
    """The AdviceProto of the checkers that the dict names; of all where it names none.
    Prints what they report."""
    advice = protos.AdviceProto()
    for name, check in _CHECKS.items():
        if options and name not in options:
            continue
        advice.checkers[name].reports.extend(check(facts))
        sys.stdout.write(f"\n{name}:\n")
        for text in advice.checkers[name].reports:
            sys.stdout.write(f"{text}\n")
    return advice
