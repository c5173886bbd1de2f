// GroupByWindowDataset: elements gathered by key; a function makes a dataset
// of every full group.
#include <map>

#include "data/dataset_op.h"
#include "data/source/elements.h"

namespace headrace {
namespace {

class GroupDataset : public InputDataset {
 public:
  GroupDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr key,
               CapturedFunctionPtr reduce, CapturedFunctionPtr size)
      : InputDataset(std::move(spec), std::move(input)),
        key_(std::move(key)),
        reduce_(std::move(reduce)),
        size_(std::move(size)) {}
  StringView kind() const override { return "GroupByWindow"; }
  int64_t Cardinality() const override { return kUnknownCardinality; }

  class Iterator : public InputIterator<GroupDataset> {
   public:
    using InputIterator::InputIterator;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(key_, dataset().key_->Begin(c));
      HR_ASSIGN_OR_RETURN(reduce_, dataset().reduce_->Begin(c));
      HR_ASSIGN_OR_RETURN(size_, dataset().size_->Begin(c));
      return InputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        if (current_) {
          bool group_end = false;
          HR_RETURN_IF_ERROR(current_->Next(c, out, &group_end));
          if (!group_end) return OkStatus();
          current_.reset();
          window_.clear();
        }
        HR_RETURN_IF_ERROR(GatherGroup(c));
        if (current_) continue;
        if (groups_.empty()) {
          *end = true;
          return OkStatus();
        }
        HR_RETURN_IF_ERROR(Emit(c, groups_.begin()->first));
      }
    }
    Status Save(PullContext& c, StateWriter& w) override;
    Status Restore(PullContext& c, const StateReader& r) override;

   private:
    // Reads on until a group is full and its dataset is current_.
    Status GatherGroup(PullContext& c) {
      while (input_ && !current_) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        Element element;
        bool input_end = false;
        HR_RETURN_IF_ERROR(NextInput(c, &element, &input_end));
        if (input_end) return OkStatus();
        HR_ASSIGN_OR_RETURN(const int64_t key, Number(*key_, element, "key"));
        auto size = sizes_.find(key);
        if (size == sizes_.end()) {
          HR_ASSIGN_OR_RETURN(
              const int64_t n,
              Number(*size_, {Tensor::Scalar<int64_t>(key)}, "window_size"));
          if (n <= 0) {
            return InvalidArgument(
                "Window size must be greater than zero, but got ", n, ".");
          }
          size = sizes_.emplace(key, n).first;
        }
        std::vector<Element>& group = groups_[key];
        group.push_back(std::move(element));
        if (static_cast<int64_t>(group.size()) >= size->second) {
          HR_RETURN_IF_ERROR(Emit(c, key));
        }
      }
      return OkStatus();
    }
    static StatusOr<int64_t> Number(CapturedFunction::Run& f, Element args,
                                    StringView what) {
      Element results;
      HR_RETURN_IF_ERROR(f(&args, &results));
      if (results.size() != 1 || results[0].dtype() != DType::kInt64 ||
          results[0].num_elements() != 1) {
        return InvalidArgument("`", what, "_func` must return a scalar int64.");
      }
      return results[0].scalar<int64_t>();
    }
    Status Emit(PullContext& c, int64_t key) {
      window_ = std::move(groups_[key]);
      groups_.erase(key);
      current_key_ = key;
      return Open(c);
    }
    Status Open(PullContext& c) {
      const ElementSpec& spec = dataset().input().spec();
      Element args{Tensor::Scalar<int64_t>(current_key_),
                   DatasetTensor(
                       std::make_shared<const ElementsDataset>(spec, window_))};
      Element results;
      HR_RETURN_IF_ERROR((*reduce_)(&args, &results));
      HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetResult(results));
      HR_ASSIGN_OR_RETURN(current_, dataset->Iterate(c, prefix()));
      return OkStatus();
    }

    FunctionRunPtr key_, reduce_, size_;
    std::map<int64_t, std::vector<Element>> groups_;
    std::map<int64_t, int64_t> sizes_;
    IteratorPtr current_;
    std::vector<Element> window_;  // that current_ was made of
    int64_t current_key_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr key_, reduce_, size_;
};

Status GroupDataset::Iterator::Save(PullContext& c, StateWriter& w) {
  w.PutInt(prefix(), "groups_size", static_cast<int64_t>(groups_.size()));
  int64_t i = 0;
  for (const auto& [key, group] : groups_) {
    w.PutInt(prefix(), absl::StrCat("groups[", i, "]->key"), key);
    w.PutInt(prefix(), absl::StrCat("groups[", i, "]->window_size"),
             sizes_[key]);
    w.PutElements(prefix(), absl::StrCat("groups[", i, "]"), group);
    ++i;
  }
  w.PutInt(prefix(), "current_key", current_key_);
  w.PutElements(prefix(), "current_window", window_);
  HR_RETURN_IF_ERROR(
      SaveInput(c, w, prefix(), "current_iterator_empty", current_.get()));
  return InputIterator::Save(c, w);
}

Status GroupDataset::Iterator::Restore(PullContext& c, const StateReader& r) {
  HR_ASSIGN_OR_RETURN(const int64_t n, r.GetInt(prefix(), "groups_size"));
  groups_.clear();
  sizes_.clear();
  for (int64_t i = 0; i < n; ++i) {
    const std::string name = absl::StrCat("groups[", i, "]");
    HR_ASSIGN_OR_RETURN(const int64_t key, r.GetInt(prefix(), name + "->key"));
    HR_ASSIGN_OR_RETURN(sizes_[key],
                        r.GetInt(prefix(), name + "->window_size"));
    HR_RETURN_IF_ERROR(r.GetElements(prefix(), name, &groups_[key]));
  }
  HR_ASSIGN_OR_RETURN(current_key_, r.GetInt(prefix(), "current_key"));
  HR_RETURN_IF_ERROR(r.GetElements(prefix(), "current_window", &window_));
  current_.reset();
  if (!r.Flag(prefix(), "current_iterator_empty")) {
    HR_RETURN_IF_ERROR(Open(c));
    HR_RETURN_IF_ERROR(current_->Restore(c, r));
  }
  return InputIterator::Restore(c, r);
}

Status MakeGroup(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(
      CapturedFunctionPtr key,
      CapturedFunction::Make(c, "key_func", "key_func_other_arguments"));
  HR_ASSIGN_OR_RETURN(
      CapturedFunctionPtr reduce,
      CapturedFunction::Make(c, "reduce_func", "reduce_func_other_arguments"));
  HR_ASSIGN_OR_RETURN(
      CapturedFunctionPtr size,
      CapturedFunction::Make(c, "window_size_func",
                             "window_size_func_other_arguments"));
  return SetDataset<GroupDataset>(c, std::move(spec), std::move(input),
                                  std::move(key), std::move(reduce),
                                  std::move(size));
}

HR_OP(GroupByWindowDataset)
    .Input("input_dataset: variant")
    .Input("key_func_other_arguments: Tkey_func_other_arguments")
    .Input("reduce_func_other_arguments: Treduce_func_other_arguments")
    .Input(
        "window_size_func_other_arguments: Twindow_size_func_other_arguments")
    .Output("handle: variant")
    .Attr("key_func: func")
    .Attr("reduce_func: func")
    .Attr("window_size_func: func")
    .Attr("Tkey_func_other_arguments: list(type) >= 0")
    .Attr("Treduce_func_other_arguments: list(type) >= 0")
    .Attr("Twindow_size_func_other_arguments: list(type) >= 0") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("Elements gathered by key, and a function of every full group.")
        HR_DATASET_END(MakeGroup);

}  // namespace
}  // namespace headrace
