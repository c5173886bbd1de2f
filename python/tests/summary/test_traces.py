"""tf.summary.trace_on, trace_export, trace_off and graph: what the events hold."""

import glob

import headrace as tf
import pytest

v1 = tf.compat.v1
summary = tf.summary


@pytest.fixture(autouse=True)
def _ended():
    yield
    summary.trace_off()


def _values(folder):
    """[(tag, step, plugin, content, RunMetadata)] of the folder's events."""
    (path,) = glob.glob(f"{folder}/events*")
    found = []
    for event in v1.train.summary_iterator(path):
        for value in event.summary.value:
            plugin = value.metadata.plugin_data
            run = v1.RunMetadata.FromString(value.tensor.string_val[0])
            row = value.tag, event.step, plugin.plugin_name, plugin.content, run
            found.append(row)
    return found


def _export(folder, **on):
    @tf.function
    def f(x):
        return tf.nn.relu(x) * 2.0

    writer = summary.create_file_writer(str(folder))
    summary.trace_on(**on)
    f(tf.ones([3]))
    with writer.as_default():
        summary.trace_export("my/name", step=3)
    writer.close()
    (row,) = _values(folder)
    return row


def test_graphs(tmp_path):
    tag, step, plugin, content, run = _export(tmp_path)
    assert (tag, step, content) == ("my/name", 3, b"1")
    assert plugin == "graph_run_metadata_graph"
    (function,) = run.function_graphs
    ops = {n.name: n.op for n in function.pre_optimization_graph.node}
    assert ops["x"] == "_Arg" and ops["Relu"] == "Relu"
    assert list(ops.values())[-1] == "_Retval"
    assert len(function.partition_graphs) == len(run.partition_graphs) == 1
    planned = function.post_optimization_graph.node
    assert planned[0].op == "_Arg" and planned[-1].op == "_Retval"
    names = {n.name for n in planned}
    for node in planned:
        assert {i.partition(":")[0] for i in node.input} <= names
    assert not run.HasField("step_stats")


def test_a_profile_beside(tmp_path):
    row = _export(tmp_path, profiler=True, profiler_outdir=str(tmp_path))
    assert row[2] == "graph_run_metadata"
    (device,) = row[4].step_stats.dev_stats
    assert device.node_stats and len(row[4].function_graphs) == 1
    assert glob.glob(f"{tmp_path}/plugins/profile/*/*.xplane.pb")
    with pytest.raises(tf.errors.UnavailableError):
        tf.profiler.experimental.stop()


def test_traces_end_once(tmp_path):
    refused = "Must enable trace before export through tf.summary.trace_on."
    with pytest.raises(ValueError, match=refused):
        summary.trace_export("name", 0)
    summary.trace_on()
    summary.trace_export("name", 0)  # without a writer nothing is written
    with pytest.raises(ValueError, match=refused):
        summary.trace_export("name", 0)
    with summary.create_file_writer(str(tmp_path / "events")).as_default():
        summary.trace_on()
        with pytest.raises(ValueError, match="No step set"):
            summary.trace_export("name")
        with summary.record_if(False):
            summary.trace_export("name")  # it went on, and nothing is written
    summary.trace_on(profiler=True, profiler_outdir=str(tmp_path / "profile"))
    summary.trace_off()
    summary.trace_off()
    assert not glob.glob(f"{tmp_path}/profile*")
    with pytest.raises(tf.errors.UnavailableError):
        tf.profiler.experimental.stop()


def test_graphs_of_functions_that_are_gone(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    summary.trace_on()
    tf.function(lambda x: x + 1)(tf.constant(1))
    with writer.as_default():
        summary.trace_export("name", step=0)
    writer.close()
    assert len(_values(tmp_path)[0][4].function_graphs) == 1


def test_inside_of_functions_nothing_happens():
    @tf.function
    def f():
        summary.trace_on()
        summary.trace_export("name", 0)

    f()
    with tf.Graph().as_default():
        summary.trace_on()
    with pytest.raises(ValueError, match="Must enable trace"):
        summary.trace_export("name", 0)


def test_graph(tmp_path):
    graph = tf.function(lambda x: x + 1).get_concrete_function(tf.constant(1)).graph
    assert not summary.graph(graph)
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        assert summary.graph(graph) and summary.graph(graph.as_graph_def())
        with pytest.raises(ValueError, match=r"not tf.Graph or tf.compat.v1.GraphDef"):
            summary.graph(3)
        with summary.record_if(False):
            assert not summary.graph(graph)
        with tf.Graph().as_default():
            with pytest.raises(ValueError, match="inside a graph context"):
                summary.graph(graph)
    writer.close()
    (path,) = glob.glob(f"{tmp_path}/events*")
    events = [e.graph_def for e in v1.train.summary_iterator(path) if e.graph_def]
    written = [v1.GraphDef.FromString(e) for e in events]
    assert written == [graph.as_graph_def(add_shapes=True), graph.as_graph_def()]
