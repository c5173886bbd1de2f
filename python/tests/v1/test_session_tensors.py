"""Tensors that a session keeps between its runs."""

import headrace as tf
import pytest

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_a_tensor_is_kept_and_read():
    handle = v1.get_session_handle(tf.constant([1.0, 2.0]) * 3.0)
    with v1.Session() as session:
        kept, again = session.run([handle, {"k": handle}])
        assert type(kept).__name__ == "TensorHandle" and kept.dtype == tf.float32
        assert str(kept).endswith(";/job:localhost/replica:0/task:0/device:CPU:0")
        assert kept.eval().tolist() == again["k"].eval().tolist() == [3.0, 6.0]
        holder, tensor = v1.get_session_tensor(kept.handle, tf.float32)
        assert holder.op.type == "Placeholder" and tensor.op.type == "GetSessionTensor"
        assert session.run(tensor + 1.0, {holder: kept.handle}).tolist() == [4.0, 7.0]


def test_a_handle_is_fed():
    handle = v1.get_session_handle(tf.constant(10))
    x, y = v1.placeholder(tf.int32), v1.placeholder(tf.float32)
    with v1.Session() as session:
        kept = session.run(handle)
        assert session.run(x * 2, {x: kept}) == 20
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"Expects arg\[0\] to be float but int32 is provided",
        ):
            session.run(y * 2, {y: kept})


def test_tensors_are_let_go():
    handle = v1.get_session_handle(tf.constant(10))
    with v1.Session() as session:
        kept = session.run(handle)
        raw = kept.get_raw_handle()
        gone = "may have already been deleted"
        for use in (kept.eval, kept.delete):
            with pytest.raises(TypeError, match=gone):
                use()
        holder, delete = v1.delete_session_tensor(raw)
        session.run(delete, {holder: raw})
        place, tensor = v1.get_session_tensor(raw, tf.int32)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="is not in the session store"
        ):
            session.run(tensor, {place: raw})
        other = session.run(handle)
        other.delete()
        with pytest.raises(TypeError, match=gone):
            other.delete()


def test_a_loop_keeps_few_tensors(graph):
    first = v1.get_session_handle(tf.constant(0))
    with v1.Session() as session:
        kept = session.run(first)
        holder, tensor = v1.get_session_tensor(kept.handle, tf.int32)
        following = v1.get_session_handle(tensor + 1)
        for _ in range(50):
            kept = session.run(following, {holder: kept.handle})
        assert kept.eval() == 50
        assert len(session._dead_handles) < 12
