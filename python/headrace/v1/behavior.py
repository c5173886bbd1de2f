"""The switches of tf.compat.v1 between what TensorFlow 1 and TensorFlow 2 do."""

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import tensor, tensor_shape
from headrace.framework.settings import config
from headrace.framework.support import protos
from headrace.v1 import variable_scope

DEVICE_PLACEMENT_POLICIES = (0, 1, 2, 3)  # explicit, warn, silent, silent for int32
SYNC, ASYNC = 0, 1


def disable_eager_execution():
    """Operations go to a default graph from now on, to be run by sessions.

    Each thread has a default graph of its own. Code inside of `with graph.as_default()`
    or of a tf.function goes on as it is.
    """
    stack.build_graphs_by_default(True)


def enable_eager_execution(config=None, device_policy=None, execution_mode=None):
    """Operations run at once again, as they do at a program's start.

    Args:
      config: a tf.compat.v1.ConfigProto with the threads and devices to use.
      device_policy: what to do with inputs on another device than an operation's: all
        devices here share their memory, so nothing.
      execution_mode: SYNC; ASYNC is accepted, and each operation is still done when
        its call returns.

    Raises:
      TypeError: `config` is no ConfigProto.
      ValueError: another argument is none of its values, or the default graph is in
        use already.
    """
    if not stack.builds_graphs_by_default():
        return
    if config is not None and not isinstance(config, protos.ConfigProto):
        raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
    if device_policy not in (None, *DEVICE_PLACEMENT_POLICIES):
        raise ValueError("device_policy must be one of None, DEVICE_PLACEMENT_*")
    if execution_mode not in (None, SYNC, ASYNC):
        raise ValueError("execution_mode must be one of None, SYNC, ASYNC")
    if stack.has_default_graph():
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    if config is not None:
        _configure(config)
    stack.build_graphs_by_default(False)


def _configure(proto):
    config.set_intra_op_parallelism_threads(proto.intra_op_parallelism_threads)
    config.set_inter_op_parallelism_threads(proto.inter_op_parallelism_threads)
    config.set_soft_device_placement(proto.allow_soft_placement)
    if "CPU" in proto.device_count:
        config.set_logical_device_configuration(
            config.list_physical_devices("CPU")[0],
            [config.LogicalDeviceConfiguration()] * proto.device_count["CPU"],
        )


def disable_tensor_equality():
    """Tensors and variables are equal to themselves only; variables and tensors of
    graphs can be keys then, as tensors with a value cannot."""
    _set_tensor_equality(False)


def enable_tensor_equality():
    """== and != compare tensors and variables element by element; neither has a hash,
    see ref()."""
    _set_tensor_equality(True)


def _set_tensor_equality(on):
    tensor.Tensor._USE_EQUALITY = on
    _headrace.set_tensor_equality(on)


def disable_v2_tensorshape():
    """Items of a tf.TensorShape are Dimension objects."""
    tensor_shape.use_dimensions(True)


def enable_v2_tensorshape():
    """Items of a tf.TensorShape are integers, or None where they are not known."""
    tensor_shape.use_dimensions(False)


def disable_control_flow_v2():
    """tf.cond, tf.while_loop and what is made of them are built of TensorFlow 1's nodes
    (Switch, Merge, Enter, Exit, NextIteration) in graphs of sessions from now on, and
    TensorArrays are resources there; within functions nothing changes."""
    stack.set_control_flow_v2(False)


def enable_control_flow_v2():
    """Branches and loops are functions again, as at a program's start."""
    stack.set_control_flow_v2(True)


def control_flow_v2_enabled():
    """Whether disable_control_flow_v2() was not called, or a function is traced."""
    return stack.control_flow_v2_enabled()


def output_all_intermediates(state):
    """Whether branches and loops of graphs hand out what their gradients need: `state`
    is True, False or None. Gradients find it here either way, so nothing changes."""


def disable_v2_behavior():
    """All of TensorFlow 1's ways: graphs by default, Dimension objects, tensors that
    equal themselves only, reference variables."""
    disable_eager_execution()
    disable_v2_tensorshape()
    variable_scope.disable_resource_variables()
    disable_tensor_equality()
    disable_control_flow_v2()
    stack.set_all_v2(False)


def enable_v2_behavior():
    """All of TensorFlow 2's ways, as at a program's start; ValueError where the default
    graph is in use already."""
    enable_eager_execution()
    enable_v2_tensorshape()
    variable_scope.enable_resource_variables()
    enable_tensor_equality()
    enable_control_flow_v2()
    stack.set_all_v2(True)
