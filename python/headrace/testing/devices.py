"""What tf.test says about the build and its devices."""

import functools
import unittest

from headrace.framework.settings import config


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    """Whether there is a GPU."""
    return bool(config.list_physical_devices("GPU"))


def gpu_device_name():
    """The first GPU's name, '' where there is none."""
    found = config.list_logical_devices("GPU")
    return found[0].name if found else ""


def is_built_with_cuda():
    """Whether the library can use CUDA."""
    return False


is_built_with_gpu_support = is_built_with_rocm = is_built_with_xla = is_built_with_cuda


def is_cpu_target_available(target):
    """Whether the library can compile for that family of processors."""
    return False


def disable_with_predicate(pred, skip_message):
    """Skips a test where pred() holds when it runs."""

    def decorated(function):
        @functools.wraps(function)
        def run(self, *args, **kwargs):
            if pred():
                self.skipTest(skip_message)
            return function(self, *args, **kwargs)

        return run

    return decorated


def sync_devices():
    """Waits for the devices; operations have run when they return."""


def with_eager_op_as_function(cls=None, only_as_function=False):
    """The class of tests as it is: eager operations run in one way. Also a decorator."""
    return (lambda decorated: decorated) if cls is None else cls


def assert_equal_graph_def(expected, actual):
    """AssertionError unless two GraphDefs have the same nodes, whatever their order.

    TypeError for other arguments.
    """
    for what, value in (("expected", expected), ("actual", actual)):
        if type(value).__name__ != "GraphDef":
            raise TypeError(
                f"Expected tf.GraphDef for {what}, got {type(value).__name__}"
            )
    mine, theirs = ({n.name: n for n in g.node} for g in (expected, actual))
    for name, node in mine.items():
        if name not in theirs:
            raise AssertionError(f"Did not find expected node '{_shown(node)}'")
        _check_node(node, theirs[name])
    for name, node in theirs.items():
        if name not in mine:
            raise AssertionError(f"Found unexpected node '{_shown(node)}'")


def _shown(node):
    return f"{{{{node {node.name}}}}} = {node.op}({', '.join(node.input)})"


def _check_node(expected, actual):
    name = expected.name
    for what in ("op", "device"):
        a, b = getattr(expected, what), getattr(actual, what)
        if a != b:
            raise AssertionError(
                f"Node named '{name}' has {what} '{b}' that is not expected '{a}'"
            )

    def inputs(node):
        data = [x for x in node.input if not x.startswith("^")]
        return data, {x for x in node.input if x.startswith("^")}

    if inputs(expected) != inputs(actual):
        raise AssertionError(
            f"Node named '{name}' has inputs '{', '.join(actual.input)}' that do not "
            f"match expected '{', '.join(expected.input)}'"
        )
    for key in sorted(set(expected.attr) | set(actual.attr)):
        if key.startswith("_"):
            continue
        for a, b, text in (
            (actual.attr, expected.attr, "missing expected attr"),
            (expected.attr, actual.attr, "unexpected attr"),
        ):
            if key not in a:
                raise AssertionError(
                    f"Node named '{name}' has {text} '{key}' with value: {b[key]}"
                )
        if expected.attr[key] != actual.attr[key]:
            raise AssertionError(
                f"Node named '{name}' has attr '{key}' with value: {actual.attr[key]} "
                f"that does not match expected: {expected.attr[key]}"
            )


def main(argv=None):
    """Runs the tests of the program."""
    unittest.main(argv=sys.argv if argv is None else argv)
