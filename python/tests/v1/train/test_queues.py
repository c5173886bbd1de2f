"""Queues, readers and the threads that fill queues, in sessions."""

import threading
import time

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as found:
        yield found


def in_thread(function):
    """Calls it in a thread: (the thread, what it gave or raised)."""
    found = []

    def run():
        try:
            found.append(function())
        except tf.errors.OpError as e:
            found.append(type(e))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


def ended(thread):
    thread.join(20)
    return not thread.is_alive()


def test_names_and_shapes(session):
    q = v1.FIFOQueue(3, [tf.float32, tf.int32], shapes=[[], [2]])
    one, many, some = q.dequeue(), q.dequeue_many(2), q.dequeue_up_to(2)
    assert [t.shape.as_list() for t in one] == [[], [2]]
    assert [t.shape.as_list() for t in many] == [[2], [2, 2]]
    assert [t.shape.as_list() for t in some] == [[None], [None, 2]]
    names = [q.enqueue([1.0, [1, 2]]).name, q.size().name, q.close().name]
    assert names == ["fifo_queue_enqueue", "fifo_queue_Size:0", "fifo_queue_Close"]


def test_padding(session):
    q = v1.PaddingFIFOQueue(5, [tf.int32, tf.string], shapes=[[None, None], []])
    x = v1.placeholder(tf.int32, [None, None])
    put = q.enqueue([x, "a"])
    for value in ([[1]], [[1, 2, 3]], [[4, 5], [6, 7]]):
        session.run(put, {x: value})
    batch = q.dequeue_many(3)
    assert batch[0].shape.as_list() == [3, None, None]
    numbers, texts = session.run(batch)
    assert numbers.tolist() == [
        [[1, 0, 0], [0, 0, 0]],
        [[1, 2, 3], [0, 0, 0]],
        [[4, 5, 0], [6, 7, 0]],
    ]
    assert texts.tolist() == [b"a"] * 3
    with pytest.raises(ValueError, match="defined rank"):
        v1.PaddingFIFOQueue(5, [tf.int32], [tf.TensorShape(None)])


def test_random_order_is_upstreams(session):
    q = v1.RandomShuffleQueue(20, 2, tf.int32, shapes=[[]], seed=3)
    session.run(q.enqueue_many([list(range(12))]))
    assert session.run(q.dequeue_many(4)).tolist() == [11, 3, 0, 8]
    assert [session.run(q.dequeue()) for _ in range(3)] == [7, 10, 2]
    four = q.dequeue_many(4)
    thread, found = in_thread(lambda: session.run(four))  # as 2 stay behind
    time.sleep(0.1)
    assert not found
    session.run(q.close())
    assert ended(thread) and found[0].tolist() == [5, 1, 4, 9]
    with pytest.raises(tf.errors.InvalidArgumentError, match="min_after_dequeue"):
        session.run(v1.RandomShuffleQueue(5, 10, tf.int32).size())


def test_priorities(session):
    q = v1.PriorityQueue(20, [tf.string], [[]])
    session.run(q.enqueue_many([np.array([3, 1, 2, 1]), ["c", "a", "b", "z"]]))
    assert [session.run(q.dequeue()) for _ in range(4)] == [
        [1, b"a"],
        [1, b"z"],
        [2, b"b"],
        [3, b"c"],
    ]


def test_waiting_ends(session):
    q = v1.FIFOQueue(1, tf.int32, shapes=[[]])
    put, take = q.enqueue(1), q.dequeue()
    thread, found = in_thread(lambda: session.run(take))
    session.run(put)
    assert ended(thread) and found == [1]
    thread, found = in_thread(lambda: session.run(take))
    time.sleep(0.1)
    session.run(q.close())
    assert ended(thread) and found == [tf.errors.OutOfRangeError]
    full = v1.FIFOQueue(1, tf.int32, shapes=[[]])
    put = full.enqueue(1)
    session.run(put)
    thread, found = in_thread(lambda: session.run(put))
    time.sleep(0.1)
    session.run(full.close(cancel_pending_enqueues=True))
    assert ended(thread) and found == [tf.errors.CancelledError]
    empty = v1.FIFOQueue(1, tf.int32, shapes=[[]])
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(empty.dequeue(), options=v1.RunOptions(timeout_in_ms=100))


def test_closing_the_session_ends_its_runs():
    with tf.Graph().as_default():
        take = v1.FIFOQueue(1, tf.int32, shapes=[[]]).dequeue()
        session = v1.Session()
        thread, found = in_thread(lambda: session.run(take))
        time.sleep(0.2)
        session.close()
        assert ended(thread) and found == [tf.errors.CancelledError]


def _fifo(session, shapes=(), **kwargs):
    arguments = {"capacity": 10, "dtypes": tf.float32, "shared_name": "s", **kwargs}
    return v1.FIFOQueue(shapes=shapes or None, **arguments)


def _padding(session, shapes, capacity=10):
    return v1.PaddingFIFOQueue(capacity, [tf.float32], shapes, shared_name="s")


def _shuffled(session, kept=4, **kwargs):
    return v1.RandomShuffleQueue(10, kept, tf.float32, shared_name="s", **kwargs)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            {},
            {"capacity": 15},
            "Shared queue 's' has capacity 10 but requested capacity was 15",
        ),
        (
            {},
            {"dtypes": (tf.float32, tf.int32)},
            "Shared queue 's' has component types float but requested component types "
            "were float, int32",
        ),
        (
            {"shapes": [(1, 1, 2, 3)]},
            {},
            r"Shared queue 's' has component shapes \[\[1,1,2,3\]\] but requested component "
            r"shapes were \[\]",
        ),
        (
            {"make": _padding, "shapes": [[3]]},
            {"make": _padding, "shapes": [[2, 2]]},
            r"component shapes \[\[3\]\] but requested component shapes were \[\[2,2\]\]",
        ),
        (
            {"make": _shuffled},
            {"make": _shuffled, "kept": 5},
            "has min_after_dequeue 4 but requested min_after_dequeue was 5.",
        ),
        (
            {"make": _shuffled, "seed": 1},
            {"make": _shuffled, "seed": 2},
            r"has random seeds \(87654321, 1\) but requested seeds are \(87654321, 2\).",
        ),
        ({}, {"make": _shuffled}, "Expected FIFOQueue, found RandomShuffleQueueV2"),
    ],
)
def test_one_name_is_one_queue(session, first, second, text):
    def queue(make=_fifo, **given):
        return make(session, **given)

    a, same, other = queue(**first), queue(**first), queue(**second)
    assert session.run(a.size()) == session.run(same.size()) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        session.run(other.size())


def test_shared_queues_that_pad_may_know_less_of_their_shapes(session):
    a, b = _padding(session, [[None]]), _padding(session, [[2]])
    session.run(a.enqueue([[1.0, 2.0]]))
    assert session.run(b.size()) == 1


def test_names_and_places_of_a_queue_s_operations():
    with tf.Graph().as_default() as graph, tf.device("/job:ps/task:1"):
        q = tf.queue.FIFOQueue(10, tf.float32, name="Q")
        with tf.device(None):
            q.enqueue(1.0)
            q.enqueue_many([[1.0]])
            q.dequeue_many(2)
    found = [(o.name, o.type, o.device) for o in graph.get_operations()]
    assert found == [
        ("Q", "FIFOQueueV2", "/job:ps/task:1/device:CPU:*"),
        ("Q_enqueue/component_0", "Const", ""),
        ("Q_enqueue", "QueueEnqueueV2", ""),
        ("Q_EnqueueMany/component_0", "Const", ""),
        ("Q_EnqueueMany", "QueueEnqueueManyV2", ""),
        ("Q_DequeueMany/n", "Const", ""),
        ("Q_DequeueMany", "QueueDequeueManyV2", ""),
    ]


@pytest.mark.parametrize(
    ("vals", "text"),
    [
        ((7, [[1, 2], [3, 4]]), r"Shape \(\) must have rank at least 1"),
        (([1, 2, 3], [[1, 2], [3, 4]]), "Dimensions 3 and 2 are not compatible"),
        (([1, 2], [[1, 2, 3], [4, 5, 6]]), "are incompatible"),
    ],
)
@pytest.mark.parametrize("eager", [True, False])
def test_rows_that_differ_are_told_at_once(vals, text, eager):
    with tf.init_scope() if eager else tf.Graph().as_default():
        q = tf.queue.FIFOQueue(10, (tf.int32, tf.int32), ((), 2))
        with pytest.raises(ValueError, match=text):
            q.enqueue_many(vals)


def test_rows_that_differ_at_the_run(session):
    q = tf.queue.FIFOQueue(10, (tf.int32, tf.int32), ((2, 2), (3, 3)))
    rows = v1.placeholder(tf.int32)
    put = q.enqueue_many((np.ones((2, 2, 2)), rows))
    for shape in ((2, 3, 4), (3, 3, 3)):
        text = rf"component 1. Expected \[2,3,3\], got \[{shape[0]},3,{shape[2]}\]"
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            session.run(put, {rows: np.ones(shape)})


@pytest.mark.parametrize("eager", [True, False])
def test_a_function_s_queue_is_made_once_outside_of_it(eager):
    class Holder(tf.Module):
        q = None

        @tf.function
        def put(self, x):
            if self.q is None:
                self.q = tf.queue.FIFOQueue(10, tf.int32, shapes=[()])
            self.q.enqueue(x)
            self.q.enqueue(x + 3)
            return self.q.dequeue()

    holder = Holder()
    if eager:
        assert [holder.put(tf.constant(i)).numpy() for i in (2, 3)] == [2, 5]
        assert holder.q.size().numpy() == 2
        return
    with tf.Graph().as_default(), v1.Session() as session:
        put = holder.put(tf.constant(2))
        assert [session.run(put) for _ in range(2)] == [2, 5]
        assert session.run(holder.q.size()) == 2


def test_a_queue_of_a_list(session):
    a, b = (v1.FIFOQueue(3, tf.int32, shapes=[[]], name=n) for n in "ab")
    session.run([a.enqueue(1), b.enqueue(2)])
    which = v1.placeholder(tf.int32, [])
    take = tf.queue.QueueBase.from_list(which, [a, b]).dequeue()
    assert [session.run(take, {which: i}) for i in (1, 0)] == [2, 1]


def records(session, reader, names):
    q = v1.FIFOQueue(10, tf.string)
    read = reader.read(q)
    session.run(q.enqueue_many([names]))
    session.run(q.close())
    found = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            found.append(tuple(x.decode() for x in session.run(read)))
    counts = (reader.num_records_produced(), reader.num_work_units_completed())
    assert session.run(counts) == (len(found), len(names))
    return found


def test_readers(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("h\nx,1\r\ny,2\n")
    (tmp_path / "b.txt").write_text("h\nz,3")
    (tmp_path / "f.bin").write_bytes(b"HHaabbccF")
    with tf.io.TFRecordWriter("r") as writer:
        writer.write(b"one")
        writer.write(b"two")
    both = ["a.txt", "b.txt"]
    lines = [("a.txt:2", "x,1"), ("a.txt:3", "y,2"), ("b.txt:2", "z,3")]
    assert records(session, v1.TextLineReader(skip_header_lines=1), both) == lines
    found = records(session, v1.TFRecordReader(), ["r"])
    assert found == [("r:0", "one"), ("r:19", "two")]
    whole = records(session, v1.WholeFileReader(), ["b.txt"])
    assert whole == [("b.txt", "h\nz,3")]
    fixed = v1.FixedLengthRecordReader(2, header_bytes=2, footer_bytes=1)
    assert [v for _, v in records(session, fixed, ["f.bin"])] == ["aa", "bb", "cc"]
    hops = v1.FixedLengthRecordReader(2, 2, 1, hop_bytes=1)
    values = [v for _, v in records(session, hops, ["f.bin"])]
    assert values == ["aa", "ab", "bb", "bc", "cc"]
    assert records(session, v1.IdentityReader(), ["p"]) == [("p", "p")]
    with pytest.raises(tf.errors.InvalidArgumentError, match="record_bytes"):
        session.run(v1.FixedLengthRecordReader(0).reset())


def test_reader_state(session):
    reader, q = v1.IdentityReader(), v1.FIFOQueue(10, tf.string, shapes=[[]])
    read = reader.read_up_to(q, 3)
    session.run(q.enqueue_many([["a", "b", "c"]]))
    session.run(read)
    state = session.run(reader.serialize_state())
    session.run(read)
    session.run(reader.restore_state(state))
    assert session.run(reader.num_records_produced()) == 1
    for cut in range(1, len(state)):
        try:
            session.run(reader.restore_state(state[:cut]))
        except tf.errors.InvalidArgumentError:
            pass
    session.run(reader.reset())
    assert session.run(reader.num_work_units_completed()) == 0
    with pytest.raises(tf.errors.UnimplementedError):
        session.run(v1.TextLineReader().serialize_state())


def test_a_pipeline_of_threads(session, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2,0\n3,4,1\n5,6,0\n7,8,1\n")
    q = v1.train.string_input_producer([str(path)], shuffle=False)
    _, line = v1.TextLineReader().read(q)
    a, b, label = tf.io.decode_csv(line, [[0.0], [0.0], [0]])
    x, y = v1.train.batch([tf.stack([a, b]), label], batch_size=4)
    coord = v1.train.Coordinator()
    threads = v1.train.start_queue_runners(coord=coord)
    for _ in range(2):
        found = session.run([x, y])
        assert found[0].tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
        assert found[1].tolist() == [0, 1, 0, 1]
    coord.request_stop()
    coord.join(threads)
    assert all(ended(t) for t in threads)


def test_epochs_end(session):
    i = v1.train.range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
    batches = v1.train.batch([i, i * 2], 3, allow_smaller_final_batch=True)
    session.run(v1.local_variables_initializer())
    coord = v1.train.Coordinator()
    threads = v1.train.start_queue_runners(session, coord)
    found = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            found.append(session.run(batches)[1].tolist())
    coord.request_stop()
    coord.join(threads)
    assert found == [[0, 2, 4], [6, 8, 10], [12]]


def test_monitored_sessions_start_runners():
    with tf.Graph().as_default():
        i = v1.train.range_input_producer(3, num_epochs=2, shuffle=False).dequeue()
        found = []
        with v1.train.MonitoredTrainingSession() as session:
            while not session.should_stop():
                found.append(int(session.run(i)))
        assert found == [0, 1, 2, 0, 1, 2]


def test_what_a_thread_raises_reaches_join(session):
    q = v1.FIFOQueue(2, tf.float32, shapes=[[]])
    x = tf.debugging.check_numerics(tf.constant(np.nan), "bad")
    v1.train.add_queue_runner(v1.train.QueueRunner(q, [q.enqueue(x)]))
    coord = v1.train.Coordinator()
    threads = v1.train.start_queue_runners(session, coord)
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
        coord.join(threads)


def test_not_in_eager():
    with pytest.raises(RuntimeError, match="tf.data"):
        v1.train.string_input_producer(["a"])
    with pytest.raises(RuntimeError, match="tf.data"):
        v1.TextLineReader()


# --- calls that wait for each other, in threads ---


def test_more_are_taken_than_there_is_room_for():
    with tf.Graph().as_default(), v1.Session() as session:
        queue = v1.FIFOQueue(2, tf.int32, [[]])
        take, one = queue.dequeue_many(4), queue.dequeue()
        put = [queue.enqueue([i]) for i in range(5)]
        thread, found = in_thread(lambda: session.run(take).tolist())
        time.sleep(0.1)
        other, later = in_thread(lambda: session.run(one))  # behind the first
        for op in put:
            session.run(op)
        assert ended(thread) and ended(other)
        assert found == [[0, 1, 2, 3]] and later == [4]


def test_more_are_put_in_than_there_is_room_for():
    with tf.Graph().as_default(), v1.Session() as session:
        queue = v1.FIFOQueue(5, tf.int32, [[]])
        put, one, size = (
            queue.enqueue_many([list(range(12))]),
            queue.dequeue(),
            queue.size(),
        )
        thread, found = in_thread(lambda: session.run(put))
        assert session.run(one) == 0  # as many as there is room for come at once
        while session.run(size) < 5:
            time.sleep(0.01)
        assert found == []
        assert [session.run(one) for _ in range(11)] == list(range(1, 12))
        assert ended(thread)
        assert found == [None] and session.run(size) == 0


@pytest.mark.parametrize("kind", ["FIFOQueue", "PriorityQueue"])
def test_what_a_call_that_fails_took_is_put_back(kind):
    with tf.Graph().as_default(), v1.Session() as session:
        if kind == "FIFOQueue":
            queue = v1.FIFOQueue(10, [tf.int64, tf.string], [[], []])
        else:
            queue = v1.PriorityQueue(10, [tf.string], [[]])
        put = queue.enqueue_many([np.int64([1, 1, 2]), ["a", "b", "c"]])
        take, rest = queue.dequeue_many(4), queue.dequeue_up_to(4)
        session.run(put)
        options = v1.RunOptions(timeout_in_ms=50)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(take, options=options)
        session.run(queue.close())
        with pytest.raises(
            tf.errors.OutOfRangeError, match=r"\(requested 4, current size 3\)"
        ):
            session.run(take)
        assert session.run(rest)[1].tolist() == [b"a", b"b", b"c"]


def test_who_waits_for_room_goes_on_behind_the_close():
    with tf.Graph().as_default(), v1.Session() as session:
        queue = v1.FIFOQueue(2, tf.int32, [[]])
        put, take = queue.enqueue_many([[1, 2, 3, 4]]), queue.dequeue_many(4)
        thread, found = in_thread(lambda: session.run(put))
        while session.run(queue.size()) < 2:
            time.sleep(0.01)
        session.run(queue.close())
        assert session.run(take).tolist() == [1, 2, 3, 4]
        assert ended(thread)
        assert found == [None]


REFUSED = [
    (lambda: v1.FIFOQueue(9, [tf.int32], [[None, 3]]), "All shapes must be fully defined: [TensorShape([None, 3])]"),
    (lambda: v1.FIFOQueue(9, [tf.int32], [tf.TensorShape(None)]), "All shapes must be fully defined: [TensorShape(None)]"),
    (lambda: v1.RandomShuffleQueue(9, 2, [tf.int32], [[None]]), "All shapes must be fully defined: [TensorShape([None])]"),
    (lambda: v1.PriorityQueue(9, [tf.int32], [[None]]), "All shapes must be fully defined: [TensorShape([None])]"),
    (lambda: v1.PaddingFIFOQueue(9, [tf.int32] * 2, [[2]]), "Shapes must be provided for all components, but received 2 dtypes and 1 shapes."),
    (lambda: v1.FIFOQueue(9, [tf.int32], [[1]], ["a", "b"]), "List of names must have the same length as the list of dtypes, received len(names)=2,len(dtypes)=1"),
]  # fmt: skip


@pytest.mark.parametrize("make, text", REFUSED)
def test_shapes_and_names_that_queues_refuse(make, text):
    with tf.Graph().as_default(), pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == text


def _with_runner():
    """A MetaGraphDef of a queue in the scope "in" that a runner fills, and the runner's
    proto."""
    with tf.Graph().as_default():
        with v1.name_scope("in"):
            queue = v1.FIFOQueue(3, tf.int32, shapes=[])
            runner = v1.train.QueueRunner(
                queue,
                [queue.enqueue(1), queue.enqueue(1)],
                queue_closed_exception_types=(
                    tf.errors.OutOfRangeError,
                    tf.errors.CancelledError,
                ),
            )
            v1.train.add_queue_runner(runner)
            queue.dequeue(name="taken")
        meta = v1.train.export_meta_graph()
        part = v1.train.export_meta_graph(export_scope="in")
        assert runner.to_proto("other") is None
        return meta, part, runner.to_proto(), runner.to_proto("in")


def test_runners_as_protos():
    meta, _, proto, within = _with_runner()
    assert (
        str(proto).split()
        == (
            'queue_name: "in/fifo_queue" enqueue_op_name: "in/fifo_queue_enqueue" '
            'enqueue_op_name: "in/fifo_queue_enqueue_1" '
            'close_op_name: "in/fifo_queue_Close" cancel_op_name: "in/fifo_queue_Close_1" '
            "queue_closed_exception_types: OUT_OF_RANGE "
            "queue_closed_exception_types: CANCELLED"
        ).split()
    )
    assert within.queue_name == "fifo_queue"
    assert list(within.enqueue_op_name) == [
        "fifo_queue_enqueue",
        "fifo_queue_enqueue_1",
    ]
    with tf.Graph().as_default():
        v1.train.import_meta_graph(meta)
        proto.ClearField("queue_closed_exception_types")
        runner = v1.train.QueueRunner(queue_runner_def=proto)
        assert runner.queue.type == "FIFOQueueV2"
        assert runner.cancel_op.name == "in/fifo_queue_Close_1"
        assert runner.queue_closed_exception_types == (tf.errors.OutOfRangeError,)
        with pytest.raises(KeyError, match="nope/in/fifo_queue"):
            v1.train.QueueRunner.from_proto(proto, import_scope="nope")
        with pytest.raises(ValueError, match="are mutually exclusive"):
            v1.train.QueueRunner(runner.queue, [1], queue_runner_def=proto)
        with pytest.raises(TypeError, match="must be a QueueRunnerDef, but saw: 5"):
            v1.train.QueueRunner(queue_runner_def=5)


@pytest.mark.parametrize("scope", [None, "imported"])
@pytest.mark.parametrize("part", [False, True])
def test_runners_of_imported_graphs_fill_their_queues(scope, part):
    meta, within, _, _ = _with_runner()
    with tf.Graph().as_default():
        v1.train.import_meta_graph(within if part else meta, import_scope=scope)
        (runner,) = v1.get_collection(v1.GraphKeys.QUEUE_RUNNERS)
        taken = "/".join(filter(None, [scope, "" if part else "in", "taken:0"]))
        with v1.Session() as session:
            coordinator = v1.train.Coordinator()
            threads = v1.train.start_queue_runners(session, coordinator)
            assert len(threads) == 3
            assert [session.run(taken) for _ in range(9)] == [1] * 9
            coordinator.request_stop()
            coordinator.join(threads)
    assert runner.exceptions_raised == []
