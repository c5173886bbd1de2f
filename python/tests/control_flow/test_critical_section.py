"""tf.CriticalSection; expected values are those of TensorFlow 2.21."""

import threading

import pytest

import headrace as tf

v1 = tf.compat.v1


def _by_threads(work, count=4):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_wait_for_each_other():
    section, total = tf.CriticalSection(name="sum"), tf.Variable(0)

    def add():
        value = total.numpy()
        return total.assign(value + 1)

    def work():
        for _ in range(50):
            section.execute(add)

    _by_threads(work)
    assert total.numpy() == 200 and section.name == "sum"


def test_traced_functions_wait_for_eager_code():
    section, total = tf.CriticalSection(), tf.Variable(0)

    @tf.function
    def step():
        def add():
            value = total.read_value()
            with tf.control_dependencies([value]):
                return total.assign(value + 1)

        return section.execute(add), section.execute(add)

    def work():
        for _ in range(20):
            step()
            section.execute(lambda: total.assign(total.numpy() + 1))

    step()
    total.assign(0)
    _by_threads(work)
    assert total.numpy() == 4 * 20 * 3
    first, second = step()
    assert (first.numpy(), second.numpy()) == (241, 242)
    kinds = [op.type for op in step.get_concrete_function().graph.get_operations()]
    assert kinds.count("MutexLock") == kinds.count("ConsumeMutexLock") == 2


def test_loops_and_sections_made_while_tracing():
    section, total = tf.CriticalSection(), tf.Variable(0)

    @tf.function
    def loop():
        own = tf.CriticalSection()

        def body(i):
            section.execute(lambda: total.assign_add(1))
            return i + 1

        turns = tf.while_loop(lambda i: i < 5, body, [tf.constant(0)])
        return turns[0], own.execute(lambda: tf.constant(2))

    assert [x.numpy() for x in loop()] == [5, 2] and total.numpy() == 5


def test_sessions():
    with tf.Graph().as_default() as graph:
        section = tf.CriticalSection()
        named = tf.CriticalSection(shared_name="zz", name="nm")
        assert (section.name, named.name) == ("CriticalSection", "nm")
        count = v1.get_variable("w", initializer=0, use_resource=True)

        def add():
            before = count.read_value()
            with tf.control_dependencies([before]):
                with tf.control_dependencies([count.assign(before + 1)]):
                    return tf.identity(before)

        before = [section.execute(add) for _ in range(5)]
        chained = section.execute(lambda: tf.identity(before[0]) + 100)
        made = section.execute(lambda: {"a": tf.constant(1), "b": tf.no_op()})
        assert made["a"].op.type == "Identity" and made["b"].type == "NoOp"
        assert graph.get_collection("critical_sections") == [section, named]
        assert len(graph.get_collection("critical_section_executions")) == 7
        with v1.Session() as session:
            session.run(count.initializer)
            values = session.run([before, chained])
            assert sorted(values[0]) == [0, 1, 2, 3, 4]
            assert values[1] == values[0][0] + 100 and session.run(count) == 5


def test_resources_are_exclusive():
    with tf.Graph().as_default():
        count = v1.get_variable("w", initializer=0, use_resource=True)
        a, b = tf.CriticalSection(), tf.CriticalSection()
        a.execute(count.read_value)
        with pytest.raises(ValueError, match="requested exclusive resource access"):
            b.execute(count.read_value)
        with pytest.raises(ValueError, match="exclusive_resource_access=False"):
            b.execute(count.read_value, exclusive_resource_access=False)
    with tf.Graph().as_default():
        count = v1.get_variable("w", initializer=0, use_resource=True)
        a, b = tf.CriticalSection(), tf.CriticalSection()
        a.execute(count.read_value, exclusive_resource_access=False)
        b.execute(count.read_value, exclusive_resource_access=False)


def test_wrong_uses():
    section = tf.CriticalSection()
    first, second = (tf.CriticalSection(shared_name="s") for _ in range(2))
    with pytest.raises(ValueError, match="in which we are already running"):
        first.execute(lambda: second.execute(lambda: 1))
    with pytest.raises(ValueError, match="in which we are already running"):
        tf.function(lambda: first.execute(lambda: second.execute(lambda: 1)))()
    with pytest.raises(KeyError):
        section.execute(lambda: {}["x"])
    assert section.execute(lambda: 7).numpy() == 7  # it was left
    assert section.execute(lambda: None) is None
    with pytest.raises(TypeError, match="'int' object is not callable"):
        section.execute(3)
    with pytest.raises(ValueError, match="`critical_section_def` is not supported"):
        tf.CriticalSection(critical_section_def=3)
    with pytest.raises(ValueError, match="are mutually exclusive"):
        tf.CriticalSection(name="x", critical_section_def=3)
    with pytest.raises(TypeError, match="Expected string for argument 'shared_name'"):
        tf.CriticalSection(shared_name=3)
    with tf.Graph().as_default():
        section = tf.CriticalSection()
        with pytest.raises(ValueError, match="None values not supported"):
            section.execute(lambda: None)
        with pytest.raises(ValueError, match="must have at least one Tensor"):
            section.execute(lambda: [])
