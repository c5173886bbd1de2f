"""Rows of lists, arrays, stacks and maps of tensors."""

import numpy as np
from rows import row


def _items(tf, n=3):
    return tf.constant(np.arange(2.0 * n).reshape(n, 2), tf.float32)


def _list(tf, raw, n=3):
    return raw.TensorListFromTensor(tensor=_items(tf, n), element_shape=[2])


def _stack(tf, raw, made):
    return raw.TensorListStack(
        input_handle=made, element_shape=[2], element_dtype=tf.float32, num_elements=-1
    )


@row("TensorListFromTensor TensorListStack TensorListLength TensorListElementShape")
def list_from_tensor(tf, raw):
    made = _list(tf, raw)
    return [
        _stack(tf, raw, made),
        raw.TensorListLength(input_handle=made),
        raw.TensorListElementShape(input_handle=made, shape_type=tf.int64),
    ]


@row("TensorListReserve TensorListSetItem TensorListGetItem TensorListResize")
def list_with_gaps(tf, raw):
    made = raw.TensorListReserve(
        element_shape=[2], num_elements=2, element_dtype=tf.float32
    )
    made = raw.TensorListSetItem(input_handle=made, index=1, item=[5.0, 6.0])
    made = raw.TensorListResize(input_handle=made, size=4)
    made = raw.TensorListSetItem(
        input_handle=made, index=5, item=[7.0, 8.0], resize_if_index_out_of_bounds=True
    )
    items = [
        raw.TensorListGetItem(
            input_handle=made, index=i, element_shape=[2], element_dtype=tf.float32
        )
        for i in (0, 1)
    ]
    return [_stack(tf, raw, made), *items]


@row("EmptyTensorList TensorListPushBack TensorListPopBack")
def list_pushes(tf, raw):
    made = raw.EmptyTensorList(
        element_shape=[2], max_num_elements=4, element_dtype=tf.float32
    )
    for i in range(3):
        made = raw.TensorListPushBack(input_handle=made, tensor=[i + 0.5, i - 1.0])
    made, last = raw.TensorListPopBack(
        input_handle=made, element_shape=[2], element_dtype=tf.float32
    )
    return [_stack(tf, raw, made), last]


@row("TensorListScatter TensorListScatterV2 TensorListScatterIntoExistingList")
def list_scatter(tf, raw):
    old = raw.TensorListScatter(tensor=_items(tf), indices=[2, 0, 3], element_shape=[2])
    new = raw.TensorListScatterV2(
        tensor=_items(tf), indices=[2, 0, 3], element_shape=[2], num_elements=5
    )
    again = raw.TensorListScatterIntoExistingList(
        input_handle=_list(tf, raw, 4), tensor=_items(tf, 2) * 10.0, indices=[3, 1]
    )
    return [_stack(tf, raw, x) for x in (old, new, again)]


@row("TensorListGather")
def list_gather(tf, raw):
    return raw.TensorListGather(
        input_handle=_list(tf, raw),
        indices=[2, 0, 2],
        element_shape=[2],
        element_dtype=tf.float32,
    )


@row("TensorListSplit TensorListConcat TensorListConcatV2")
def list_split(tf, raw):
    made = raw.TensorListSplit(
        tensor=_items(tf, 5),
        element_shape=[-1, 2],
        lengths=tf.constant([2, 0, 3], tf.int64),
    )
    both = raw.TensorListConcat(
        input_handle=made, element_dtype=tf.float32, element_shape=[None, 2]
    )
    new = raw.TensorListConcatV2(
        input_handle=made,
        element_shape=[-1, 2],
        leading_dims=tf.constant([2, 0, 3], tf.int64),
        element_dtype=tf.float32,
    )
    return [*both, *new]


@row("TensorListConcatLists TensorListPushBackBatch")
def list_of_lists(tf, raw):
    joined = raw.TensorListConcatLists(
        input_a=_list(tf, raw), input_b=_list(tf, raw, 1), element_dtype=tf.float32
    )
    pair = tf.stack([_list(tf, raw, 1), _list(tf, raw, 2)])
    pushed = raw.TensorListPushBackBatch(
        input_handles=pair, tensor=[[7.0, 8.0], [9.0, 1.0]]
    )
    return [_stack(tf, raw, x) for x in (joined, pushed[0], pushed[1])]


@row(
    "EmptyTensorMap TensorMapInsert TensorMapErase TensorMapHasKey TensorMapLookup"
    " TensorMapSize TensorMapStackKeys"
)
def tensor_map(tf, raw):
    made = raw.EmptyTensorMap()
    for i in range(3):
        made = raw.TensorMapInsert(
            input_handle=made, key=tf.constant(i), value=tf.constant([i, 2.5])
        )
    made = raw.TensorMapErase(
        input_handle=made, key=tf.constant(1), value_dtype=tf.float32
    )
    keys = raw.TensorMapStackKeys(input_handle=made, key_dtype=tf.int32)
    return [
        raw.TensorMapHasKey(input_handle=made, key=tf.constant(1)),
        raw.TensorMapHasKey(input_handle=made, key=tf.constant(2)),
        raw.TensorMapLookup(
            input_handle=made, key=tf.constant(2), value_dtype=tf.float32
        ),
        raw.TensorMapSize(input_handle=made),
        tf.sort(keys),
    ]


@row(
    "TensorArrayV3 TensorArrayWriteV3 TensorArrayReadV3 TensorArraySizeV3"
    " TensorArrayGatherV3 TensorArrayScatterV3 TensorArrayGradV3 TensorArrayCloseV3"
    " TensorArrayConcatV3 TensorArraySplitV3"
)
def tensor_array(tf, raw):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        handle, flow = raw.TensorArrayV3(
            size=3, dtype=tf.float32, clear_after_read=False
        )
        flow = raw.TensorArrayWriteV3(
            handle=handle, index=1, value=[1.0, 2.0], flow_in=flow
        )
        flow = raw.TensorArrayScatterV3(
            handle=handle, indices=[0, 2], value=_items(tf, 2), flow_in=flow
        )
        grad, grad_flow = raw.TensorArrayGradV3(
            handle=handle, flow_in=flow, source="gradients"
        )
        for value in ([1.0, 1.0], [0.5, 2.0]):
            grad_flow = raw.TensorArrayWriteV3(
                handle=grad, index=2, value=value, flow_in=grad_flow
            )
        parts, parts_flow = raw.TensorArrayV3(
            size=2, dtype=tf.float32, clear_after_read=False
        )
        parts_flow = raw.TensorArraySplitV3(
            handle=parts,
            value=[[1.0], [2.0], [3.0]],
            lengths=tf.constant([1, 2], tf.int64),
            flow_in=parts_flow,
        )
        results = [
            raw.TensorArrayReadV3(
                handle=parts, index=1, flow_in=parts_flow, dtype=tf.float32
            ),
            *raw.TensorArrayConcatV3(
                handle=parts, flow_in=parts_flow, dtype=tf.float32
            ),
            raw.TensorArrayReadV3(
                handle=handle, index=1, flow_in=flow, dtype=tf.float32
            ),
            raw.TensorArrayGatherV3(
                handle=handle, indices=[2, 0], flow_in=flow, dtype=tf.float32
            ),
            raw.TensorArraySizeV3(handle=handle, flow_in=flow),
            raw.TensorArrayReadV3(
                handle=grad, index=2, flow_in=grad_flow, dtype=tf.float32
            ),
        ]
        with tf.control_dependencies(results):
            closed = raw.TensorArrayCloseV3(handle=handle)
        return session.run([results, closed])[0]


@row("StackV2 StackPushV2 StackPopV2 StackCloseV2")
def stack(tf, raw):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        handle = raw.StackV2(max_size=4, elem_type=tf.float32, stack_name="s")
        first = raw.StackPushV2(handle=handle, elem=[1.0, 2.0])
        with tf.control_dependencies([first]):
            second = raw.StackPushV2(handle=handle, elem=[3.0, 4.0])
        with tf.control_dependencies([second]):
            top = raw.StackPopV2(handle=handle, elem_type=tf.float32)
        with tf.control_dependencies([top]):
            below = raw.StackPopV2(handle=handle, elem_type=tf.float32)
        with tf.control_dependencies([below]):
            closed = raw.StackCloseV2(handle=handle)
        return session.run([first, second, top, below, closed])[:4]
