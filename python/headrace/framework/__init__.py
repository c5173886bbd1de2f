"""What everything else stands on: dtypes, shapes, tensors, variables. Importing it loads
the engine."""

from headrace import _load  # noqa: F401  (loads the extension module)
from headrace.context import late
from headrace.framework import conversion, tensor, tensor_shape  # noqa: F401

# The functions of higher floors that lower ones call.
late.register(
    {
        "Graph": "graph.graph:Graph",
        "GraphVariable": "graph.graph_variables:GraphVariable",
        "name_scope": "framework.name_scopes:current",
        "set_name_scope": "framework.name_scopes:set_current",
        "QueueRunner": "v1.train.queue_runner:QueueRunner",
        "variable_to_proto": "v1.imported_variables:to_proto",
        "variable_from_proto": "v1.imported_variables:from_proto",
        "restored_from": "train.graph_checkpoint:restored_from",
        "DatasetBatch": "data.dataset_batch:DatasetBatch",
        "map_fn": "control_flow.mapping:map_fn",
        "keras_layer_of": "keras.base.op_layer:as_layer",
        "keras_part_of": "keras.base.op_layer:part_of",
        "keras_result_of": "keras.base.op_layer:result_of",
        "spec_as_proto": "elements.spec_protos:as_proto",
        "spec_of_proto": "elements.spec_protos:from_proto",
        "default_strategy": "distribute.default:strategy",
        "finding_variables": "v1.variable_scope:finding_variables",
        "InputOptions": "distribute.options:InputOptions",
        "describe_operations": "keras.base.graph_op_layer:describe",
        "forget_keras_session": "v1.keras.sessions:forget",
        "keras_initializers": "v1.keras.initializers:NAMES",
        "keras_session": "v1.keras.sessions:get_session",
        "tensor_board_of_v1": "v1.keras.callbacks:TensorBoard",
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
