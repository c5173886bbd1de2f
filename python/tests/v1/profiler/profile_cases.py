"""Profiles of which tests/golden/v1/profiles.json keeps what TensorFlow writes.

Written anew by a Python that has TensorFlow 2.21:
`python profile_cases.py tensorflow ../../../../tests/golden/v1`.
"""

import importlib
import json
import os
import sys
import tempfile

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:{}"
RAN = ("x", "l1/w", "l1/Conv2D", "l1/Relu", "l2/Reshape", "l2/MatMul", "l2/add", "loss")
ALL = [
    "bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "micros",
    "accelerator_micros",
    "cpu_micros",
    "params",
    "float_ops",
    "occurrence",
    "tensor_value",
    "device",
    "op_types",
    "input_shapes",
]


class Cases:
    """A small network, what a run of it might tell, and options to look at it with."""

    def __init__(self, tf):
        self.tf, self.v1 = tf, tf.compat.v1
        self.profiler = self.v1.profiler
        self.builder = self.profiler.ProfileOptionBuilder
        self.graph = tf.Graph()
        with self.graph.as_default():
            self._network()

    def _variable(self, name, *shape):
        zeros = self.v1.zeros_initializer()
        return self.v1.get_variable(name, shape, initializer=zeros, use_resource=False)

    def _network(self):
        tf = self.tf
        x = self.v1.placeholder(tf.float32, [4, 2, 2, 3], name="x")
        with self.v1.variable_scope("l1"):
            w = self._variable("w", 3, 3, 3, 6)
            h = tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"))
        with self.v1.variable_scope("l2"):
            w, b = self._variable("w", 24, 10), self._variable("b", 10)
            y = tf.matmul(tf.reshape(h, [4, 24]), w) + b
        tf.reduce_sum(y, name="loss")

    def metadata(self, step=0, devices=1, scale=1):
        """A RunMetadata of a step that all operations but initializers ran in."""
        made = self.v1.RunMetadata()
        stats = [
            made.step_stats.dev_stats.add(device=DEVICE.format(d))
            for d in range(devices)
        ]
        start = 1000000 + step * 100000
        for k, name in enumerate(RAN):
            node = stats[k % devices].node_stats.add(node_name=name)
            node.all_start_micros = start
            node.op_start_rel_micros = 1
            node.op_end_rel_micros = (k + 1) * 10 * scale
            node.all_end_rel_micros = (k + 1) * 10 * scale + 3
            start += node.op_end_rel_micros + 5
            used = node.memory.add(allocator_name="cpu")
            used.total_bytes, used.peak_bytes = (k + 1) * 1000, (k + 1) * 900
            used.live_bytes = (k + 1) * 300
            made_of = node.output.add().tensor_description
            for size in self.graph.get_operation_by_name(name).outputs[0].shape:
                made_of.shape.dim.add(size=int(size))
            made_of.allocation_description.allocated_bytes = (k + 1) * 512
            made_of.allocation_description.ptr = 4096 * (k + 1)
            node.memory_stats.temp_memory_size = k * 10
            node.memory_stats.persistent_memory_size = k * 20
        return made

    def log(self):
        """An OpLogProto that says more of two operations, and of one that is not."""
        log = self.profiler.OpLogProto()
        log.log_entries.add(name="l2/MatMul", float_ops=77, types=["mine"])
        log.log_entries.add(name="l1/Relu", types=["mine", "other"])
        log.log_entries.add(name="no/such", float_ops=5)
        return log

    def texts(self):
        """{name: (command, options, other arguments)} of profiles written to files."""
        b = self.builder
        flops, names = b.float_operation(), self._by_names()
        time, run = b.time_and_memory(), {"run_meta": self.metadata()}
        made = {
            "parameters": ("scope", b(b.trainable_variables_parameter()), {}),
            "least parameters": (
                "scope",
                b(b.trainable_variables_parameter()).with_min_parameters(100),
                {},
            ),
            "two devices": (
                "scope",
                b(time).select(["micros", "device"]),
                {"run_meta": self.metadata(devices=2)},
            ),
            "no such column": ("scope", b(time).select(["nosuch"]), run),
            "occurrence": (
                "op",
                b(flops)
                .select(["occurrence", "float_ops"])
                .with_min_occurrence(2)
                .with_min_float_operations(0),
                {},
            ),
            "least time": ("scope", b(time).with_min_execution_time(50), run),
            "least memory": (
                "scope",
                b(time).with_min_execution_time().with_min_memory(5000, 1, 1, 1),
                run,
            ),
            "types": ("scope", b(flops).with_accounted_types(["MatMul", "Conv2D"]), {}),
            "log": (
                "scope",
                b(flops)
                .with_accounted_types(["mine"])
                .select(["float_ops", "op_types"])
                .with_min_float_operations(0),
                {"op_log": self.log()},
            ),
        }
        for command in ("scope", "graph", "op"):
            made[f"flops {command}"] = (command, b(flops), {})
            made[f"time {command}"] = (command, b(time), run)
            made[f"all {command}"] = (command, b(time).select(ALL), run)
            deep = b(flops).with_max_depth(2).with_min_float_operations(0)
            made[f"depth {command}"] = (command, deep, {})
        for order in ("name", "params", "float_ops", "occurrence", "bytes", "depth"):
            for command in ("scope", "op"):
                options = b(time).order_by(order).select(["micros", "params"])
                made[f"order {order} {command}"] = (command, options, run)
        return made | {n: (command, o, {}) for n, (command, o) in names.items()}

    def _by_names(self):
        b, flops = self.builder, self.builder.float_operation()
        shown = {"show_name_regexes": ["l1.*"]}
        return {
            "shown": ("scope", b(flops).with_node_names(**shown)),
            "shown, all counted": (
                "scope",
                b(flops).with_node_names(**shown).account_displayed_op_only(False),
            ),
            "hidden": ("scope", b(flops).with_node_names(hide_name_regexes=[".*Mul"])),
            "hidden op": ("op", b(flops).with_node_names(hide_name_regexes=["Conv2D"])),
            "trimmed": (
                "scope",
                b(flops)
                .with_node_names(trim_name_regexes=["l1.*"])
                .with_min_float_operations(0),
            ),
            "trimmed op": (
                "op",
                b(flops).with_node_names(trim_name_regexes=["MatM.*"]),
            ),
            "begun": (
                "scope",
                b(flops).with_node_names(start_name_regexes=["l1.*", "loss"]),
            ),
            "begun graph": (
                "graph",
                b(flops).with_node_names(start_name_regexes=["l2/MatMul"]),
            ),
            "begun op": ("op", b(flops).with_node_names(start_name_regexes=["MatMul"])),
        }

    def profile(self, command, options, more, path):
        """The text that a profile writes, and its proto as text."""
        built = options.with_file_output(path).build()
        proto = self.profiler.profile(self.graph, cmd=command, options=built, **more)
        with open(path) as f:
            return f.read(), str(proto)

    def steps(self, path):
        """Profiles of a Profiler with two steps, and timelines of one of them."""
        made = {}
        profiler = self.profiler.Profiler(self.graph)
        profiler.add_step(1, self.metadata(1))
        profiler.add_step(3, self.metadata(3, scale=3))
        for step in (-1, 1, 3):
            options = self.builder(self.builder.time_and_memory()).with_step(step)
            profiler.profile_name_scope(options.with_file_output(path).build())
            with open(path) as f:
                made[f"step {step}"] = f.read()
        for command in ("name_scope", "graph"):
            options = self.builder(self.builder.time_and_memory()).with_step(1)
            show = getattr(profiler, f"profile_{command}")
            show(options.with_timeline_output(path).build())
            with open(f"{path}_1") as f:
                made[f"timeline {command}"] = f.read()
        return made

    def operations(self):
        """{name: function that makes one operation} whose count is kept."""
        return self._windows() | self._products() | self._elementwise()

    def _floats(self, *shape):
        return self.v1.placeholder(self.tf.float32, shape)

    def _sizes(self, *values):
        return self.tf.constant(values, self.tf.int32)

    def _windows(self):
        raw, f, i, made = self.tf.raw_ops, self._floats, self._sizes, {}
        x, w, dw = (2, 8, 8, 3), (3, 2, 3, 5), (3, 2, 3, 2)
        for n in (1, 2):
            window = {"strides": [1, n, n, 1], "padding": "SAME"}
            out, pool = 8 // n, {"ksize": [1, 3, 2, 1], **window}
            made |= {
                f"Conv2D {n}": lambda k=window: raw.Conv2D(
                    input=f(*x), filter=f(*w), **k
                ),
                f"to input {n}": lambda k=window, o=out: raw.Conv2DBackpropInput(
                    input_sizes=i(*x), filter=f(*w), out_backprop=f(2, o, o, 5), **k
                ),
                f"to filter {n}": lambda k=window, o=out: raw.Conv2DBackpropFilter(
                    input=f(*x), filter_sizes=i(*w), out_backprop=f(2, o, o, 5), **k
                ),
                f"depthwise {n}": lambda k=window: raw.DepthwiseConv2dNative(
                    input=f(*x), filter=f(*dw), **k
                ),
                f"AvgPool {n}": lambda k=pool: raw.AvgPool(value=f(*x), **k),
                f"MaxPool {n}": lambda k=pool: raw.MaxPool(input=f(*x), **k),
                f"AvgPoolGrad {n}": lambda k=pool, o=out: raw.AvgPoolGrad(
                    orig_input_shape=i(*x), grad=f(2, o, o, 3), **k
                ),
                f"MaxPoolGrad {n}": lambda k=pool, o=out: raw.MaxPoolGrad(
                    orig_input=f(*x),
                    orig_output=f(2, o, o, 3),
                    grad=f(2, o, o, 3),
                    **k,
                ),
            }
        return made | {
            "grouped": lambda: raw.Conv2D(
                input=f(1, 4, 4, 4),
                filter=f(3, 3, 2, 6),
                strides=[1, 1, 1, 1],
                padding="SAME",
            ),
            "uneven": lambda: raw.Conv2DBackpropInput(
                input_sizes=i(1, 5, 5, 1),
                filter=f(3, 1, 1, 1),
                out_backprop=f(1, 3, 3, 1),
                strides=[1, 2, 2, 1],
                padding="SAME",
            ),
            "Conv3D": lambda: raw.Conv3D(
                input=f(2, 4, 8, 8, 3),
                filter=f(2, 3, 2, 3, 5),
                strides=[1, 1, 2, 2, 1],
                padding="SAME",
            ),
            "Dilation2D": lambda: raw.Dilation2D(
                input=f(2, 8, 8, 3),
                filter=f(3, 2, 3),
                strides=[1, 2, 2, 1],
                rates=[1, 1, 1, 1],
                padding="SAME",
            ),
        }

    def _products(self):
        raw, f = self.tf.raw_ops, self._floats
        return {
            "MatMul": lambda: raw.MatMul(a=f(2, 3), b=f(3, 4)),
            "MatMul turned": lambda: raw.MatMul(
                a=f(3, 2), b=f(4, 3), transpose_a=True, transpose_b=True
            ),
            "MatMul of nothing": lambda: raw.MatMul(a=f(2, 0), b=f(0, 4)),
            "BatchMatMul": lambda: raw.BatchMatMul(x=f(6, 2, 3), y=f(6, 3, 4)),
            "BatchMatMulV2": lambda: raw.BatchMatMulV2(x=f(6, 2, 3), y=f(5, 1, 3, 4)),
            "BatchMatMulV3": lambda: raw.BatchMatMulV3(
                x=f(6, 2, 3), y=f(6, 3, 4), Tout=self.tf.float32
            ),
            "L2Loss": lambda: raw.L2Loss(t=f(4, 5)),
            "Softmax": lambda: raw.Softmax(logits=f(4, 5)),
            "BiasAdd": lambda: raw.BiasAdd(value=f(4, 5, 6), bias=f(6)),
            "BiasAddGrad": lambda: raw.BiasAddGrad(out_backprop=f(3, 4)),
            "AddN": lambda: raw.AddN(inputs=[f(3, 4)] * 3),
            "AddN of one": lambda: raw.AddN(inputs=[f(3, 4)]),
        }

    def _elementwise(self):
        raw, f = self.tf.raw_ops, self._floats
        made = {
            "RsqrtGrad": lambda: raw.RsqrtGrad(y=f(3, 4), dy=f(3, 4)),
            "Sum kept": lambda: raw.Sum(input=f(3, 4), axis=[0], keep_dims=True),
            "unknown": lambda: raw.AddV2(x=f(None, 4), y=f(4)),
        }
        for op in ("Reciprocal", "Square", "Rsqrt", "Log", "Neg", "Tanh", "Exp"):
            made[op] = lambda op=op: getattr(raw, op)(x=f(3, 4))
        two = "Add AddV2 Sub Mul RealDiv Div Maximum Minimum Pow SquaredDifference "
        two += "Less LessEqual Greater GreaterEqual Equal NotEqual FloorDiv Atan2"
        for op in two.split():
            first, second = ("y", "x") if op == "Atan2" else ("x", "y")
            made[op] = lambda op=op, a=first, b=second: getattr(raw, op)(
                **{a: f(3, 1), b: f(4)}
            )
        for op in ("Sum", "Mean", "Max", "Prod"):
            made[op] = lambda op=op: getattr(raw, op)(input=f(3, 4), axis=[0])
        for op in ("ArgMax", "ArgMin"):
            made[op] = lambda op=op: getattr(raw, op)(input=f(3, 4), dimension=1)
        return made

    def count(self, make):
        """The floating-point operations of the one that the function makes."""
        b = self.builder
        options = b(b.float_operation()).with_empty_output().build()
        with self.tf.Graph().as_default() as graph:
            make()
        return self.profiler.profile(graph, options=options).total_float_ops


PROTOS = ("flops scope", "time op", "all graph", "parameters", "shown, all counted")


def all_of(tf, folder):
    """What is kept: texts, protos, profiles of steps, counts."""
    cases, path = Cases(tf), os.path.join(folder, "profile")
    found = {"texts": {}, "protos": {}}
    for name, case in cases.texts().items():
        found["texts"][name], proto = cases.profile(*case, path)
        if name in PROTOS:
            found["protos"][name] = proto
    found["steps"] = cases.steps(path)
    found["counts"] = {n: cases.count(m) for n, m in cases.operations().items()}
    return found


def main(module, folder):
    tf = importlib.import_module(module)
    with tempfile.TemporaryDirectory() as scratch:
        found = all_of(tf, scratch)
    with open(os.path.join(folder, "profiles.json"), "w") as file:
        json.dump(found, file, indent=0, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
