"""Session.partial_run."""

import headrace as tf
import pytest

v1 = tf.compat.v1


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as made:
        yield made


def inputs():
    return [v1.placeholder(tf.float32, [], name=n) for n in "abc"]


def test_values_are_kept_from_step_to_step(session):
    a, b, c = inputs()
    total = a + b
    product = total * c
    drawn = tf.random.uniform([]) + 0.0 * a
    later = drawn + 0.0 * c
    handle = session.partial_run_setup([total, product, drawn, later], [a, b, c])
    first = session.partial_run(handle, {"t": total, "d": drawn}, {a: 1.0, b: 2.0})
    assert first["t"] == 3.0
    second = session.partial_run(handle, [product, later], {c: 10.0})
    assert second == [30.0, first["d"]]


def test_operations_run_once(session):
    a, b, _ = inputs()
    n = v1.get_variable("n", initializer=0, use_resource=True)
    session.run(n.initializer)
    with tf.control_dependencies([a]):
        step = n.assign_add(1).op
    one, two = a + 1.0, a + b
    handle = session.partial_run_setup([one, two, step], [a, b])
    assert session.partial_run(handle, one, {a: 1.0}) == 2.0
    assert session.partial_run(handle, two, {b: 1.0}) == 2.0
    assert session.run(n) == 1
    with pytest.raises(RuntimeError, match="requires empty `target_list`"):
        session.partial_run(handle, step)


def test_what_was_not_set_up_and_what_comes_twice(session):
    a, b, c = inputs()
    total, product = a + b, a * c
    invalid = tf.errors.InvalidArgumentError
    with pytest.raises(invalid, match="at least one target"):
        session.partial_run_setup([], [a])
    with pytest.raises(invalid, match="Must run 'setup'"):
        session.partial_run("handle", a)
    handle = session.partial_run_setup([total, product], [a, b, c])
    with pytest.raises(invalid, match="can't be computed from the feeds"):
        session.partial_run(handle, product, {a: 1.0})
    # What is refused leaves the run as it was.
    with pytest.raises(invalid, match="so far: a:0 is not known"):
        session.partial_run(handle, total, {b: 1.0})
    assert session.partial_run(handle, total, {a: 1.0, b: 1.0}) == 2.0
    with pytest.raises(invalid, match="add:0 has already been fetched"):
        session.partial_run(handle, total)
    with pytest.raises(invalid, match="a:0 has already been fed"):
        session.partial_run(handle, product, {a: 1.0})
    other = session.partial_run_setup(total, [a])
    with pytest.raises(invalid, match="fetch mul:0 was not specified"):
        session.partial_run(other, product)
    with pytest.raises(invalid, match="feed b:0 was not specified"):
        session.partial_run(other, total, {a: 1.0, b: 1.0})


def test_what_is_planned_to_be_fed_is_waited_for(session):
    a, _, c = inputs()
    middle = tf.identity(2.0 * a, name="middle")
    behind = middle + 1.0
    with tf.control_dependencies([c]):
        controlled = tf.identity(a, name="controlled")
    handle = session.partial_run_setup([behind, controlled], [a, c, middle])
    invalid = tf.errors.InvalidArgumentError
    with pytest.raises(invalid, match="Fetch add:0 can't .* far: middle:0 is not"):
        session.partial_run(handle, behind, {a: 1.0})
    assert session.partial_run(handle, behind, {a: 1.0, middle: 5.0}) == 6.0
    with pytest.raises(invalid, match="Fetch controlled:0 can't .* far: c:0 is not"):
        session.partial_run(handle, controlled)
    assert session.partial_run(handle, controlled, {c: 1.0}) == 1.0
    # All that was planned has come.
    with pytest.raises(invalid, match="Must run 'setup'"):
        session.partial_run(handle, controlled)


def test_a_placeholder_that_was_not_planned(session):
    a, b, _ = inputs()
    handle = session.partial_run_setup([a + b], [a])
    with pytest.raises(tf.errors.InvalidArgumentError, match="far: b:0 is not known"):
        session.partial_run(handle, "add:0", {a: 1.0})
