"""ResNet-50 in ONNX Runtime: what benchmarks/resnet_layers.py starts with its --peer.

Each line that comes in is a number of runs to make; behind the last one the times of
all runs go out, by layers, as its profile tells them.
"""

import collections
import json
import os
import re
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper


class Model:
    """The layers as nodes that are named after them, channels first."""

    def __init__(self, layers, batch):
        self.rng = np.random.default_rng(0)
        self.nodes, self.weights = [], []
        for layer in layers:
            getattr(self, layer["op"])(layer, layer["name"], layer["x"])
        last = layers[-1]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 224, 224])
        y = helper.make_tensor_value_info(
            last["name"], TensorProto.FLOAT, [batch, last["filters"]]
        )
        graph = helper.make_graph(self.nodes, "resnet50", [x], [y], self.weights)
        self.proto = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        )

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(
            helper.make_node(op, inputs, [output], output + "_node", **attributes)
        )
        return output

    def weight(self, name, *shape, fill=None):
        if fill is None:
            scale = np.float32(np.prod(shape[1:]) ** -0.5)
            value = self.rng.standard_normal(shape, dtype=np.float32) * scale
        else:
            value = np.full(shape, fill, np.float32)
        self.weights.append(onnx.numpy_helper.from_array(value, name))
        return name

    def conv(self, layer, name, x):
        window, filters = layer["window"], layer["filters"]
        w = self.weight(name + "_w", filters, layer["channels"], window, window)
        stride, pads = [layer["stride"]] * 2, [window // 2] * 4
        y = self.node("Conv", [x, w], name + "_conv", strides=stride, pads=pads)
        norm = [
            self.weight(f"{name}_{part}", filters, fill=fill)
            for part, fill in (("scale", 0.9), ("shift", 0.1), ("mean", 0), ("var", 1))
        ]
        steps = ["BatchNormalization"]
        steps += ["Add"] * (layer["residue"] is not None) + ["Relu"] * layer["relu"]
        for step in steps:
            with_it = {
                "BatchNormalization": norm,
                "Add": [layer["residue"]],
                "Relu": [],
            }
            to = name if step == steps[-1] else f"{name}_{step}"
            y = self.node(step, [y, *with_it[step]], to)

    def pool(self, layer, name, x):
        how = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        self.node("MaxPool", [x], name, **how)

    def mean(self, layer, name, x):
        y = self.node("GlobalAveragePool", [x], name + "_pool")
        self.node("Flatten", [y], name)

    def dense(self, layer, name, x):
        w = self.weight(name + "_w", layer["channels"], layer["filters"])
        self.node("MatMul", [x, w], name)


def times_of(profile):
    """Nanoseconds by layers, a dictionary a run."""
    events = sorted(profile, key=lambda e: e["ts"])
    runs = []
    for event in events:
        if event["name"] == "model_run":
            runs.append((event["ts"] + event["dur"], collections.Counter()))
        elif event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            layer = re.search(r"layer\d\d", event["name"])
            end, times = runs[-1]
            assert event["ts"] <= end
            times[layer[0] if layer else event["name"]] += event["dur"] * 1000
    return [times for _, times in runs]


def main():
    batch, layers = int(sys.argv[1]), json.loads(sys.argv[2])
    out, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(folder, "profile")
        model = Model(layers, batch).proto.SerializeToString()
        session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        x = np.random.default_rng(0).standard_normal([batch, 3, 224, 224], np.float32)
        for line in sys.stdin:
            for _ in range(int(line)):
                session.run(None, {"x": x})
            print("done", file=out, flush=True)
        with open(session.end_profiling()) as profile:
            json.dump(times_of(json.load(profile)), out)


if __name__ == "__main__":
    main()
