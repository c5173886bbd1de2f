"""Rows of what asks about the machine, and of quantized products in one."""

import numpy as np
from rows import formula, in_graph, row


@row("DeviceIndex Fact")
def the_machine(tf, raw):
    return [
        raw.DeviceIndex(device_names=["GPU", "CPU"]),
        raw.DeviceIndex(device_names=["GPU"]),
        raw.Fact(),
    ]


@row("SyncDevice DisableCopyOnRead")
def without_results(tf, raw):
    variable = tf.Variable([1.0, 2.0])
    raw.SyncDevice()
    raw.DisableCopyOnRead(resource=variable.handle)
    return variable + 1.0


@formula("FakeParam NonDeterministicInts")
def whatever_they_are(tf, raw):
    """Nothing is said of the elements but how many there are."""
    fake = raw.FakeParam(dtype=tf.float32, shape=[2, 3])
    drawn = raw.NonDeterministicInts(shape=tf.constant([50], tf.int64))
    again = raw.NonDeterministicInts(shape=tf.constant([50]))
    few = raw.NonDeterministicInts(shape=[0, 3], dtype=tf.uint32)
    return [
        np.array(fake.shape),
        np.array([2, 3]),
        tf.size(tf.unique(tf.concat([drawn, again], 0)).y),
        np.array(100),
        np.array(few.shape),
        np.array([0, 3]),
    ]


def _bytes(tf, values, dtype):
    plain = tf.uint8 if dtype == tf.quint8 else tf.int8
    return tf.bitcast(tf.constant(values, plain), dtype)


@formula(
    "QuantizedMatMulWithBias QuantizedMatMulWithBiasAndRelu"
    " QuantizedMatMulWithBiasAndRequantize QuantizedMatMulWithBiasAndDequantize"
    " QuantizedMatMulWithBiasAndReluAndRequantize"
)
def quantized_products(tf, raw):
    """TensorFlow has them by a library that its recorded values do without."""
    draw = np.random.RandomState(0)
    a, b = draw.randint(0, 255, (2, 3)), draw.randint(-127, 127, (3, 2))
    ranges = {"min_a": 0.0, "max_a": 2.0, "min_b": -1.0, "max_b": 1.0}
    operands = {"a": _bytes(tf, a, tf.quint8), "b": _bytes(tf, b, tf.qint8), **ranges}
    bias = tf.constant([0.5, -0.25])
    scale = 2.0 / 255 / 127
    product = a @ b + np.array([8096, -4048])  # the bias in steps of the scale
    assert product.tolist() == [[1844, 9227], [-13360, 25837]]  # TensorFlow's
    steps = tf.bitcast(tf.constant([1000, -2000]), tf.qint32)
    frozen = {"min_freezed_output": -3.0, "max_freezed_output": 3.0, "bias": bias}
    reach = 2.0**31 * scale

    def plain(made):
        made = list(tf.nest.flatten(made))
        kinds = {tf.qint32: tf.int32, tf.quint8: tf.uint8, tf.qint8: tf.int8}
        return [tf.bitcast(made[0], kinds[made[0].dtype]), *made[1:]]

    turned = {"a": _bytes(tf, a.T, tf.quint8), "b": _bytes(tf, b.T, tf.qint8)}
    whole = raw.QuantizedMatMulWithBias
    given = [
        plain(whole(**operands, bias=bias)),
        plain(whole(**operands, bias=bias, input_quant_mode="SCALED")),
        plain(whole(**operands, bias=steps)),
        plain(
            whole(**operands | turned, bias=bias, transpose_a=True, transpose_b=True)
        ),
        plain(raw.QuantizedMatMulWithBiasAndRelu(**operands, bias=bias)),
        plain(raw.QuantizedMatMulWithBiasAndRequantize(**operands, **frozen)),
        plain(
            raw.QuantizedMatMulWithBiasAndReluAndRequantize(
                **operands, **frozen | {"min_freezed_output": 0.0}
            )
        ),
        raw.QuantizedMatMulWithBiasAndDequantize(
            **operands, **frozen, Toutput=tf.float32
        ),
    ]
    cut = np.array([[10, 48], [0, 136]])
    wanted = [
        [product, -reach, reach],
        [product, -reach, reach],
        [a @ b + np.array([1000, -2000]), -reach, reach],
        [product, -reach, reach],
        [np.maximum(product, 0), -reach, reach],
        [cut, -3.0, 3.0],
        [cut, 0.0, 3.0],
        product * scale,
    ]
    flat = tf.nest.flatten(given), tf.nest.flatten(wanted)
    return [x for pair in zip(*flat, strict=True) for x in pair]


@row("RequantizePerChannel RequantizationRangePerChannel")
def ranges_of_channels(tf, raw):
    draw = np.random.RandomState(1)
    x = draw.randint(-(2**30), 2**30, (1, 2, 1, 2))
    found = []
    for values, least in ((x, -0.5), (np.abs(x), 0.0)):
        given = {
            "input": tf.bitcast(tf.constant(values, tf.int32), tf.qint32),
            "input_min": [-1.0, -2.0],
            "input_max": [1.0, 2.0],
        }
        made = tf.qint8 if least < 0 else tf.quint8
        found += raw.RequantizePerChannel(
            **given,
            requested_output_min=least,
            requested_output_max=0.5,
            out_type=made,
        )
        for clip in (6.0, 0.25):
            found += raw.RequantizationRangePerChannel(**given, clip_value_max=clip)
    return found


@row("ScatterNdAdd ScatterNdSub ScatterNdMin ScatterNdMax ScatterNdUpdate")
def slices_by_reference(tf, raw):
    def build():
        found = []
        for name in ("Add", "Sub", "Min", "Max", "Update"):
            ref = raw.VariableV2(shape=[3, 2], dtype=tf.float32)
            put = raw.Assign(ref=ref, value=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            op = getattr(raw, "ScatterNd" + name)
            found.append(op(ref=put, indices=[[2, 0], [0, 1]], updates=[0.5, 9.0]))
        return found

    return in_graph(tf, build)
