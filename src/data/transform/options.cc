// OptionsDataset and its kin: the input itself; they say how walks are done.
#include "data/dataset_op.h"
#include "tensorflow/core/framework/dataset_options.pb.h"

namespace headrace {
namespace {

using ProtoOptions = tensorflow::data::Options;

class OptionsDataset : public InputDataset {
 public:
  OptionsDataset(DatasetPtr input, ProtoOptions options)
      : InputDataset(input->spec(), input), options_(std::move(options)) {}
  StringView kind() const override { return "Options"; }
  DatasetPtr StandIn(const PullContext&) const override { return inputs()[0]; }
  void SetOptions(WalkOptions* o) const override {
    const ProtoOptions& p = options_;
    if (p.optional_deterministic_case() != 0) {
      o->deterministic = p.deterministic();
    }
    SetRewrites(p.optimization_options(), o);
    // Upstream's autotuning makes these two rewrites, so they go with it.
    if (p.autotune_options().optional_enabled_case() != 0 &&
        !p.autotune_options().enabled()) {
      o->parallel_maps = o->inject_prefetch = false;
    }
    const auto& threading = p.threading_options();
    if (threading.max_intra_op_parallelism() > 0) {
      o->op_threads = threading.max_intra_op_parallelism();
    }
    const int64_t most = threading.private_threadpool_size() > 0
                             ? threading.private_threadpool_size()
                             : p.autotune_options().cpu_budget();
    if (most > 0) o->threads = std::min<int64_t>(most, kMostThreads);
  }

 protected:
  // Never asked for: the input stands in always.
  IteratorPtr NewIterator(std::string) const override { return nullptr; }

 private:
  // As many as the pool may have (base/thread_pool.cc).
  static constexpr int64_t kMostThreads = 1024;

  static void SetRewrites(const tensorflow::data::OptimizationOptions& p,
                          WalkOptions* o) {
    // The general switch first: the single ones below may go against it.
    if (p.optional_apply_default_optimizations_case() != 0 &&
        !p.apply_default_optimizations()) {
      o->fuse_batches = o->fuse_shuffles = o->drop_idle = false;
      o->parallel_maps = o->inject_prefetch = false;
    }
    if (p.optional_map_and_batch_fusion_case() != 0) {
      o->fuse_batches = p.map_and_batch_fusion();
    }
    if (p.optional_shuffle_and_repeat_fusion_case() != 0) {
      o->fuse_shuffles = p.shuffle_and_repeat_fusion();
    }
    if (p.optional_noop_elimination_case() != 0) {
      o->drop_idle = p.noop_elimination();
    }
    if (p.optional_map_parallelization_case() != 0) {
      o->parallel_maps = p.map_parallelization();
    }
    if (p.optional_inject_prefetch_case() != 0) {
      o->inject_prefetch = p.inject_prefetch();
    }
  }

  const ProtoOptions options_;
};

Status MakeOptions(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  ProtoOptions options;
  if (!options.ParseFromString(c.op().string_attr("serialized_options"))) {
    return InvalidArgument("Could not parse ", c.op().name(),
                           "'s serialized_options");
  }
  return SetDataset<OptionsDataset>(c, std::move(input), std::move(options));
}

Status WithThreads(KernelContext& c, int64_t ops, int64_t pool) {
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  ProtoOptions options;
  const auto cut = [](int64_t n) {
    // The proto has 32 bits; more threads than that are none that could run.
    return static_cast<int32_t>(std::min<int64_t>(n, 1 << 20));
  };
  if (ops > 0) {
    options.mutable_threading_options()->set_max_intra_op_parallelism(cut(ops));
  }
  if (pool > 0) {
    options.mutable_threading_options()->set_private_threadpool_size(cut(pool));
  }
  return SetDataset<OptionsDataset>(c, std::move(input), std::move(options));
}

Status MakeMaxIntraOp(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const int64_t n,
                      IntInput(c, 1, "max_intra_op_parallelism"));
  if (n < 0) {
    return InvalidArgument("`max_intra_op_parallelism` must be >= 0");
  }
  return WithThreads(c, n, 0);
}

Status MakePrivatePool(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const int64_t n, IntInput(c, 1, "num_threads"));
  if (n < 0) return InvalidArgument("`num_threads` must be >= 0");
  return WithThreads(c, 0, n);
}

// What says nothing that has a meaning here gives the input itself.
Status ForwardDataset(KernelContext& c) {
  HR_RETURN_IF_ERROR(DatasetOf(c.input(0)).status());
  c.set_output(0, c.input(0));
  return OkStatus();
}

HR_OP(OptionsDataset)
    .Input("input_dataset: variant")
    .Output("handle: variant")
    .Attr("serialized_options: string")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The input; the options say how walks along it are done.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeOptions>);

HR_OP(ModelDataset)
    .Input("input_dataset: variant")
    .Output("handle: variant")
    .Attr("algorithm: int = 0")
    .Attr("cpu_budget: int = 0")
    .Attr("ram_budget: int = 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The input; iterators tune themselves.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<ForwardDataset>);

HR_OP(OptimizeDatasetV2)
    .Input("input_dataset: variant")
    .Input("optimizations_enabled: string")
    .Input("optimizations_disabled: string")
    .Input("optimizations_default: string")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("optimization_configs: list(string) = []")
    .Doc("The input; walks rewrite what they go along.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<ForwardDataset>);

HR_OP(FinalizeDataset)
    .Input("input_dataset: variant")
    .Output("handle: variant")
    .Attr("has_captured_ref: bool = false")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The input.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<ForwardDataset>);

HR_OP(MaxIntraOpParallelismDataset)
    .Input("input_dataset: variant")
    .Input("max_intra_op_parallelism: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The input; its ops have so many threads.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeMaxIntraOp>);

HR_OP(PrivateThreadPoolDataset)
    .Input("input_dataset: variant")
    .Input("num_threads: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The input; parallel parts have so many threads.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakePrivatePool>);

}  // namespace
}  // namespace headrace
