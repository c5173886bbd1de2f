"""Rows of control flow, calls, files, summaries and what prints."""

import pathlib
import tempfile

import numpy as np
from rows import in_graph, row, wave


def _traced(tf, f, *types):
    specs = [tf.TensorSpec([], t) for t in types]
    return tf.function(f).get_concrete_function(*specs)


@row("If StatelessIf Case StatelessCase")
def branches(tf, raw):
    double = _traced(tf, lambda x: x * 2.0, tf.float32)
    less = _traced(tf, lambda x: x - 1.0, tf.float32)
    more = {"input": [tf.constant(3.0)], "Tout": [tf.float32]}
    found = []
    for op in (raw.If, raw.StatelessIf):
        for cond in (True, False):
            found += op(cond=cond, then_branch=double, else_branch=less, **more)
    for op in (raw.Case, raw.StatelessCase):
        for at in (0, 1, 7):
            found += op(branch_index=at, branches=[double, less], **more)
    return found


@row("While StatelessWhile PartitionedCall StatefulPartitionedCall")
def loops_and_calls(tf, raw):
    go_on = _traced(tf, lambda i, x: i < 4, tf.int32, tf.float32)
    body = _traced(tf, lambda i, x: (i + 1, x * 1.5), tf.int32, tf.float32)
    start = [tf.constant(1), tf.constant(2.0)]
    types = [tf.int32, tf.float32]
    return [
        *raw.While(input=start, cond=go_on, body=body),
        *raw.StatelessWhile(input=start, cond=go_on, body=body),
        *raw.PartitionedCall(args=start, Tout=types, f=body),
        *raw.StatefulPartitionedCall(args=start, Tout=types, f=body),
    ]


def _with_back_edge(tf, graph, merge, following, fetches):
    """Runs a graph once the second input of each merge is what follows it."""
    made = graph.as_graph_def()
    for node in made.node:
        for m, f in zip(merge, following, strict=True):
            if node.name == m.op.name:
                node.input[1] = f.op.name
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(made, name="")
        return session.run([f.name for f in fetches])


@row("Enter Exit LoopCond Merge NextIteration Switch")
def frames(tf, raw):
    with tf.Graph().as_default() as graph:
        start = raw.Enter(data=tf.constant(1), frame_name="f")
        limit = raw.Enter(data=tf.constant(40), frame_name="f", is_constant=True)
        merged, place = raw.Merge(inputs=[start, start])
        go_on = raw.LoopCond(input=merged < limit)
        done, again = raw.Switch(data=merged, pred=go_on)
        following = raw.NextIteration(data=again * tf.identity(again) + again)
        end = raw.Exit(data=done)
        del place
    return _with_back_edge(tf, graph, [merged], [following], [end])


@row("RefSwitch RefMerge")
def references_by_branches(tf, raw):
    found = []
    for pred in (True, False):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            v, w = (raw.VariableV2(shape=[], dtype=tf.float32) for _ in range(2))
            session.run([raw.Assign(ref=v, value=2.0), raw.Assign(ref=w, value=5.0)])
            off, on = raw.RefSwitch(data=v, pred=tf.constant(pred))
            more = raw.AssignAdd(ref=on, value=1.0)
            less = raw.AssignSub(ref=off, value=1.0)
            merged, place = raw.RefMerge(inputs=[less, more])
            found += session.run([merged, place])
            found += session.run([tf.identity(v), tf.identity(w)])
    return found


@row("RefEnter RefExit RefNextIteration")
def references_in_frames(tf, raw):
    with tf.Graph().as_default() as graph:
        v = raw.VariableV2(shape=[], dtype=tf.float32)
        with tf.control_dependencies([raw.Assign(ref=v, value=2.0)]):
            start = raw.RefEnter(data=v, frame_name="f")
        limit, step = (
            raw.Enter(data=tf.constant(c), frame_name="f", is_constant=True)
            for c in (9.0, 3.0)
        )
        merged, _ = raw.RefMerge(inputs=[start, start])
        go_on = raw.LoopCond(input=merged < limit)
        done, again = raw.RefSwitch(data=merged, pred=go_on)
        following = raw.RefNextIteration(data=raw.AssignAdd(ref=again, value=step))
        end = raw.RefExit(data=done)
    return _with_back_edge(tf, graph, [merged], [following], [end])


@row("StatefulStandardNormal")
def drawn_by_an_old_graph(tf, raw):
    with tf.Graph().as_default() as graph:
        state = raw.VarHandleOp(dtype=tf.int64, shape=[4])
        first = tf.constant([1, 2, 3, 4], tf.int64)
        begun = raw.AssignVariableOp(resource=state, value=first)
        shape = tf.constant([5], tf.int64)
        drawn = raw.StatefulUniform(resource=state, algorithm=first[0], shape=shape)
        moved = raw.ReadVariableOp(resource=state, dtype=tf.int64)
    old = graph.as_graph_def()
    old.versions.producer = 28
    for node in old.node:
        if node.name == drawn.op.name:
            node.op = "StatefulStandardNormal"
            del node.input[1]
    raw.called.add("StatefulStandardNormal")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(old, name="")
        session.run(begun.name)
        return [session.run(drawn.name), session.run(moved.name)]


@row("Placeholder PlaceholderWithDefault")
def fed(tf, raw):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = raw.Placeholder(dtype=tf.float32, shape=[2])
        y = raw.Placeholder(dtype=tf.float32, shape=None)
        z = raw.PlaceholderWithDefault(input=[3.0, 4.0], shape=[2])
        feeds = {x: [1.0, 2.0], y: [5.0, 6.0]}
        return [
            *session.run([x + y, z], feeds),
            session.run(z, {z: [7.0, 8.0]}),
        ]


@row("PlaceholderV2")
def fed_old_graph(tf, raw):
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = 22
    node = graph.node.add(name="x", op="PlaceholderV2")
    node.attr["dtype"].type = tf.float32.as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tf.TensorShape([2]).as_proto())
    raw.called.add("PlaceholderV2")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        (x,) = tf.import_graph_def(graph, return_elements=["x:0"])
        return session.run(x * 2.0, {x: [1.0, 2.0]})


@row("PyFunc PyFuncStateless EagerPyFunc")
def python_functions(tf, raw):
    def f(x):
        return np.cumsum(x)

    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        x = tf.constant([1.0, 2.0, 4.0])
        found = [
            tf.numpy_function(f, [x], tf.float32),
            tf.numpy_function(f, [x], tf.float32, stateful=False),
            tf.py_function(lambda x: tf.cumsum(x) * 2.0, [x], tf.float32),
        ]
        raw.called.update(op.type for op in graph.get_operations())
        return session.run(found)


@row("Assert Print PrintV2")
def checked_and_printed(tf, raw):
    x, found = wave(tf, 2, 3), []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "printed")
        raw.PrintV2(input="a line", output_stream=f"file://{path}", end="!\n")
        found.append(path.read_text())
    assert raw.Assert(condition=True, data=[x]) is None
    try:
        raw.Assert(condition=False, data=[tf.constant("it is"), tf.range(5)])
    except tf.errors.InvalidArgumentError as error:
        found.append(error.message.partition("}} ")[2] or error.message)
        found[-1] = found[-1].partition(" [Op:")[0]
    found.append(raw.Print(input=x, data=[x], message="rows", first_n=0))
    return found


@row("Timestamp ImmutableConst")
def from_outside(tf, raw):
    first = raw.Timestamp()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "numbers")
        path.write_bytes(np.arange(6, dtype="float32").tobytes())
        kept = raw.ImmutableConst(
            dtype=tf.float32, shape=[2, 3], memory_region_name=str(path)
        ) * tf.ones([])
    return [first > 1.7e9, raw.Timestamp() >= first, kept]


# --- Files.


@row("ReadFile WriteFile Save SaveSlices Restore RestoreSlice")
def files_of_tensors(tf, raw):
    x, n = wave(tf, 3, 4), tf.constant([1, 2, 3])
    with tempfile.TemporaryDirectory() as folder:
        path, old, cut = (str(pathlib.Path(folder, name)) for name in "abc")
        raw.WriteFile(filename=path, contents="some bytes")
        raw.Save(filename=old, tensor_names=["x", "n"], data=[x, n])
        raw.SaveSlices(
            filename=cut,
            tensor_names=["x"],
            shapes_and_slices=["3 8 -:4,4"],
            data=[x],
        )
        return [
            raw.ReadFile(filename=path),
            raw.Restore(file_pattern=old, tensor_name="n", dt=tf.int32),
            raw.RestoreSlice(
                file_pattern=old,
                tensor_name="x",
                shape_and_slice="3 4 1,2:-",
                dt=tf.float32,
            ),
            raw.RestoreSlice(
                file_pattern=cut,
                tensor_name="x",
                shape_and_slice="3 8 0,2:5,2",
                dt=tf.float32,
            ),
        ]


@row("SaveV2 RestoreV2 MergeV2Checkpoints")
def checkpoints(tf, raw):
    with tempfile.TemporaryDirectory() as folder:
        parts = [str(pathlib.Path(folder, name)) for name in "ab"]
        whole = str(pathlib.Path(folder, "whole"))
        for part, tensor in zip(parts, (wave(tf, 3, 4), tf.range(3)), strict=True):
            raw.SaveV2(
                prefix=part,
                tensor_names=["of_" + part[-1]],
                shape_and_slices=[""],
                tensors=[tensor],
            )
        raw.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=whole)
        names = sorted(p.name for p in pathlib.Path(folder).iterdir())
        found = raw.RestoreV2(
            prefix=whole,
            tensor_names=["of_a", "of_b", "of_a"],
            shape_and_slices=["", "", "3 4 1,2:0,3"],
            dtypes=[tf.float32, tf.int32, tf.float32],
        )
    return [*found, *names]


# --- Summaries.


@row("ScalarSummary HistogramSummary MergeSummary")
def summaries(tf, raw):
    def build():
        scalars = raw.ScalarSummary(tags=["a", "b"], values=[1.5, 2.5])
        bars = raw.HistogramSummary(tag="h", values=wave(tf, 9))
        return [scalars, bars, raw.MergeSummary(inputs=[scalars, bars])]

    return in_graph(tf, build)


@row(
    "SummaryWriter CreateSummaryFileWriter FlushSummaryWriter CloseSummaryWriter"
    " WriteGraphSummary WriteRawProtoSummary WriteScalarSummary WriteSummary"
    " ImportEvent"
)
def summary_files(tf, raw):
    v1, found = tf.compat.v1, []
    scalar = v1.Summary(value=[v1.Summary.Value(tag="raw", simple_value=4.5)])
    event = v1.Event(wall_time=1.0, step=9, summary=scalar)
    graph = v1.GraphDef()
    graph.node.add(name="n", op="NoOp")
    with tempfile.TemporaryDirectory() as folder:
        writer = raw.SummaryWriter(shared_name="writer_of_rows")
        raw.CreateSummaryFileWriter(
            writer=writer,
            logdir=folder,
            max_queue=10,
            flush_millis=100000,
            filename_suffix=".s",
        )

        def at(step):
            return {"writer": writer, "step": tf.constant(step, tf.int64)}

        raw.WriteScalarSummary(**at(1), tag="a", value=2.5)
        raw.WriteSummary(**at(2), tensor=[1, 2], tag="b", summary_metadata=b"")
        raw.WriteRawProtoSummary(**at(3), tensor=scalar.SerializeToString())
        raw.WriteGraphSummary(**at(4), tensor=graph.SerializeToString())
        raw.ImportEvent(writer=writer, event=event.SerializeToString())
        raw.FlushSummaryWriter(writer=writer)
        raw.CloseSummaryWriter(writer=writer)
        (path,) = pathlib.Path(folder).iterdir()
        for made in v1.train.summary_iterator(str(path)):
            found += [made.step, made.graph_def]
            found += [v.SerializeToString() for v in made.summary.value]
        found.append(path.suffix)
    return found
