"""A program that ends, or forks, while other threads of it work."""

import limited
import pytest

_WORK = {
    "ops": """
def work():
    x = tf.ones([50, 50])
    while True:
        x = tf.tanh(tf.matmul(x, x))
""",
    "large ops": """
def work():
    x = tf.ones([700, 700])
    while True:
        x = tf.tanh(tf.matmul(x, x))
""",
    "py_function": """
def work():
    while True:
        tf.py_function(lambda v: sum(range(2000)) + v, [1], tf.int32)
        tf.numpy_function(lambda v: (time.sleep(0.001), v)[1], [1], tf.int64)
""",
    "traced": """
def work():
    while True:
        f = tf.function(lambda v: tf.py_function(lambda w: w + 1, [v], v.dtype) * 2)
        f(tf.constant(3))
        with tf.GradientTape() as t:
            x = tf.Variable(2.0)
            y = tf.function(lambda: tf.custom_gradient(
                lambda v: (v * v, lambda g: g * sum(range(1000))))(x))()
        t.gradient(y, x)
""",
    "datasets": """
def elements():
    while True:
        yield sum(range(300))

def work():
    while True:
        d = tf.data.Dataset.from_generator(
            elements, output_signature=tf.TensorSpec([], tf.int64))
        d = d.map(lambda v: v + 1, num_parallel_calls=2).prefetch(3)
        for _ in d.take(50):
            pass
        kept.append(iter(d))
        next(kept[-1])
        del kept[:-3]
kept = []
""",
    "waiting": """
def work():
    def wait():
        time.sleep(1000)
        yield 1
    next(iter(tf.data.Dataset.from_generator(wait, output_types=tf.int32).prefetch(1)))
""",
}


@pytest.mark.parametrize("kind", _WORK)
def test_daemon_threads_do_not_fail_a_program_that_is_done(kind):
    program = (
        _WORK[kind]
        + """
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.4)
print("done")
"""
    )
    for _ in range(2):
        assert limited.run(program) == "done\n"


def test_a_forked_child_finds_no_lock_held():
    program = """
    import faulthandler, signal
    faulthandler.enable(sys.stdout)  # what ends a child is shown
    def trace():
        while True:
            # Long traces and plans, under the function's lock.
            @tf.function
            def inner(x):
                for _ in range(30):
                    x = tf.tanh(x) + 1.0
                return x
            functions.append(inner)
            inner(tf.constant(1.0))
            shared(tf.ones([len(functions)]))
            with tf.GradientTape() as t:
                x = tf.Variable(1.0)
                y = inner(x)
            t.gradient(y, x)

    functions = []
    shared = tf.function(lambda x: tf.reduce_sum(tf.exp(x)) + sum(range(20000)))
    for _ in range(2):
        threading.Thread(target=trace, daemon=True).start()
    while len(functions) < 3:
        time.sleep(0.01)
    failed = 0
    for i in range(20):
        pid = os.fork()
        if pid == 0:
            faulthandler.dump_traceback_later(15, file=sys.stdout)
            signal.alarm(20)  # ends a child that hangs
            functions[-1](tf.constant(1.0))
            shared(tf.ones([1000 + i]))
            list(tf.data.Dataset.range(3).map(lambda v: v + i).prefetch(1))
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if status != 0:
            print("child", i, "ended with", status)
        failed += status != 0
        time.sleep(0.003)
    print(failed, flush=True)
    os._exit(0)
    """
    assert limited.run(program, timeout=120) == "0\n"


def test_a_forked_child_finds_no_import_half_done():
    """Modules are imported when their names are first used, by whatever thread."""
    program = """
    import importlib, signal
    names = ["function.polymorphic", "keras.engine.model", "data.dataset"]
    failed = 0
    for name in names:
        wanted = threading.Event()
        def use():
            wanted.set()
            importlib.import_module("headrace." + name)
        thread = threading.Thread(target=use)
        thread.start()
        wanted.wait()
        while "headrace." + name not in sys.modules:
            time.sleep(0)
        pid = os.fork()
        if pid == 0:
            signal.alarm(10)  # ends a child that hangs
            importlib.import_module("headrace." + name)
            os._exit(0)
        failed += os.waitpid(pid, 0)[1] != 0
        thread.join()
    print(failed)
    """
    assert limited.run(program) == "0\n"
