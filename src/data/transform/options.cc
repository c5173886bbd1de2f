// OptionsDataset and its kin: the input itself; they say how walks are done.
#include "data/dataset_op.h"
#include "op/op_like.h"
#include "op/resource.h"
#include "tensorflow/core/framework/dataset_options.pb.h"

namespace headrace {
namespace {

using ProtoOptions = tensorflow::data::Options;

class OptionsDataset : public InputDataset {
 public:
  OptionsDataset(DatasetPtr input, ProtoOptions options)
      : InputDataset(input->spec(), input), options_(std::move(options)) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    return input().Reader(c);
  }
  StringView kind() const override { return "Options"; }
  const ProtoOptions& options() const { return options_; }
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

[[maybe_unused]] const bool kExperimentalMaxIntraOpParallelism =
    RegisterLike("ExperimentalMaxIntraOpParallelismDataset",
                 "MaxIntraOpParallelismDataset", WithoutMetadata);
[[maybe_unused]] const bool kExperimentalPrivateThreadPool =
    RegisterLike("ExperimentalPrivateThreadPoolDataset",
                 "PrivateThreadPoolDataset", WithoutMetadata);

OpBuilder ForwardOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("input_dataset: variant").Output("handle: variant");
  b.Doc(doc).Shape(ScalarShape).Cpu(ComputeOwn<ForwardDataset>);
  return b;
}
const char kUnsaved[] = "The input, which upstream does not save.";
[[maybe_unused]] const OpRegistrar kForwards[] = {
    ForwardOp("OptimizeDataset", "The input; walks rewrite what they go along.")
        .Input("optimizations: string")
        .Attr(kOutputTypes)
        .Attr(kOutputShapes)
        .Attr("optimization_configs: list(string) = []"),
    ForwardOp("RewriteDataset", "The input; walks rewrite what they go along.")
        .Input("rewrite_name: string")
        .Attr(kOutputTypes)
        .Attr(kOutputShapes),
    ForwardOp("NonSerializableDataset", kUnsaved)
        .Attr(kOutputTypes)
        .Attr(kOutputShapes),
};
[[maybe_unused]] const bool kExperimentalUnsaved = RegisterLike(
    "ExperimentalNonSerializableDataset", "NonSerializableDataset");

// What all OptionsDatasets of a pipeline say; the last of them counts.
void MergeOptions(const Dataset& dataset, ProtoOptions* options) {
  for (const DatasetPtr& input : dataset.inputs()) {
    MergeOptions(*input, options);
  }
  if (const auto* own = dynamic_cast<const OptionsDataset*>(&dataset)) {
    options->MergeFrom(own->options());
  }
}

Status ReadOptions(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  ProtoOptions options;
  MergeOptions(*input, &options);
  c.set_output(0, Tensor::Scalar<std::string>(options.SerializeAsString()));
  return OkStatus();
}

HR_OP(GetOptions)
    .Input("input_dataset: variant")
    .Output("serialized_options: string")
    .Doc("The options of a dataset, a serialised Options message.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<ReadOptions>);

// How many threads a pool is asked to have.
class ThreadPoolHandle : public Resource {
 public:
  ThreadPoolHandle(int64_t threads, int64_t op_threads)
      : threads_(threads), op_threads_(op_threads) {}
  std::string DebugString() const override {
    return absl::StrCat("ThreadPool of ", threads_);
  }
  int64_t threads() const { return threads_; }
  int64_t op_threads() const { return op_threads_; }

 private:
  const int64_t threads_, op_threads_;
};

Status MakePoolHandle(KernelContext& c) {
  const int64_t n = c.op().int_attr("num_threads");
  if (n < 0) return InvalidArgument("`num_threads` must be >= 0");
  ResourceHandle handle;
  handle.name = c.op().string_attr("shared_name");
  handle.container = "localhost";
  handle.resource = std::make_shared<ThreadPoolHandle>(
      n, c.op().int_attr("max_intra_op_parallelism"));
  c.set_output(0, Tensor::Scalar(std::move(handle)));
  return OkStatus();
}

HR_OP(ThreadPoolHandle)
    .Output("handle: resource")
    .Attr("num_threads: int")
    .Attr("max_intra_op_parallelism: int = 1")
    .Attr("display_name: string")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("Says how many threads walks have.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakePoolHandle>);

Status MakeWithPool(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto pool, ResourceAs<ThreadPoolHandle>(
                                     c.input(1), c.services().resources));
  return WithThreads(c, pool->op_threads(), pool->threads());
}

HR_OP(ThreadPoolDataset)
    .Input("input_dataset: variant")
    .Input("thread_pool: resource")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The input; parallel parts have the threads of a pool.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeWithPool>);
[[maybe_unused]] const bool kExperimentalPools[] = {
    RegisterLike("ExperimentalThreadPoolHandle", "ThreadPoolHandle"),
    RegisterLike("ExperimentalThreadPoolDataset", "ThreadPoolDataset"),
};

// A dataset that no pass looks into.
class WrappedDataset : public VariantValue {
 public:
  explicit WrappedDataset(Tensor inner) : inner_(std::move(inner)) {}
  StringView type_name() const override {
    return "tensorflow::WrappedDatasetVariantWrapper";
  }
  const Tensor& inner() const { return inner_; }

 private:
  const Tensor inner_;
};

Status WrapDataset(KernelContext& c) {
  HR_RETURN_IF_ERROR(DatasetOf(c.input(0)).status());
  c.set_output(
      0, Tensor::Scalar(Variant(std::make_shared<WrappedDataset>(c.input(0)))));
  return OkStatus();
}

HR_OP(WrapDatasetVariant)
    .Input("input_handle: variant")
    .Output("output_handle: variant")
    .Doc("A dataset that is handed on as it is.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<WrapDataset>);

Status UnwrapDataset(KernelContext& c) {
  const WrappedDataset* wrapped = nullptr;
  if (c.input(0).num_elements() == 1) {
    wrapped = c.input(0).scalar<Variant>().get<WrappedDataset>();
  }
  if (wrapped == nullptr) {
    return InvalidArgument("Tensor must be a WrappedDataset variant object.");
  }
  c.set_output(0, wrapped->inner());
  return OkStatus();
}

HR_OP(UnwrapDatasetVariant)
    .Input("input_handle: variant")
    .Output("output_handle: variant")
    .Doc("The dataset that was wrapped.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<UnwrapDataset>);

}  // namespace
}  // namespace headrace
