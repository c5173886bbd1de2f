// AutoShardDataset: one worker's part of a dataset: of its files or of its
// elements.
#include "data/dataset_op.h"
#include "data/transform/shard.h"
#include "op/op_like.h"

namespace headrace {
namespace {

// The first source that reads no files, if there is one.
const Dataset* SourceWithoutFiles(const Dataset& dataset) {
  if (dataset.reads_files()) return nullptr;
  const std::vector<DatasetPtr> inputs = dataset.inputs();
  for (const DatasetPtr& input : inputs) {
    if (const Dataset* found = SourceWithoutFiles(*input)) return found;
  }
  return inputs.empty() ? &dataset : nullptr;
}

// The input, of whose files a walk reads its part, or whose shards that are
// left open are these.
class PartDataset : public InputDataset {
 public:
  PartDataset(ElementSpec spec, DatasetPtr input, FileShard shard, bool of_hint)
      : InputDataset(std::move(spec), std::move(input)),
        shard_(shard),
        of_hint_(of_hint) {}
  StringView kind() const override { return "AutoShard"; }
  int64_t Count() const override { return kUnknownCardinality; }

  class Iterator : public MadeIteratorOf<PartDataset> {
   public:
    using MadeIteratorOf::MadeIteratorOf;

   private:
    StatusOr<IteratorPtr> Make(PullContext& c, PullContext& inner) override {
      inner = c;
      if (dataset().of_hint_) {
        inner.hint = dataset().shard_;
      } else {
        inner.files = dataset().shard_;
      }
      return dataset().input().Iterate(inner, prefix());
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const FileShard shard_;
  const bool of_hint_;
};

Status MakeAutoShard(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t workers, IntInput(c, 1, "num_workers"));
  HR_ASSIGN_OR_RETURN(const int64_t index, IntInput(c, 2, "index"));
  const int64_t policy = c.op().int_attr("auto_shard_policy");
  if (policy < static_cast<int>(AutoShard::kOff) ||
      policy > static_cast<int>(AutoShard::kHint)) {
    return InvalidArgument("auto_shard_policy is invalid.");
  }
  const Dataset* const whole = input.get();
  HR_ASSIGN_OR_RETURN(DatasetPtr part,
                      AutoShardOf(std::move(input), workers, index,
                                  static_cast<AutoShard>(policy)));
  if (part.get() != whole) NoteCall(c, *part);
  return SetDataset(c, std::move(part));
}

HR_OP(AutoShardDataset)
    .Input("input_dataset: variant")
    .Input("num_workers: int64")
    .Input("index: int64")
    .Output("handle: variant")
    .Attr("auto_shard_policy: int = 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("num_replicas: int = 0")
    .Doc(
        "One worker's part of the input: of its files, where it reads some, "
        "or of its elements.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeAutoShard>);

[[maybe_unused]] const bool kExperimentalAutoShard = RegisterLike(
    "ExperimentalAutoShardDataset", "AutoShardDataset", [](OpDef& def) {
      std::erase_if(def.attrs,
                    [](const AttrDef& a) { return a.name == "num_replicas"; });
    });

}  // namespace

StatusOr<DatasetPtr> AutoShardOf(DatasetPtr input, int64_t workers,
                                 int64_t index, AutoShard policy) {
  if (workers < 1) {
    return InvalidArgument("num_workers must be greater than zero.");
  }
  if (index < 0 || index >= workers) {
    return InvalidArgument("index must be between 0 and ", workers - 1);
  }
  if (policy == AutoShard::kOff) return input;
  const FileShard shard{workers, index};
  const auto part = [&](bool of_hint) -> DatasetPtr {
    ElementSpec spec = input->spec();
    return MakeNested<const PartDataset>(std::move(spec), std::move(input),
                                         shard, of_hint);
  };
  if (policy == AutoShard::kHint) return part(/*of_hint=*/true);
  const Dataset* other = SourceWithoutFiles(*input);
  if (policy == AutoShard::kFile && other != nullptr) {
    return NotFound("Found an unshardable source dataset: ", other->kind(),
                    "Dataset");
  }
  if (policy == AutoShard::kData || other != nullptr) {
    return ShardOf(std::move(input), workers, index, false);
  }
  return part(/*of_hint=*/false);
}

}  // namespace headrace
