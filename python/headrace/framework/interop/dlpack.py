"""tf.experimental.dlpack: tensors that share their memory with other libraries."""

from headrace._load import _headrace


def to_dlpack(tf_tensor):
    """A PyCapsule "dltensor" of an eager tensor's memory, which lives as long as it.

    For integers, floats, bfloat16, complex numbers and bools. InvalidArgumentError for
    other dtypes and for what is no eager tensor.
    """
    return _headrace.to_dlpack(tf_tensor)


def from_dlpack(dlcapsule):
    """A tensor of a capsule's memory; nothing is copied, but for bools and memory that
    is not aligned.

    Each capsule can be used once. InvalidArgumentError for a capsule that was used, for
    memory of other devices, dtypes without a tf.DType and rows that are not one behind
    the other; TypeError for what is no capsule.
    """
    return _headrace.from_dlpack(dlcapsule)
