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
