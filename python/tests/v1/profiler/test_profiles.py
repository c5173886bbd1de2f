"""tf.compat.v1.profiler gives what TensorFlow gives (see profile_cases.py), counts what
programs count, and refuses what is wrong."""

import gzip
import json
import pathlib

import headrace as tf
import numpy as np
import profile_cases
import pytest
from headrace import _protos

GOLDEN = pathlib.Path(__file__).parents[4] / "tests" / "golden" / "v1"
FOUND = json.loads((GOLDEN / "profiles.json").read_text())
v1 = tf.compat.v1
profiler = v1.profiler
Builder = profiler.ProfileOptionBuilder


@pytest.fixture(scope="module")
def cases():
    return profile_cases.Cases(tf)


def flops(graph, **how):
    options = Builder(Builder.float_operation()).with_empty_output().build()
    return profiler.profile(graph, options=options, **how)


def test_texts_and_protos(cases, tmp_path):
    texts = cases.texts()
    assert texts.keys() == FOUND["texts"].keys()
    for name, case in texts.items():
        text, proto = cases.profile(*case, tmp_path / "profile")
        assert text == FOUND["texts"][name], name
        assert proto == FOUND["protos"].get(name, proto), name


def test_steps_and_timelines(cases, tmp_path, capsys):
    assert cases.steps(str(tmp_path / "profile")) == FOUND["steps"]
    said = capsys.readouterr().out
    assert "generating trace file." in said
    assert f"Timeline file is written to {tmp_path / 'profile'}_1." in said


def test_counts(cases):
    operations = cases.operations()
    assert operations.keys() == FOUND["counts"].keys()
    ours = {name: cases.count(make) for name, make in operations.items()}
    # Where a quotient is not whole, TensorFlow's log has it rounded down, too.
    assert ours == FOUND["counts"]


def test_counts_where_tensorflow_has_none_or_others(cases):
    f = v1.placeholder
    # TensorFlow reads the wrong size of an adjoint (192), and no channels first.
    with tf.Graph().as_default() as graph:
        x, y = f(tf.float32, [6, 3, 2]), f(tf.float32, [6, 4, 3])
        tf.raw_ops.BatchMatMulV2(x=x, y=y, adj_x=True, adj_y=True)
    assert flops(graph).total_float_ops == 2 * 6 * 2 * 4 * 3
    with tf.Graph().as_default() as graph:
        tf.raw_ops.MaxPool(
            input=f(tf.float32, [2, 3, 8, 8]),
            ksize=[1, 1, 3, 2],
            strides=[1, 1, 2, 2],
            padding="SAME",
            data_format="NCHW",
        )
    assert flops(graph).total_float_ops == 6 * 2 * 3 * 4 * 4


def test_a_traced_model(capsys):
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(4, 3, padding="same", use_bias=False),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )
    model.build([None, 8, 8, 3])
    traced = tf.function(model).get_concrete_function(tf.TensorSpec([1, 8, 8, 3]))
    wanted = 2 * 8 * 8 * 4 * 27 + 2 * 256 * 10 + 10
    assert flops(traced.graph).total_float_ops == wanted
    by_kind = flops(traced.graph, cmd="op")
    assert by_kind.total_float_ops == wanted
    assert by_kind.children[0].name == "Conv2D"
    assert "incomplete" not in capsys.readouterr().err


def test_what_ran_is_shown(capsys):
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 50], name="x")
        y = tf.matmul(x, tf.ones([50, 20]), name="y")
    metadata = v1.RunMetadata()
    full = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    with v1.Session(graph=graph) as sess:
        sess.run(y, {x: np.ones([8, 50])}, options=full, run_metadata=metadata)
    # Without the run the size of the batch is not known.
    assert flops(graph).total_float_ops == 0
    assert "1 ops no flops stats" in capsys.readouterr().err
    options = Builder(Builder.time_and_memory(min_bytes=0)).with_empty_output()
    proto = profiler.profile(graph, metadata, options=options.build())
    assert "y" in [child.name for child in proto.children]
    assert proto.total_exec_micros > 0 and proto.total_run_count >= 1
    # Sizes that the metadata tells complete the graph's.
    metadata = v1.RunMetadata()
    nodes = metadata.step_stats.dev_stats.add(device="/device:CPU:0").node_stats
    for name, sizes in (("x", (8, 50)), ("y", (8, 20))):
        told = nodes.add(node_name=name).output.add().tensor_description
        for size in sizes:
            told.shape.dim.add(size=size)
    assert flops(graph, run_meta=metadata).total_float_ops == 2 * 8 * 50 * 20


def made_here():
    return tf.matmul(tf.ones([3, 3]), tf.ones([3, 3]))


def test_lines_of_the_program(tmp_path, capsys):
    with tf.Graph().as_default() as graph:
        made_here()
        tf.add(tf.ones([3]), 1.0)
    proto = flops(graph, cmd="code")
    assert proto.total_float_ops == 54 + 3
    lines, open_nodes = {}, [proto]
    for node in open_nodes:
        lines[node.name.rpartition(":")[2]] = node
        open_nodes += node.children
    assert lines["made_here"].total_float_ops == 54
    assert "MatMul" in [n.name for n in lines["made_here"].graph_nodes]
    path = tmp_path / "samples"
    options = Builder(Builder.float_operation()).with_pprof_output(path).build()
    profiler.profile(graph, cmd="code", options=options)
    read = _protos.message("tensorflow.tfprof.pprof.Profile").FromString(
        gzip.decompress(path.read_bytes())
    )
    assert [s.value[1] for s in read.sample] == [54, 3]
    names = [read.string_table[f.name] for f in read.function]
    assert "test_profiles:made_here" in names
    capsys.readouterr()
    for command, select, said in (
        ("scope", ["params"], "Only 'code' view supports pprof output now.\n"),
        ("code", ["params", "micros"], "Can only select 1 attribute for pprof output."),
    ):
        options = Builder().select(select).with_pprof_output(path).build()
        profiler.profile(graph, cmd=command, options=options)
        assert said in capsys.readouterr().err


def test_what_is_printed(cases, capsys):
    options = Builder(Builder.trainable_variables_parameter()).build()
    given = profiler.profile(cases.graph)
    said = capsys.readouterr().out
    assert said.startswith("\n=========================Options=========")
    assert "\n-account_type_regexes       _trainable_variables\n" in said
    assert said.endswith(
        "\n======================End of Report==========================\n"
    )
    assert FOUND["texts"]["parameters"] in said
    assert given == profiler.profile(cases.graph, options=options)
    assert given.total_parameters == 162 + 240 + 10


def test_files_of_profilers(cases, tmp_path):
    made = profiler.Profiler(cases.graph, op_log=cases.log())
    made.add_step(7, cases.metadata())
    read = _protos.ProfileProto.FromString(made.serialize_to_string())
    nodes = {node.name: node for node in read.nodes.values()}
    assert list(read.steps) == [7] and read.has_trace
    node = nodes["l2/MatMul"]
    assert node.float_ops == 77 and "mine" in node.op_types
    device = profile_cases.DEVICE.format(0).replace("CPU", "cpu")
    run = node.execs[7]
    assert list(run.cpu_execs[device].times[0].int64_values) == [1000175, 60]
    assert (run.run_count, run.latest_end_micros) == (1, 1000235)
    assert run.memory_execs[0].requested_bytes == 6150
    assert node.attrs["transpose_a"].b is False
    assert list(nodes["l2/w"].shape) == [24, 10]
    assert [nodes[n].id for n in ("l2/Reshape", "l2/w/read")] == list(
        dict(sorted(node.inputs.items())).values()
    )
    profiler.write_op_log(cases.graph, tmp_path / "logs", add_trace=False)
    log = profiler.OpLogProto.FromString((tmp_path / "logs/tfprof_log").read_bytes())
    said = {entry.name: entry for entry in log.log_entries}
    assert said["l2/MatMul"].float_ops == 2 * 4 * 24 * 10
    assert list(said["l2/b"].types) == ["_trainable_variables"]
    assert "x" not in said and not log.id_to_string


def test_advice(cases, capsys):
    advice = profiler.advise(cases.graph, cases.metadata(scale=3))
    reports = advice.checkers["ExpensiveOperationChecker"].reports
    assert reports[0].splitlines()[0] == (
        "top 1 operation type: Sum, cpu: 240us, accelerator: 0us, total: 240us (22.22%)"
    )
    assert reports[1].splitlines() == [
        "top 1 graph node: l2, cpu: 0us, accelerator: 0us, total: 0us",
        "top 2 graph node: l1, cpu: 0us, accelerator: 0us, total: 0us",
        "top 3 graph node: loss, cpu: 240us, accelerator: 0us, total: 240us",
    ]
    assert "\nOperationChecker:\n" in capsys.readouterr().out
    assert sorted(advice.checkers) == [
        "AcceleratorUtilizationChecker",
        "ExpensiveOperationChecker",
        "OperationChecker",
    ]
    only = {"OperationChecker": {}}
    assert list(profiler.Profiler(cases.graph).advise(only).checkers) == list(only)


def test_bad_arguments(cases, tmp_path, capsys):
    graph, usual = cases.graph, Builder(Builder.float_operation()).build()
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown cmd: nosuch"):
        profiler.profile(graph, cmd="nosuch", options=usual)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted"):
        profiler.profile(graph, options={**usual, "max_depth": "x"})
    with pytest.raises(AttributeError, match="'str' object has no attribute"):
        profiler.profile("x")
    with pytest.raises(AttributeError, match="has no attribute 'step_stats'"):
        profiler.profile(graph, run_meta="x")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"show_name_regexes: \("):
        named = Builder(usual).with_node_names(show_name_regexes=["("])
        profiler.profile(graph, options=named.build())
    capsys.readouterr()
    for output, said in (
        (
            "bad",
            "E.g. Unknown output type: bad, Valid types: file,none,pprof,stdout,ti",
        ),
        (
            "file",
            "Missing required output_options for file\nE.g. -output file:outfile=",
        ),
        ("file:outfile", "Visualize format: -output file:key=value,key=value,..."),
        ("file:nosuch=3", "Unrecognized options nosuch for output_type: file"),
    ):
        made = profiler.profile(graph, options={**usual, "output": output})
        assert made == profiler.GraphNodeProto()
        assert said in capsys.readouterr().err
    stepped = Builder(usual).with_step(7).build()
    assert not profiler.profile(graph, options=stepped).name
    assert "Options -step=7 not found.\nAvailable steps: " in capsys.readouterr().err
    with pytest.raises(OSError):
        no_folder = str(tmp_path / "no" / "file")
        named = Builder(usual).with_file_output(no_folder).build()
        profiler.profile(graph, options=named)


def test_builders():
    usual = Builder.float_operation()
    built = Builder(usual).with_step(3).order_by("name").select(["params"]).build()
    assert built == {**usual, "step": 3, "order_by": "name", "select": ["params"]}
    assert usual["select"] == ["float_ops"]
    empty = Builder().build()
    assert empty["max_depth"] == 100 and empty["select"] == ["micros"]
    least = Builder.time_and_memory(2, 3, 4, 5, 6, 7, 8)
    names = "micros bytes accelerator_micros cpu_micros peak_bytes residual_bytes "
    names += "output_bytes"
    assert [least[f"min_{n}"] for n in names.split()] == [2, 3, 4, 5, 6, 7, 8]
