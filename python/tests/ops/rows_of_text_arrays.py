"""Rows of arrays that two strings name, as graphs of versions 16 to 26 have them."""

import numpy as np
from rows import formula, in_graph, old_graph

_VALUE = np.float32([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def _nodes(tf):
    kind, types = {"dtype": tf.float32}, {"T": tf.float32}
    flow, size = np.float32(0), [np.int32(3)]
    keep = kind | {"clear_after_read": False}
    rows, lengths = np.int32([2, 0, 1]), np.int64([1, 0, 1])
    return [
        ("array", "TensorArrayV2", size, keep),
        ("put", "TensorArrayScatterV2", ["array", rows, _VALUE, flow], types),
        ("one", "TensorArrayReadV2", ["array", np.int32(1), "put"], kind),
        ("some", "TensorArrayGatherV2", ["array", np.int32([1, 2]), "put"], kind),
        ("joined", "TensorArrayConcatV2", ["array", "put"], kind),
        ("size", "TensorArraySizeV2", ["array", "put"], {}),
        ("other", "TensorArrayV2", size, kind),
        ("cut", "TensorArraySplitV2", ["other", _VALUE[0], lengths, flow], types),
        ("piece", "TensorArrayReadV2", ["other", np.int32(2), "cut"], kind),
        ("grad", "TensorArrayGradV2", ["array", "put"], {"source": b"g"}),
        ("w", "TensorArrayWriteV2", ["grad", np.int32(1), _VALUE[1], flow], types),
        ("w2", "TensorArrayWriteV2", ["grad", np.int32(1), _VALUE[2], "w"], types),
        ("sum", "TensorArrayReadV2", ["grad", np.int32(1), "w2"], kind),
        ("end", "TensorArrayCloseV2", ["other", "^piece"], {}),
    ]


@formula(
    "TensorArrayV2 TensorArrayScatterV2 TensorArrayReadV2 TensorArrayGatherV2"
    " TensorArrayConcatV2 TensorArraySizeV2 TensorArraySplitV2 TensorArrayGradV2"
    " TensorArrayWriteV2 TensorArrayCloseV2"
)
def arrays_by_text(tf, raw):
    names = "one some joined:0 joined:1 size piece sum".split()
    fetches = [[n if ":" in n else n + ":0" for n in names]]
    found = old_graph(tf, raw, 20, _nodes(tf), fetches)
    ended = old_graph(tf, raw, 20, _nodes(tf), [["piece:0", "end"]])
    wanted = [
        _VALUE[2],
        _VALUE[[2, 0]],
        _VALUE[[1, 2, 0]].reshape(-1),
        np.int64([2, 2, 2]),
        np.int32(3),
        _VALUE[0, 1:],
        _VALUE[1] + _VALUE[2],
    ]
    pairs = [x for pair in zip(found, wanted, strict=True) for x in pair]
    return [*pairs, ended[0], _VALUE[0, 1:]]


@formula("TensorArrayGrad")
def gradients_by_reference(tf, raw):
    kind, types, flow = {"dtype": tf.float32}, {"T": tf.float32}, np.float32(0)
    nodes = [
        ("array", "TensorArray", [np.int32(1)], kind),
        ("put", "TensorArrayWrite", ["array", np.int32(0), _VALUE[0], flow], types),
        ("grad", "TensorArrayGrad", ["array", "put"], {"source": b"g"}),
        ("w", "TensorArrayWrite", ["grad", np.int32(0), _VALUE[1], flow], types),
        ("w2", "TensorArrayWrite", ["grad", np.int32(0), _VALUE[2], "w"], types),
        ("sum", "TensorArrayRead", ["grad", np.int32(0), "w2"], kind),
    ]
    found = old_graph(tf, raw, 15, nodes, [["sum:0"]])
    return [found[0], _VALUE[1] + _VALUE[2]]


@formula("TensorArrayGradWithShape")
def gradients_of_several(tf, raw):
    """TensorFlow's values."""

    def build():
        handle, flow = raw.TensorArrayV3(size=2, dtype=tf.float32, element_shape=[2])
        flow = raw.TensorArrayWriteV3(
            handle=handle, index=0, value=[1.0, 2.0], flow_in=flow
        )
        grad, flow = raw.TensorArrayGradWithShape(
            handle=handle, flow_in=flow, shape_to_prepend=[3], source="g"
        )
        for _ in range(2):
            flow = raw.TensorArrayWriteV3(
                handle=grad, index=0, value=tf.ones([3, 2]), flow_in=flow
            )
        return [
            raw.TensorArrayReadV3(handle=grad, index=i, flow_in=flow, dtype=tf.float32)
            for i in range(2)
        ]

    first, second = in_graph(tf, build)
    twos, zeros = np.full([3, 2], 2, np.float32), np.zeros([3, 2], np.float32)
    return [first, twos, second, zeros]
