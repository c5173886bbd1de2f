"""SavedModels that tests write by themselves, node by node."""

import os

from google.protobuf import text_format
from headrace.framework.support import protos


def placeholder(name, dtype="DT_FLOAT"):
    return (
        f"node {{ name: '{name}' op: 'Placeholder' attr {{ key: 'dtype' value {{ "
        f"type: {dtype} }} }} attr {{ key: 'shape' value {{ shape {{ dim {{ size: -1 "
        "} } } } } "
    )


def node(name, op, *inputs, **attrs):
    """Attributes are the text of their AttrValue."""
    text = f"node {{ name: '{name}' op: '{op}' "
    text += "".join(f"input: '{i}' " for i in inputs)
    for key, value in attrs.items():
        text += f"attr {{ key: '{key}' value {{ {value} }} }} "
    return text + "} "


def constant(name, value):
    return node(
        name,
        "Const",
        dtype="type: DT_FLOAT",
        value=f"tensor {{ dtype: DT_FLOAT tensor_shape {{}} float_val: {value} }}",
    )


FLOAT = "type: DT_FLOAT"


def write(folder, nodes, inputs, outputs, more=""):
    """A model without variables at `folder`, there at once; `inputs` and `outputs`
    are {name: tensor} or {name: (tensor, dtype)}."""

    def infos(side, named):
        text = ""
        for key, info in named.items():
            tensor, dtype = info if isinstance(info, tuple) else (info, "DT_FLOAT")
            text += (
                f"{side} {{ key: '{key}' value {{ name: '{tensor}' dtype: {dtype} "
                "tensor_shape { unknown_rank: true } } } "
            )
        return text

    text = (
        "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } "
        f"graph_def {{ {''.join(nodes)} versions {{ producer: 1882 }} }} "
        "signature_def { key: 'serving_default' value { "
        "method_name: 'tensorflow/serving/predict' "
        f"{infos('inputs', inputs)} {infos('outputs', outputs)} {more} }} }} }}"
    )
    model = text_format.Parse(text, protos.message("tensorflow.SavedModel")())
    folder = str(folder)
    os.makedirs(folder + ".tmp")
    with open(folder + ".tmp/saved_model.pb", "wb") as file:
        file.write(model.SerializeToString())
    os.rename(folder + ".tmp", folder)
    return folder


def scale(folder, factor):
    """y = factor * x."""
    nodes = [
        placeholder("x"),
        constant("factor", factor),
        node("y", "Mul", "x", "factor", T=FLOAT),
    ]
    return write(folder, nodes, {"x": "x:0"}, {"y": "y:0"})


def slow(folder, steps):
    """Products of matrices of 700 rows, one after another: some 20 ms of a processor
    each."""
    dims = "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: %d }"
    zero = "tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 }"
    nodes = [
        placeholder("x"),
        node("shape", "Const", dtype="type: DT_INT32", value=dims % 700),
        constant("small", 0.001),
        node("zero", "Const", dtype="type: DT_INT32", value=zero),
        node("sum", "Sum", "x", "zero", T=FLOAT, Tidx="type: DT_INT32"),
        node("scaled", "Mul", "sum", "small", T=FLOAT),
        node("m0", "Fill", "shape", "scaled", T=FLOAT, index_type="type: DT_INT32"),
    ]
    for i in range(steps):
        nodes.append(node(f"m{i + 1}", "MatMul", f"m{i}", "m0", T=FLOAT))
    return write(folder, nodes, {"x": "x:0"}, {"y": f"m{steps}:0"})
