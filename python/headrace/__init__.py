"""Headrace: TensorFlow's programming model on a small, fast engine.

Public names come from api_names.txt, a row a name: `tf.math.add` is row
`math.add ops.math_ops:add`. A name's module is imported when it is first used.
"""

import os
import sys
from types import ModuleType

from headrace import (
    _load,  # noqa: F401  (loads the extension module)
    _moved,
    _names,
)
from headrace.context import late
from headrace.framework import conversion, tensor, tensor_shape  # noqa: F401
from headrace.framework.support import locks  # noqa: F401

__version__ = "2.21.0"

_root = _names.read(os.path.join(os.path.dirname(__file__), "api_names.txt"))


class _Package(ModuleType):
    """The package as a namespace: submodules do not shadow public names."""

    def __getattr__(self, name):
        return _names.resolve(self, _root, name)

    def __setattr__(self, name, value):
        if isinstance(value, ModuleType) and name in _root:
            if not isinstance(value, _names.Namespace):
                return
        super().__setattr__(name, value)

    def __dir__(self):
        return sorted(set(_root) | {n for n in self.__dict__ if n[:1] != "_"})


late.register(
    {
        "Graph": "graph.graph:Graph",
        "GraphVariable": "graph.graph_variables:GraphVariable",
        "name_scope": "framework.name_scopes:current",
        "set_name_scope": "framework.name_scopes:set_current",
        "restored_from": "train.graph_checkpoint:restored_from",
        "DatasetBatch": "data.dataset_batch:DatasetBatch",
        "TFOpLambda": "keras.base.op_layer:TFOpLambda",
        "cond": "control_flow.branches:cond",
        "for_rows": "control_flow.vectorizing:for_rows",
        "in_graph": "autograph.calls:in_graph",
        "converted": "autograph.calls:traced",
        "why_unconverted": "autograph.calls:why_unconverted",
        "Mean": "keras.metric.reductions:Mean",
        "DenseFeatures": "feature_column.feature_layers:DenseFeatures",
        "SequenceFeatures": "feature_column.feature_layers:SequenceFeatures",
    }
)
sys.modules[__name__].__class__ = _Package
_names.open_namespaces(__name__, _root)
sys.meta_path += [_moved.Finder, _names.LaterNames]
