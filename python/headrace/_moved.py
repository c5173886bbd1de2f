"""Modules by the names they had before they moved: pickles and programs may have those."""

import functools
import importlib
from importlib.machinery import ModuleSpec

# What lies elsewhere now: "old new: modules", packages below ours. A module that has
# another name there, too, is "old=new".
_ROWS = """
framework framework.interop: annotations compat dlpack system_errors
framework context: errors locks properties
framework.support context: locks properties
framework framework.support: api_kinds plain_scalars protos save_slice_info signatures
framework framework.settings: config logging random_seed versions
framework control_flow: critical_section
graph v1: collections partitioned_variables session variable_scope
estimator estimator: train_and_evaluate=evaluated_training
keras.engine keras: dataset_creator
keras.engine keras.base: base_layer input_spec keras_tensor steps tracking
keras.engine keras.premade: linear
keras.layer keras.layer.preprocessing: adapting encoding hashing image_sizes
    index_lookup random_images text_vectorization
keras.layer keras.layer.rnn: cells conv_lstm recurrent scanning
keras.layer keras.layer.conv: convolution depthwise locally_connected padding pooling
    transposed
keras.layer feature_column: feature_layers
legacy v1: flags
ops ops.nn: candidate_ops convolution_ops embedding_ops fractional_pool_ops moment_ops
    nn_ops space_ops
ops ops.signal: fft_nd_ops signal_ops spectral_ops window_ops
ops ops.random: initializers initializers_v1 random_generator random_ops
    stateless_random_ops
ops ops.io: io_ops logging_ops queue_ops reader_ops
ops ops.linalg: linalg_ops tridiagonal_ops
ops lookup: lookup_ops=tables vocabulary_table
ops ops.sparse: set_ops sparse_ops
saved_model saved_model: load=loading save=saving
summary v1: file_writer
train v1: saver
training v1.train: basic_hooks coordinator monitored_session moving_averages
    queue_runner saver_hooks scaffold session_creators session_run_hook timer
    vocabularies
training v1.train.optimizer: optimizers=rules proximal_optimizers=proximal
v1.train v1.train.optimizer: optimizers=rules proximal_optimizers=proximal
training v1: losses
v1 v1.layer: layers=classes
v1 v1.metric: metrics=means
"""
_OLD = "headrace."


@functools.cache
def _moved():
    """{old name: new name} of the modules."""
    found = {}
    for row in _ROWS.replace("\n    ", " ").strip().split("\n"):
        packages, _, modules = row.partition(":")
        old, new = packages.split()
        for module in modules.split():
            before, _, now = module.partition("=")
            found[f"{old}.{before}"] = f"{new}.{now or before}"
    return found


def row_now(row):
    """The row ("module:object") of what a row of older days stands for."""
    module, colon, name = row.partition(":")
    return _moved().get(module, module) + colon + name


class Finder:
    """Finds a module under its old name, and the packages that are no more."""

    @staticmethod
    def find_spec(full, path=None, target=None):
        """The spec of a module that hands out what the moved one has; else None."""
        name = full.removeprefix(_OLD)
        if name == full:
            return None
        if name in _moved():
            return ModuleSpec(full, Finder)
        if any(old.startswith(name + ".") for old in _moved()):
            return ModuleSpec(full, Finder, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        """None: an ordinary module."""

    @staticmethod
    def exec_module(module):
        """Gives the module the attributes of the moved one, as they are asked for."""
        new = _moved().get(module.__name__.removeprefix(_OLD))
        if new is not None:
            new = importlib.import_module(_OLD + new)
            module.__file__ = new.__file__
            module.__getattr__ = functools.partial(getattr, new)
