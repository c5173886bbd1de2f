"""What ran in a session's step, as Chrome's tracing (chrome://tracing) shows it."""

import json


def _flows(times, graph):
    """Pairs of events that show which operation's result another one took."""
    events = []
    for name, (pid, tid, begin, _) in times.items():
        try:
            operation = graph.get_operation_by_name(name)
        except (KeyError, ValueError):
            continue  # a node of a function, or one that the run made
        for tensor in operation.inputs:
            source = times.get(tensor.op.name)
            if source is None:
                continue
            common = {"name": tensor.name, "cat": "DataFlow", "id": len(events)}
            from_pid, from_tid, _, end = source
            events.append(dict(common, ph="s", pid=from_pid, tid=from_tid, ts=end))
            events.append(dict(common, ph="t", pid=pid, tid=tid, ts=begin))
    return events


def _memory(node, pid):
    """The bytes of each allocator that a node held at most."""
    return [
        {
            "name": memory.allocator_name,
            "cat": "Memory",
            "ph": "C",
            "pid": pid,
            "ts": node.all_start_micros,
            "args": {memory.allocator_name: memory.peak_bytes},
        }
        for memory in node.memory
    ]


def chrome_trace(step_stats, graph=None, show_memory=False):
    """The JSON of a StepStats; with a graph also which results operations took, with
    `show_memory` also what they allocated, as far as the stats say it."""
    events, times = [], {}
    for pid, device in enumerate(step_stats.dev_stats):
        args = {"name": f"{device.device} Compute"}
        events.append({"name": "process_name", "ph": "M", "pid": pid, "args": args})
        for node in device.node_stats:
            label = node.timeline_label or node.node_name
            begin, length = node.all_start_micros, node.all_end_rel_micros
            place = {"pid": pid, "tid": node.thread_id}
            name = node.node_name.partition(":")[0]
            times[name] = (pid, node.thread_id, begin, begin + length)
            # (A label may say "name = Op(inputs)".)
            shown = label.rpartition(" = ")[2].partition("(")[0]
            args = {"name": node.node_name, "op": shown}
            events.append(
                dict(
                    place, name=shown, cat="Op", ph="X", ts=begin, dur=length, args=args
                )
            )
            if show_memory:
                events += _memory(node, pid)
    if graph is not None:
        events += _flows(times, graph)
    return json.dumps({"traceEvents": events}, indent=4)
