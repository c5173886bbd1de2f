// The steps of gradient boosted trees.
#include "ops/graph_only/text_ops.h"

namespace headrace {
namespace {

constexpr char kSplitOutputs[] =
    "node_ids: int32; gains: float; feature_dimensions: int32; thresholds: "
    "int32; left_node_contribs: float; right_node_contribs: float; "
    "split_with_default_directions: string";
constexpr char kSplitShapes[] =
    "?; ?; ?; ?; ? @logits_dimension; ? @logits_dimension; ?";
constexpr char kHandle[] = "container: string = ''; shared_name: string = ''";

constexpr TextOp kBoostedTrees[] = {
    {"BoostedTreesAggregateStats",
     "node_ids: int32; gradients: float; hessians: float; feature: int32",
     "stats_summary: float", "max_splits: int >= 1; num_buckets: int >= 1",
     "n; n g; n h; n d", "@max_splits d @num_buckets+1 g+h", false,
     "Sums of gradients and hessians by node, feature and bucket."},
    {"BoostedTreesBucketize",
     "float_values: num_features * float; bucket_boundaries: num_features * "
     "float",
     "buckets: num_features * int32", "num_features: int >= 0", "n; *", "n",
     false, "The numbers of the buckets that values fall into."},
    {"BoostedTreesCalculateBestFeatureSplit",
     "node_id_range: int32; stats_summary: float; l1: float; l2: float; "
     "tree_complexity: float; min_node_weight: float",
     kSplitOutputs,
     "logits_dimension: int >= 1; split_type: {'inequality', 'equality'} = "
     "'inequality'",
     "2; ? ? ? ?; .; .; .; .", kSplitShapes, false,
     "The best split of each node by one feature."},
    {"BoostedTreesCalculateBestFeatureSplitV2",
     "node_id_range: int32; stats_summaries_list: num_features * float; "
     "split_types: string; candidate_feature_ids: int32; l1: float; l2: float; "
     "tree_complexity: float; min_node_weight: float",
     "node_ids: int32; gains: float; feature_ids: int32; feature_dimensions: "
     "int32; thresholds: int32; left_node_contribs: float; "
     "right_node_contribs: float; split_with_default_directions: string",
     "num_features: int >= 1; logits_dimension: int >= 1",
     "2; ? ? ? ?; ?; ?; .; .; .; .",
     "?; ?; ?; ?; ?; ? @logits_dimension; ? @logits_dimension; ?", false,
     "The best split of each node by any of the features."},
    {"BoostedTreesCalculateBestGainsPerFeature",
     "node_id_range: int32; stats_summary_list: num_features * float; l1: "
     "float; l2: float; tree_complexity: float; min_node_weight: float",
     "node_ids_list: num_features * int32; gains_list: num_features * float; "
     "thresholds_list: num_features * int32; left_node_contribs_list: "
     "num_features * float; right_node_contribs_list: num_features * float",
     "max_splits: int >= 1; num_features: int >= 1",
     "2; @max_splits ? 2; .; .; .; *", "?; ?; ?; ? 1; ? 1", false,
     "What each node gains by its best split by each feature."},
    {"BoostedTreesCenterBias",
     "tree_ensemble_handle: resource; mean_gradients: float; mean_hessians: "
     "float; l1: float; l2: float",
     "continue_centering: bool", "", "*; n k; n k; .; .", ".", true,
     "Moves the ensemble's bias; whether to go on."},
    {"BoostedTreesCreateEnsemble",
     "tree_ensemble_handle: resource; stamp_token: int64; "
     "tree_ensemble_serialized: string",
     "", "", ".; .; .", "", true, "Makes an ensemble of trees."},
    {"BoostedTreesCreateQuantileStreamResource",
     "quantile_stream_resource_handle: resource; epsilon: float; num_streams: "
     "int64",
     "", "max_elements: int = 1099511627776", ".; .; .", "", true,
     "Makes streams that quantiles are taken of."},
    {"BoostedTreesDeserializeEnsemble",
     "tree_ensemble_handle: resource; stamp_token: int64; "
     "tree_ensemble_serialized: string",
     "", "", ".; .; .", "", true, "Replaces an ensemble."},
    {"BoostedTreesEnsembleResourceHandleOp", "", "resource: resource", kHandle,
     "", ".", true, "A handle of an ensemble of trees."},
    {"BoostedTreesExampleDebugOutputs",
     "tree_ensemble_handle: resource; bucketized_features: "
     "num_bucketized_features * int32",
     "examples_debug_outputs_serialized: string",
     "num_bucketized_features: int >= 1; logits_dimension: int", "*; n", "n",
     true, "What the trees' nodes add to each example's prediction."},
    {"BoostedTreesFlushQuantileSummaries",
     "quantile_stream_resource_handle: resource",
     "summaries: num_features * float", "num_features: int >= 0", "*", "? 4",
     true, "Takes the summaries out of streams."},
    {"BoostedTreesGetEnsembleStates", "tree_ensemble_handle: resource",
     "stamp_token: int64; num_trees: int32; num_finalized_trees: int32; "
     "num_attempted_layers: int32; last_layer_nodes_range: int32",
     "", ".", ".; .; .; .; 2", true, "How far an ensemble has grown."},
    {"BoostedTreesMakeQuantileSummaries",
     "float_values: num_features * float; example_weights: float; epsilon: "
     "float",
     "summaries: num_features * float", "num_features: int >= 0", "?; ?; .",
     "? 4", false, "Summaries of weighted values, for quantiles."},
    {"BoostedTreesMakeStatsSummary",
     "node_ids: int32; gradients: float; hessians: float; "
     "bucketized_features_list: num_features * int32",
     "stats_summary: float",
     "max_splits: int >= 1; num_buckets: int >= 1; num_features: int >= 1",
     "n; n 1; n 1; n", "@num_features @max_splits @num_buckets 2", false,
     "Sums of gradients and hessians by feature, node and bucket."},
    {"BoostedTreesPredict",
     "tree_ensemble_handle: resource; bucketized_features: "
     "num_bucketized_features * int32",
     "logits: float",
     "num_bucketized_features: int >= 1; logits_dimension: int", "*; n",
     "n @logits_dimension", true, "What the trees predict."},
    {"BoostedTreesQuantileStreamResourceAddSummaries",
     "quantile_stream_resource_handle: resource; summaries: num_features * "
     "float",
     "", "num_features: int >= 0", ".; ? ?", "", true,
     "Adds summaries to streams."},
    {"BoostedTreesQuantileStreamResourceDeserialize",
     "quantile_stream_resource_handle: resource; bucket_boundaries: "
     "num_streams * float",
     // Scalars: so upstream's rule has it.
     "", "num_streams: int >= 1", ".; .", "", true,
     "Replaces the streams by boundaries of buckets."},
    {"BoostedTreesQuantileStreamResourceFlush",
     "quantile_stream_resource_handle: resource; num_buckets: int64", "",
     "generate_quantiles: bool = false", ".; .", "", true,
     "Ends streams, from which boundaries are taken then."},
    {"BoostedTreesQuantileStreamResourceGetBucketBoundaries",
     "quantile_stream_resource_handle: resource",
     "bucket_boundaries: num_features * float", "num_features: int >= 0", ".",
     "?", true, "The boundaries of buckets that streams gave."},
    {"BoostedTreesQuantileStreamResourceHandleOp", "", "resource: resource",
     kHandle, "", ".", true, "A handle of streams for quantiles."},
    {"BoostedTreesSerializeEnsemble", "tree_ensemble_handle: resource",
     "stamp_token: int64; tree_ensemble_serialized: string", "", ".", ".; .",
     true, "An ensemble as a proto."},
    {"BoostedTreesSparseAggregateStats",
     "node_ids: int32; gradients: float; hessians: float; feature_indices: "
     "int32; feature_values: int32; feature_shape: int32",
     "stats_summary_indices: int32; stats_summary_values: float; "
     "stats_summary_shape: int32",
     "max_splits: int >= 1; num_buckets: int >= 1", "n; n ?; n ?; m ?; m; 2",
     "? 4; ?; 4", false,
     "Sums of gradients and hessians by node, feature and bucket, as a sparse "
     "tensor."},
    {"BoostedTreesSparseCalculateBestFeatureSplit",
     "node_id_range: int32; stats_summary_indices: int32; "
     "stats_summary_values: float; stats_summary_shape: int32; l1: float; l2: "
     "float; tree_complexity: float; min_node_weight: float",
     kSplitOutputs,
     "logits_dimension: int >= 1; split_type: {'inequality'} = 'inequality'",
     "2; ? ?; ?; ?; .; .; .; .", kSplitShapes, false,
     "The best split of each node by one sparse feature."},
    {"BoostedTreesTrainingPredict",
     "tree_ensemble_handle: resource; cached_tree_ids: int32; "
     "cached_node_ids: int32; bucketized_features: num_bucketized_features * "
     "int32",
     "partial_logits: float; tree_ids: int32; node_ids: int32",
     "num_bucketized_features: int >= 1; logits_dimension: int", "*; n; n; n",
     "n @logits_dimension; n; n", true,
     "What the trees add since the last call, and where examples stand."},
    {"BoostedTreesUpdateEnsemble",
     "tree_ensemble_handle: resource; feature_ids: int32; node_ids: "
     "num_features * int32; gains: num_features * float; thresholds: "
     "num_features * int32; left_node_contribs: num_features * float; "
     "right_node_contribs: num_features * float; max_depth: int32; "
     "learning_rate: float",
     "", "pruning_mode: int >= 0; num_features: int >= 0",
     "*; @num_features; v#; v#; v#; v# 1; v# 1; *; *", "", true,
     "Grows the last tree by a layer."},
    {"BoostedTreesUpdateEnsembleV2",
     "tree_ensemble_handle: resource; feature_ids: num_groups * int32; "
     "dimension_ids: num_features * int32; node_ids: num_features * int32; "
     "gains: num_features * float; thresholds: num_features * int32; "
     "left_node_contribs: num_features * float; right_node_contribs: "
     "num_features * float; split_types: num_features * string; max_depth: "
     "int32; learning_rate: float; pruning_mode: int32",
     "",
     "num_features: int >= 0; logits_dimension: int = 1; num_groups: int >= 1 "
     "= 1",
     "*; v; v; v; v; v; v @logits_dimension; v @logits_dimension; v; *; *; *",
     "", true, "Grows the last tree by a layer."},
    {"IsBoostedTreesEnsembleInitialized", "tree_ensemble_handle: resource",
     "is_initialized: bool", "", ".", ".", true,
     "Whether an ensemble was made."},
    {"IsBoostedTreesQuantileStreamResourceInitialized",
     "quantile_stream_resource_handle: resource", "is_initialized: bool", "",
     ".", ".", true, "Whether streams were made."},
};

const bool boosted_trees = RegisterTextOps(kBoostedTrees);

}  // namespace
}  // namespace headrace
