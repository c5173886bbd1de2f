"""Modules by the names they had before they moved: pickles and programs may have those."""

import functools
import importlib
from importlib.machinery import ModuleSpec

# What lies elsewhere now, "old new" a row, below the package.
_ROWS = """
framework.annotations framework.interop.annotations
framework.api_kinds framework.support.api_kinds
framework.compat framework.interop.compat
framework.config framework.settings.config
framework.critical_section control_flow.critical_section
framework.dlpack framework.interop.dlpack
framework.locks framework.support.locks
framework.logging framework.settings.logging
framework.plain_scalars framework.support.plain_scalars
framework.properties framework.support.properties
framework.protos framework.support.protos
framework.random_seed framework.settings.random_seed
framework.save_slice_info framework.support.save_slice_info
framework.signatures framework.support.signatures
framework.system_errors framework.interop.system_errors
framework.versions framework.settings.versions
graph.collections v1.collections
graph.partitioned_variables v1.partitioned_variables
graph.session v1.session
graph.variable_scope v1.variable_scope
keras.engine.base_layer keras.base.base_layer
keras.engine.input_spec keras.base.input_spec
keras.engine.keras_tensor keras.base.keras_tensor
keras.engine.tracking keras.base.tracking
keras.layer.adapting keras.layer.preprocessing.adapting
keras.layer.cells keras.layer.rnn.cells
keras.layer.conv_lstm keras.layer.rnn.conv_lstm
keras.layer.convolution keras.layer.conv.convolution
keras.layer.depthwise keras.layer.conv.depthwise
keras.layer.encoding keras.layer.preprocessing.encoding
keras.layer.feature_layers feature_column.feature_layers
keras.layer.hashing keras.layer.preprocessing.hashing
keras.layer.image_sizes keras.layer.preprocessing.image_sizes
keras.layer.index_lookup keras.layer.preprocessing.index_lookup
keras.layer.locally_connected keras.layer.conv.locally_connected
keras.layer.padding keras.layer.conv.padding
keras.layer.pooling keras.layer.conv.pooling
keras.layer.random_images keras.layer.preprocessing.random_images
keras.layer.recurrent keras.layer.rnn.recurrent
keras.layer.scanning keras.layer.rnn.scanning
keras.layer.text_vectorization keras.layer.preprocessing.text_vectorization
keras.layer.transposed keras.layer.conv.transposed
legacy.flags v1.flags
ops.candidate_ops ops.nn.candidate_ops
ops.convolution_ops ops.nn.convolution_ops
ops.embedding_ops ops.nn.embedding_ops
ops.fft_nd_ops ops.signal.fft_nd_ops
ops.fractional_pool_ops ops.nn.fractional_pool_ops
ops.initializers ops.random.initializers
ops.initializers_v1 ops.random.initializers_v1
ops.io_ops ops.io.io_ops
ops.linalg_ops ops.linalg.linalg_ops
ops.logging_ops ops.io.logging_ops
ops.lookup_ops lookup.tables
ops.moment_ops ops.nn.moment_ops
ops.nn_ops ops.nn.nn_ops
ops.queue_ops ops.io.queue_ops
ops.random_generator ops.random.random_generator
ops.random_ops ops.random.random_ops
ops.reader_ops ops.io.reader_ops
ops.set_ops ops.sparse.set_ops
ops.signal_ops ops.signal.signal_ops
ops.space_ops ops.nn.space_ops
ops.sparse_ops ops.sparse.sparse_ops
ops.spectral_ops ops.signal.spectral_ops
ops.stateless_random_ops ops.random.stateless_random_ops
ops.tridiagonal_ops ops.linalg.tridiagonal_ops
ops.vocabulary_table lookup.vocabulary_table
ops.window_ops ops.signal.window_ops
summary.file_writer v1.file_writer
train.saver v1.saver
training.basic_hooks v1.train.basic_hooks
training.coordinator v1.train.coordinator
training.losses v1.losses
training.monitored_session v1.train.monitored_session
training.moving_averages v1.train.moving_averages
training.optimizers v1.train.optimizers
training.proximal_optimizers v1.train.proximal_optimizers
training.queue_runner v1.train.queue_runner
training.saver_hooks v1.train.saver_hooks
training.scaffold v1.train.scaffold
training.session_creators v1.train.session_creators
training.session_run_hook v1.train.session_run_hook
training.timer v1.train.timer
training.vocabularies v1.train.vocabularies
"""
_OLD = "headrace."


@functools.cache
def _moved():
    return dict(row.split() for row in _ROWS.split("\n") if row)


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
