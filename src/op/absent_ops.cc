#include "op/absent_ops.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "op/registry.h"

namespace headrace {
namespace {

// Ops of upstream's that are not there. tools/op_coverage.py makes the table in
// docs/coverage.md of these rows, and says which of upstream's names have
// neither an op nor a row.
constexpr AbsentOps kAbsent[] = {
    {"TPU", "it runs on TPUs alone",
     "AllToAll AssignVariableXlaConcatND CollectivePermute "
     "ConfigureDistributedTPU ConfigureTPUEmbedding ConvertToCooTensor "
     "ConvertToListOfSparseCoreCooTensors "
     "ConvertToSparseCoreCsrWrappedCooTensor CrossReplicaSum "
     "DynamicEnqueueTPUEmbeddingArbitraryTensorBatch "
     "DynamicEnqueueTPUEmbeddingRaggedTensorBatch "
     "EnqueueTPUEmbeddingArbitraryTensorBatch "
     "EnqueueTPUEmbeddingIntegerBatch EnqueueTPUEmbeddingRaggedTensorBatch "
     "EnqueueTPUEmbeddingSparseBatch EnqueueTPUEmbeddingSparseTensorBatch "
     "GetMinibatchSplitsWithPhysicalReplica "
     "GetMinibatchesInCsrWithPhysicalReplica "
     "GetStatsFromListOfSparseCoreCooTensors GlobalIterId InfeedDequeue "
     "InfeedDequeueTuple InfeedEnqueue InfeedEnqueuePrelinearizedBuffer "
     "InfeedEnqueueTuple IsTPUEmbeddingInitialized "
     "LoadTPUEmbeddingADAMParameters LoadTPUEmbeddingAdadeltaParameters "
     "LoadTPUEmbeddingAdagradMomentumParameters "
     "LoadTPUEmbeddingAdagradParameters "
     "LoadTPUEmbeddingCenteredRMSPropParameters "
     "LoadTPUEmbeddingFTRLParameters "
     "LoadTPUEmbeddingFrequencyEstimatorParameters "
     "LoadTPUEmbeddingMDLAdagradLightParameters "
     "LoadTPUEmbeddingMomentumParameters "
     "LoadTPUEmbeddingProximalAdagradParameters "
     "LoadTPUEmbeddingProximalYogiParameters "
     "LoadTPUEmbeddingRMSPropParameters "
     "LoadTPUEmbeddingStochasticGradientDescentParameters OutfeedDequeue "
     "OutfeedDequeueTuple OutfeedDequeueTupleV2 OutfeedDequeueV2 "
     "OutfeedEnqueue OutfeedEnqueueTuple Prelinearize PrelinearizeTuple "
     "ReadVariableXlaSplitND RecvTPUEmbeddingActivations "
     "RetrieveTPUEmbeddingADAMParameters "
     "RetrieveTPUEmbeddingAdadeltaParameters "
     "RetrieveTPUEmbeddingAdagradMomentumParameters "
     "RetrieveTPUEmbeddingAdagradParameters "
     "RetrieveTPUEmbeddingCenteredRMSPropParameters "
     "RetrieveTPUEmbeddingFTRLParameters "
     "RetrieveTPUEmbeddingFrequencyEstimatorParameters "
     "RetrieveTPUEmbeddingMDLAdagradLightParameters "
     "RetrieveTPUEmbeddingMomentumParameters "
     "RetrieveTPUEmbeddingProximalAdagradParameters "
     "RetrieveTPUEmbeddingProximalYogiParameters "
     "RetrieveTPUEmbeddingRMSPropParameters "
     "RetrieveTPUEmbeddingStochasticGradientDescentParameters "
     "SendTPUEmbeddingGradients ShutdownDistributedTPU "
     "SortListOfSparseCoreCooTensors StoreMinibatchStatisticsInFdo "
     "TPUAnnotateTensorsWithDynamicShape TPUCompilationResult "
     "TPUCopyWithDynamicShape TPUDummyInput TPUEmbeddingActivations "
     "TPUOrdinalSelector TPUPartitionedCall TPUPartitionedInput "
     "TPUPartitionedInputV2 TPUPartitionedOutput TPUPartitionedOutputV2 "
     "TPUReplicateMetadata TPUReplicatedInput TPUReplicatedOutput "
     "WorkerHeartbeat XlaConcatND XlaSparseCoreAdagrad "
     "XlaSparseCoreAdagradMomentum XlaSparseCoreAdam XlaSparseCoreFtrl "
     "XlaSparseCoreSgd XlaSparseDenseMatmul "
     "XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradAndCsrInput "
     "XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradMomentumAndCsrInput "
     "XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdamAndCsrInput "
     "XlaSparseDenseMatmulCustomCombinerOnTcGradWithCsrInput "
     "XlaSparseDenseMatmulCustomCombinerOnTcGradWithFtrlAndCsrInput "
     "XlaSparseDenseMatmulCustomCombinerOnTcGradWithSgdAndCsrInput "
     "XlaSparseDenseMatmulCustomCombinerOnTcWithCsrInput "
     "XlaSparseDenseMatmulGradWithAdagradAndCsrInput "
     "XlaSparseDenseMatmulGradWithAdagradAndStaticBufferSize "
     "XlaSparseDenseMatmulGradWithAdagradMomentumAndCsrInput "
     "XlaSparseDenseMatmulGradWithAdagradMomentumAndStaticBufferSize "
     "XlaSparseDenseMatmulGradWithAdamAndCsrInput "
     "XlaSparseDenseMatmulGradWithAdamAndStaticBufferSize "
     "XlaSparseDenseMatmulGradWithCsrInput "
     "XlaSparseDenseMatmulGradWithFtrlAndCsrInput "
     "XlaSparseDenseMatmulGradWithFtrlAndStaticBufferSize "
     "XlaSparseDenseMatmulGradWithSgdAndCsrInput "
     "XlaSparseDenseMatmulGradWithSgdAndStaticBufferSize "
     "XlaSparseDenseMatmulWithCsrInput "
     "XlaSparseDenseMatmulWithStaticBufferSize XlaSplitND"},
    {"cluster", "it needs several processes, and Headrace works in one",
     "Recv Send"},
    {"training-internals",
     "it tells the runtime of TensorFlow about its own state",
     "CreateSummaryDbWriter IteratorGetModelProto ListSnapshotChunksDataset "
     "SnapshotChunkDataset"},
    {"wanted", "this format is not read yet", "DecodeJxl"},
    {"cluster",
     "of the data service there are RegisterDatasetV2 and DataServiceDatasetV4",
     "DataServiceDataset DataServiceDatasetV2 DataServiceDatasetV3 "
     "RegisterDataset"},
    {"cluster", "the data service does not save; use Dataset.save",
     "DistributedSave"},
    {"wanted", "files of LMDB are not read",
     "ExperimentalLMDBDataset LMDBDataset LMDBReader"},
    {"wanted", "use tf.data.experimental.SqlDataset",
     "ExperimentalSqlDataset SqlDataset"},
    {"training-internals", "it would end the process", "Abort"},
};

}  // namespace

absl::Span<const AbsentOps> AllAbsentOps() { return kAbsent; }

std::string WhyAbsent(StringView name) {
  if (name.empty() || FindOp(name) != nullptr) return "";
  for (const AbsentOps& row : kAbsent) {
    for (StringView absent : absl::StrSplit(row.names, ' ')) {
      if (absent != name) continue;
      return absl::StrCat(
          name,
          " is an op of TensorFlow that Headrace does not have: ", row.why,
          ".");
    }
  }
  return "";
}

std::string WhyAbsent(const std::set<StringView>& names) {
  std::string reasons;
  for (const StringView name : names) {
    const std::string why = WhyAbsent(name);
    if (!why.empty()) absl::StrAppend(&reasons, " ", why);
  }
  return reasons;
}

}  // namespace headrace
