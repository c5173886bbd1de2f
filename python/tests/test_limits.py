"""Limits of the system end in errors, never the process."""

import os
import stat

import headrace as tf
import limited
import pytest

# Ops that share their loops among threads and allocate inside.
_WORK = """
def use_everything():
    x = tf.random.stateless_normal([300, 300], [1, 2])
    assert np.isfinite(tf.matmul(x, x)).all()
    assert tf.reduce_sum(tf.ones([3000, 1000])) == 3e6
    assert tf.sort(tf.reshape(x, [-1]))[0] == tf.reduce_min(x)
    d = tf.data.Dataset.range(20).map(lambda v: v + 1, num_parallel_calls=4)
    assert sum(int(v) for v in d.batch(3, True).unbatch().prefetch(2)) == 171
    d = tf.data.Dataset.range(9).map(lambda v: v * v, tf.data.AUTOTUNE)
    assert [int(v) for v in d.prefetch(tf.data.AUTOTUNE)] == [i * i for i in range(9)]
    it = iter(d)
    next(it)
    del it
    f = tf.function(lambda v: tf.nn.softmax(v @ v))
    assert abs(float(tf.reduce_sum(f(x))) - 300) < 1e-2
"""


def test_what_a_parallel_loop_allocates_is_an_error_where_memory_ends():
    program = """
    tf.config.threading.set_intra_op_parallelism_threads(2)
    x = tf.zeros([4, 2, 2_000_000], tf.uint8)
    tf.argmax(tf.zeros([4, 2, 20000], tf.uint8), 1)  # threads are there
    time.sleep(0.1)
    seen = set()
    for megabytes in range(64, 110, 3):  # the result takes 61
        room(megabytes)
        seen.add(str(outcome(lambda: tf.argmax(x, 1).shape)))
        # The pool works on.
        for _ in range(5):
            assert tf.reduce_sum(tf.zeros([300, 1000]) + 1.0) == 3e5
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    assert tf.argmax(x, 1).shape == [4, 2_000_000]
    print(seen)
    """
    assert "ResourceExhaustedError" in limited.run(program)


def test_no_more_threads():
    program = (
        _WORK
        + """
no_more_threads()
use_everything()
d = tf.data.Dataset.range(3)
for _ in range(100):
    d = d.prefetch(1)
assert len(list(d)) == 3
print("alive")
"""
    )
    assert limited.run(program) == "alive\n"


def test_no_more_threads_for_checkpoints():
    program = """
    import tempfile
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o777)
    no_more_threads()
    v = tf.Variable(tf.ones([3000, 1000]))
    checkpoint = tf.train.Checkpoint(v=v)
    options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
    path = checkpoint.save(folder + "/c", options=options)
    checkpoint.sync() if hasattr(checkpoint, "sync") else None
    v.assign(v * 0.0)
    checkpoint.restore(path)
    assert tf.reduce_sum(v) == 3e6
    """
    limited.run(program)


def test_pids_max():
    program = _WORK + "use_everything(); print('alive')"
    with limited.cgroup("pids", most=1) as enter:
        # NumPy's own library of linear algebra cannot do without its threads.
        done = limited.run(program, before=enter, OPENBLAS_NUM_THREADS="1")
    assert done == "alive\n"


_STARTS = """
import _thread

def generator():
    yield from range(5)

def start_everything():
    "What starts threads; the names of its errors."
    numbers = tf.data.Dataset.range(20)
    one = tf.TensorSpec([], tf.int64)
    makers = [
        lambda: numbers.map(lambda v: v + 1, 4).prefetch(2),
        lambda: numbers.interleave(tf.data.Dataset.range, 2, num_parallel_calls=2),
        lambda: tf.data.Dataset.from_generator(
            generator, output_signature=one).map(lambda v: v * 2, 4),
        lambda: numbers.map(
            lambda v: tf.py_function(lambda w: w + 1, [v], tf.int64), 4).prefetch(1),
        lambda: numbers.shuffle(20).batch(5).prefetch(2),
        lambda: numbers.map(tf.strings.as_string, 2),
    ]
    def read(make):
        d = make()
        its = [iter(d) for _ in range(3)]
        for i in its + its:
            next(i)
        for _ in d:
            pass
    calls = [lambda make=make: read(make) for make in makers]
    seen = [outcome(call) for call in calls]
    x = tf.ones([64, 64])
    for call in [calls[0], lambda: x + 1.0, lambda: tf.matmul(x, x)]:
        done = _thread.allocate_lock()
        done.acquire()
        def go():
            seen.append(outcome(call))
            done.release()
        try:
            _thread.start_new_thread(go, ())
        except (RuntimeError, MemoryError):  # Python's own
            continue
        done.acquire(timeout=3)  # Python may end the thread before it gets here
    return {s for s in seen if isinstance(s, str)}
"""


def test_threads_begin_where_memory_ends():
    """At every step some other allocation is the one that fails: what the C library
    makes for a thread, Python's state of a thread, an exception's. `make soak` takes
    60 steps."""
    steps = int(os.environ.get("HEADRACE_MEMORY_STEPS", "4"))
    program = (
        _STARTS
        + f"""

# An import that meets the end of memory is Python's own matter (3.11 raises
# SystemError there), so what the calls import is here before.
tf.data.Dataset, tf.TensorSpec, tf.py_function, tf.strings.as_string
for step in range({steps}):
    child = os.fork()
    if child == 0:
        room(step * {14.4 / steps})
        seen = outcome(start_everything)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        seen = {{seen}} if isinstance(seen, str) else seen
        left = seen - {{"ResourceExhaustedError", "MemoryError"}}
        again = start_everything()
        print(step, left, again, flush=True) if left or again else None
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("ended at", step)
print("alive")
"""
    )
    assert limited.run(program, timeout=300) == "alive\n"


@pytest.mark.parametrize("megabytes", [4, 30, 90])
def test_address_space(megabytes):
    program = (
        _WORK
        + f"""
room({megabytes})
for _ in range(3):
    seen = outcome(use_everything)
    assert seen in (None, "ResourceExhaustedError", "MemoryError"), seen
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
use_everything()
print("alive")
"""
    )
    assert limited.run(program) == "alive\n"


def test_a_memory_cgroup_is_a_limit(tmp_path):
    program = """
    x = outcome(lambda: tf.ones([1000, 1000, 300]))
    assert x == "ResourceExhaustedError", x
    # Memory that is not written to yet counts, and that of a graph too.
    kept = []
    f = tf.function(lambda n: tf.zeros([n, 1000, 1000]) + tf.ones([n, 1, 1]))
    while True:
        y = outcome(lambda: f(20))
        if isinstance(y, str):
            break
        kept.append(y)
    assert y == "ResourceExhaustedError", y
    assert 2 <= len(kept) <= 6, len(kept)
    assert all(float(y[19, 999, 999]) == 1.0 for y in kept)
    kept = None
    assert f(20).shape == [20, 1000, 1000]  # and is there again
    with open(sys.argv[1], "wb") as file:  # what the system can drop is free
        for _ in range(40):
            file.write(bytes(10 << 20))
        assert f(30).shape == [30, 1000, 1000]
    print("alive")
    """
    with limited.cgroup("memory", most=600 << 20) as enter:
        path = str(tmp_path / "written")
        assert limited.run(program, path, before=enter) == "alive\n"


@pytest.mark.parametrize(
    "fill",
    [
        "next(iter(tf.data.Dataset.range(2**40).shuffle(2**40)))",
        "[tf.constant(i) + 1 for i in range(2**40)]",
        "tf.function(lambda: tf.while_loop(lambda i, a: i < 2**30, lambda i, a: "
        "(i + 1, a.write(i, i)), (0, tf.TensorArray(tf.int32, 0, True)))[1].size())()",
        "[tf.strings.as_string(tf.range(100)) for i in range(2**40)]",
        "list(tf.data.Dataset.range(2**20).map(lambda x: tf.fill([50], x)).cache()"
        ".repeat().batch(2**20))",
    ],
    ids=["shuffle", "eager", "loop", "strings", "cache"],
)
def test_memory_that_ends_by_small_pieces(fill):
    """Not a block too large, which is refused with room for the error to be told."""
    program = f"""
    use = lambda: tf.reduce_sum(tf.ones([1000]) + 1.0)
    assert use() == 2000.0
    for megabytes in (20, 45):
        room(megabytes)
        seen = outcome(lambda: {fill})
        assert seen in ("ResourceExhaustedError", "MemoryError"), seen
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    assert use() == 2000.0
    print("alive")
    """
    assert limited.run(program) == "alive\n"


def test_one_cpu():
    def one():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    program = _WORK + "use_everything(); print('alive')"
    assert limited.run(program, before=one) == "alive\n"


def test_no_home_and_few_files():
    program = _WORK + "use_everything(); print('alive')"
    environment = dict.fromkeys(["HOME", "USER", "XDG_CACHE_HOME", "TMPDIR"])
    done = limited.run(program, before=limited.file_limit(24), **environment)
    assert done == "alive\n"


# What writes, each in its way, to `place`.
_WRITES = """
v = tf.Variable(1.0)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
writes = [
    lambda: tf.io.write_file(place + "/a", "x"),
    lambda: tf.train.Checkpoint(v=v).save(place + "/c"),
    lambda: tf.io.TFRecordWriter(place + "/r").write(b"x"),
    lambda: tf.data.Dataset.range(3).save(place + "/d"),
    lambda: list(tf.data.Dataset.range(3).cache(place + "/k")),
    lambda: tf.io.gfile.makedirs(place + "/m"),
    lambda: tf.summary.create_file_writer(place + "/s").flush(),
    lambda: model.save_weights(place + "/w"),
    lambda: tf.io.gfile.GFile(place + "/g", "w").write("x"),
]
"""


def _refused(seen):
    kinds = ("PermissionDeniedError", "PermissionError")
    assert sum(seen.count(kind) for kind in kinds) == 9, seen


def test_a_disk_that_cannot_be_written(tmp_path):
    os.chmod(tmp_path, stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)
    program = f"""
no_more_threads()  # as nobody
place = {str(tmp_path)!r}
{_WRITES}
print([outcome(write) for write in writes])
"""
    for parent in tmp_path.parents:  # pytest's own folders are closed to others
        if stat.S_IMODE(os.stat(parent).st_mode) & stat.S_IXOTH == 0:
            os.chmod(parent, 0o755)
    _refused(limited.run(program))


def test_nothing_to_write_to_and_no_home(tmp_path):
    """File systems mounted read-only, and no folder of the user's."""
    program = f"""
{_WORK}
use_everything()
place = {str(tmp_path)!r}
{_WRITES}
print([outcome(write) for write in writes])
use_everything()
model.compile("sgd", "mse")
model.fit(np.ones([4, 1]), np.ones([4, 1]), verbose=0)
"""
    environment = dict.fromkeys(["HOME", "USER", "XDG_CACHE_HOME", "TMPDIR"])
    _refused(limited.run(program, within=limited.read_only(), **environment))


def test_pipes_and_devices_are_refused(tmp_path):
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for path in [pipe, "/dev/zero"]:
        for read in [
            lambda path: tf.io.read_file(path),
            lambda path: list(tf.data.TextLineDataset(path)),
            lambda path: list(tf.data.TFRecordDataset(path)),
            lambda path: list(tf.data.FixedLengthRecordDataset(path, 4)),
        ]:
            with pytest.raises(tf.errors.InvalidArgumentError, match="pipe or a dev"):
                read(path)
    assert tf.io.read_file("/dev/null") == b""


def test_an_immutable_const_keeps_what_it_read(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(1 << 20))
    const = tf.raw_ops.ImmutableConst
    t = const(dtype=tf.uint8, shape=[1 << 20], memory_region_name=str(path))
    os.truncate(path, 10)
    assert int(tf.reduce_sum(tf.cast(t, tf.int32))) == 0
    with pytest.raises(tf.errors.InvalidArgumentError):
        const(dtype=tf.uint8, shape=[11], memory_region_name=str(path))


def test_an_immutable_const_makes_every_byte_a_bool(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(b"\0\2\x80")
    const = tf.raw_ops.ImmutableConst
    t = const(dtype=tf.bool, shape=[3], memory_region_name=str(path))
    assert t.numpy().tobytes() == b"\0\1\1"
