"""Collectives within one process: their errors, their order, who waits for whom."""

import ast
import itertools
import pathlib
import subprocess
import sys
import threading
import time

import headrace as tf
import pytest

raw = tf.raw_ops
_keys = itertools.count(8001)
_AGAIN = (
    "\nThe error could be from a previous operation. Restart your program to reset."
)


def _reduce(x, size, group, instance, **how):
    how = {"merge_op": "Add", "final_op": "Id", **how}
    return raw.CollectiveReduceV2(
        input=x,
        group_size=size,
        group_key=group,
        instance_key=instance,
        ordering_token=[],
        **how,
    )


def _by_device(count, call):
    given = []
    for i in range(count):
        with tf.device(f"/device:CPU:{i}"):
            given.append(call(i))
    return given


def test_eager_members_on_logical_devices():
    program = pathlib.Path(__file__).parent / "collective_program.py"
    done = subprocess.run(
        [sys.executable, program],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    lines = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    assert lines[0] == [[0, 1, 2, 3]] * 4
    assert lines[1] == lines[9] == [[2.0], [2.0]]
    assert "InternalError" in lines[2][2]
    assert "is joining a group that is already full (group_key=2)" in lines[2][2]
    for line, error, text in [
        (3, "InternalError", "Collective instance 1 expected type 0 and data_type "),
        (4, "InvalidArgumentError", "Shape mismatch in the collective instance 1. Op"),
        (5, "InternalError", "is joining a group with size"),
        (6, "InternalError", "Collective instance 1 expected type "),
        (8, "DeadlineExceededError", "Collective has timed out waiting for other work"),
    ]:
        for given in lines[line]:
            assert given.startswith(f"{error}: Collective ops is aborted by: ")
            assert text in given and _AGAIN in given
    late = "DeadlineExceededError: Collective has timed out waiting for other workers."
    assert lines[7][0].startswith(late)


def test_a_group_of_one():
    key = next(_keys)
    assert _reduce([1.0, 2.0], 1, key, 1).numpy().tolist() == [1.0, 2.0]
    assert _reduce([1.0, 2.0], 1, key, 3, final_op="Div").numpy().tolist() == [1.0, 2.0]
    token = tf.Variable(1.0).handle
    found = raw.CollectiveReduceV2(
        input=[3],
        group_size=1,
        group_key=key,
        instance_key=2,
        ordering_token=[token],
        merge_op="Max",
        final_op="Id",
        communication_hint="ring",
    )
    assert found.numpy().tolist() == [3]


def test_members_in_one_function_in_any_order():
    key = next(_keys)

    @tf.function
    def run(x):
        # The first needs what the second member has yet to give.
        return _by_device(3, lambda i: _reduce(x + float(i), 3, key, 1))

    for x in (0.0, 10.0):
        assert [y.numpy() for y in run(tf.constant(x))] == [3 * x + 3.0] * 3


def test_several_collectives_of_each_member():
    key = next(_keys)

    @tf.function
    def run(x):
        def member(i):
            total = _reduce(x * (i + 1.0), 2, key, 1)
            return _reduce(total + 1.0, 2, key, 2, merge_op="Max")

        return _by_device(2, member)

    assert [y.numpy() for y in run(tf.constant(2.0))] == [7.0, 7.0]


def test_members_in_a_loop():
    key = next(_keys)

    @tf.function
    def run(x):
        for _ in tf.range(4):
            x = (
                tf.add_n(_by_device(2, lambda _, x=x: _reduce(x, 2, key, 1))) / 4.0
                + 1.0
            )
        return x

    assert run(tf.constant(3.0)).numpy() == 7.0


def test_members_in_a_session():
    key = next(_keys)
    two = tf.compat.v1.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.compat.v1.Session(config=two) as session:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        both = _by_device(
            2,
            lambda i: raw.CollectiveGatherV2(
                input=x + [float(i)],
                group_size=2,
                group_key=key,
                instance_key=1,
                ordering_token=[],
            ),
        )
        assert both[0].shape.as_list() == [None]
        for given in session.run(both, {x: [5.0]}):
            assert given.tolist() == [5.0, 6.0]


def test_effects_of_a_function_keep_their_order():
    key = next(_keys)
    seen = tf.Variable(1.0)

    @tf.function
    def run():
        seen.assign(2.0)
        before = seen.read_value()
        both = _by_device(2, lambda i: _reduce(before, 2, key, 1))
        seen.assign_add(both[0])
        return seen.read_value(), both[1]

    assert [x.numpy() for x in run()] == [6.0, 4.0]


def test_a_member_that_is_there_twice():
    key = next(_keys)
    errors = []

    def work():
        try:
            _reduce([1.0], 2, key, 1, timeout_seconds=10.0)
        except tf.errors.OpError as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
        time.sleep(0.1)
    threads[1].join(5)
    assert [type(e) for e in errors] == [tf.errors.InvalidArgumentError]
    assert "give each member a logical device of its own" in errors[0].message
    # The first goes on waiting for another one, which may come.

    @tf.function
    def other():
        with tf.device("/device:CPU:1"):
            return _reduce([2.0], 2, key, 1)

    assert other().numpy() == [3.0]
    threads[0].join(20)
    assert not threads[0].is_alive() and len(errors) == 1


def test_a_failing_step_ends_who_waits():
    key = next(_keys)

    @tf.function
    def run(x):
        with tf.device("/device:CPU:0"):
            waits = _reduce(x, 2, key, 1)
        return waits, tf.debugging.check_numerics(x, "no number")

    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        run(tf.constant(float("nan")))


_BAD = [
    ({"size": 0}, "group_size must be positive integer but got 0"),
    ({"size": -1}, "group_size must be positive integer but got -1"),
    ({"size": [1]}, r"Unexpected dimensions on input group_size, got \[1\]"),
    ({"group": [1]}, r"Unexpected dimensions on input group_key, got \[1\]"),
    ({"instance": [1, 1]}, r"Unexpected dimensions on input instance_key, got \[2\]"),
]


@pytest.mark.parametrize("bad, text", _BAD)
def test_bad_keys(bad, text):
    good = {"size": 1, "group": next(_keys), "instance": 1}
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        _reduce([1.0], **{**good, **bad})


def _call(name, **more):
    keys = {"group_size": 1, "group_key": next(_keys), "instance_key": 1}
    if name[-2:] == "V2" and "Bcast" not in name:
        keys["ordering_token"] = []
    return getattr(raw, name)(**{**keys, **more})


@pytest.mark.parametrize(
    "name, more, error, text",
    [
        (
            "CollectiveAllToAllV2",
            {"input": [[1.0], [2.0]]},
            tf.errors.InvalidArgumentError,
            r"first dimension size \(2\) must be the same as the group size \(1\)",
        ),
        (
            "CollectiveGatherV2",
            {"input": 1.0},
            tf.errors.InvalidArgumentError,
            "Shape must be at least rank 1 but is rank 0",
        ),
        (
            "CollectiveBcastRecvV2",
            {"T": tf.float32, "shape": [-2]},
            tf.errors.InvalidArgumentError,
            "-2",
        ),
        (
            "CollectiveBcastRecvV2",
            {"T": tf.float32, "shape": [2]},
            tf.errors.InternalError,
            (
                "found no source for broadcast.  This could mean that there were "
                "group_size=1 BcastRecvs but no BcastSend"
            ),
        ),
        (
            "CollectiveBcastSend",
            {"input": [1.0, 2.0], "shape": [4]},
            tf.errors.InternalError,
            "Declared shape of op CollectiveBcastSend",
        ),
        (
            "CollectiveReduceScatterV2",
            {
                "input": [1.0, 2.0, 3.0],
                "merge_op": "Add",
                "final_op": "Id",
                "group_size": 2,
            },
            tf.errors.InvalidArgumentError,
            r"first dimension size \(3\) must be a multiple of the group size \(2\)",
        ),
    ],
)
def test_bad_tensors(name, more, error, text):
    with pytest.raises(error, match=text):
        _call(name, **more)


def test_two_who_send():
    key = next(_keys)

    @tf.function
    def run():
        return _by_device(
            2,
            lambda i: raw.CollectiveBcastSendV2(
                input=[1.0], group_size=2, group_key=key, instance_key=1
            ),
        )

    with pytest.raises(tf.errors.InternalError, match="already has source"):
        run()


def _communicator(rank, size, key):
    return raw.CollectiveInitializeCommunicator(
        group_key=key, rank=rank, group_size=size
    )


@pytest.mark.parametrize(
    "rank, size, text",
    [
        (0, 0, "group_size must be positive integer but got 0"),
        (-1, 2, "rank must be non-negative integer but got -1"),
        (2, 2, "rank must be less than group size but got 2 >= 2"),
        ([0], 2, "Unexpected dimensions on input rank"),
    ],
)
def test_bad_communicators(rank, size, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        _communicator(rank, size, next(_keys))


def test_group_assignments_of_communicators():
    door = _communicator(0, 1, next(_keys))
    with pytest.raises(tf.errors.UnimplementedError, match="not supported yet"):
        raw.CollectiveReduceV3(
            input=[1.0], communicator=door, group_assignment=[[0]], reduction="Add"
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match="wrong type"):
        raw.CollectiveReduceV3(
            input=[1.0],
            communicator=tf.Variable(1.0).handle,
            group_assignment=tf.zeros([0, 0], tf.int32),
            reduction="Add",
        )


@pytest.mark.parametrize(
    "groups, device, base, text",
    [
        ([[0, 1]], 2, 3, "device_index 2 is not found in group_assignment"),
        ([4, 5], 4, 3, r"must be a 2-d Tensor, but received tensor of shape: \[2\]"),
        ([[4, 4]], 4, 3, r"Not all items in group_assignment Tensor<type: int32"),
        ([[-1, 4]], 4, 3, "is within .0, number of devices."),
        ([[0, 1]], [0], 3, r"device_index must be a scalar, but .* shape: \[1\]"),
        ([[0, 1]], 0, [3], r"base_key must be a scalar, but .* shape: \[1\]"),
    ],
)
def test_bad_assignments(groups, device, base, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        raw.CollectiveAssignGroupV2(
            group_assignment=groups, device_index=device, base_key=base
        )


def test_shapes_in_graphs():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 3])
        keys = {"group_size": 2, "group_key": 1, "instance_key": 1}
        token = {"ordering_token": []}
        merge = {"merge_op": "Add", "final_op": "Id"}
        found = [
            raw.CollectiveReduceV2(input=x, **keys, **token, **merge),
            raw.CollectiveGatherV2(input=x, **keys, **token),
            raw.CollectiveAllToAllV2(input=x, **keys, **token),
            raw.CollectiveReduceScatterV2(input=x, **keys, **token, **merge),
            raw.CollectiveGather(input=x, shape=[4, 3], **keys),
            raw.CollectiveBcastRecv(T=tf.float32, shape=[2, 4], **keys),
            raw.CollectiveBcastRecvV2(T=tf.float32, shape=[2, 4], **keys),
        ]
        assert [y.shape.as_list() for y in found] == [
            [2, 3],
            [None, 3],
            [2, 3],
            [None, 3],
            [4, 3],
            [2, 4],
            [2, 4],
        ]
        with pytest.raises(LookupError, match="No gradient defined"):
            tf.compat.v1.gradients(found[0], [x])


@pytest.mark.parametrize(
    "target, error, text",
    [
        ("/GPU:0", tf.errors.InternalError, "instantiating functions on device"),
        ("/job:worker/task:1", tf.errors.InternalError, "on device: /job:worker"),
        ("bogus", tf.errors.InvalidArgumentError, "Could not parse bogus into a"),
        (["/CPU:0"], tf.errors.InvalidArgumentError, "target must be a scalar"),
    ],
)
def test_bad_targets_of_calls(target, error, text):
    f = tf.function(lambda x: x * x).get_concrete_function(
        tf.TensorSpec([], tf.float32)
    )
    with pytest.raises(error, match=text):
        raw.RemoteCall(target=target, args=[1.0], Tout=[tf.float32], f=f)


def test_calls_that_do_not_fit():
    f = tf.function(lambda x: x * x).get_concrete_function(
        tf.TensorSpec([], tf.float32)
    )
    one = tf.constant(1.0)
    for args, types in (
        ([one, one], [tf.float32]),
        ([one], [tf.float32, tf.float32]),
        ([one], [tf.int32]),
        ([tf.constant(1)], [tf.float32]),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError):
            raw.RemoteCall(target="/CPU:0", args=args, Tout=types, f=f)
