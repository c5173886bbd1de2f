// MatchingFilesDataset: names of the files that match patterns.
#include <algorithm>

#include "base/files/files.h"
#include "data/dataset_op.h"
#include "op/op_like.h"
#include "op/reach.h"

namespace headrace {
namespace {

class MatchingDataset : public Dataset {
 public:
  explicit MatchingDataset(std::vector<std::string> patterns)
      : Dataset(ElementSpec{{DType::kString}, {Shape()}}),
        patterns_(std::move(patterns)) {}
  StringView kind() const override { return "MatchingFiles"; }

  // The names are looked for when a walk begins; each pattern's are sorted.
  class Iterator : public IteratorOf<MatchingDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      for (const std::string& pattern : dataset().patterns_) {
        std::string path;
        HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(pattern, &path));
        HR_ASSIGN_OR_RETURN(auto found, MatchPaths(fs, path));
        std::sort(found.begin(), found.end());
        names_.insert(names_.end(), found.begin(), found.end());
      }
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      *end = at_ >= static_cast<int64_t>(names_.size());
      if (!*end) *out = {Tensor::Scalar<std::string>(names_[at_++])};
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "current_pattern_index", at_);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(at_, r.GetCount(prefix(), "current_pattern_index"));
      return OkStatus();
    }

   private:
    std::vector<std::string> names_;
    int64_t at_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::vector<std::string> patterns_;
};

Status MakeMatching(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(std::vector<std::string> patterns,
                      TextsInput(c, 0, "patterns"));
  return SetDataset<MatchingDataset>(c, std::move(patterns));
}

HR_OP(MatchingFilesDataset)
    .Traits({kReadsFiles})
    .Input("patterns: string")
    .Output("handle: variant")
    .Doc("Paths of the files that match patterns, sorted by pattern.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeMatching>);
[[maybe_unused]] const bool kExperimentalMatching =
    RegisterLike("ExperimentalMatchingFilesDataset", "MatchingFilesDataset");

}  // namespace
}  // namespace headrace
