// GroupByWindowDataset: elements gathered by key; a function makes a dataset
// of every full group.
#include <map>

#include "data/dataset_op.h"
#include "data/elements.h"
#include "op/op_like.h"

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
  int64_t Count() const override {
    const bool infinite = input().Cardinality() == kInfiniteCardinality;
    return infinite ? kInfiniteCardinality : kUnknownCardinality;
  }

  class Iterator : public KeptInputIterator<GroupDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(key_, dataset().key_->Begin(c));
      HR_ASSIGN_OR_RETURN(reduce_, dataset().reduce_->Begin(c));
      HR_ASSIGN_OR_RETURN(size_, dataset().size_->Begin(c));
      inner_ = c.Inner();
      return KeptInputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        if (current_) {
          bool group_end = false;
          HR_RETURN_IF_ERROR(current_->Next(inner_, out, &group_end));
          if (!group_end) return OkStatus();
          current_.reset();
          // Kept until now for states, in which the group stands while it is
          // read.
          groups_.erase(current_key_);
        }
        HR_RETURN_IF_ERROR(GatherGroup(c));
        if (current_) continue;
        if (groups_.empty()) {
          *end = true;
          return OkStatus();
        }
        // The input has ended: windows that are not full, in the order of their
        // keys, as upstream gives them.
        HR_RETURN_IF_ERROR(Emit(groups_.begin()->first));
      }
    }
    Status Save(PullContext& c, StateWriter& w) override;
    Status Restore(PullContext& c, const StateReader& r) override;

   private:
    // Reads on until a group is full and its dataset is current_.
    Status GatherGroup(PullContext& c) {
      while (!ended_ && !current_) {
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
          // Asked once a key, as upstream does.
          if (n <= 0) {
            return InvalidArgument(
                "Window size must be greater than zero, but got ", n, ".");
          }
          size = sizes_.emplace(key, n).first;
        }
        std::vector<Element>& group = groups_[key];
        group.push_back(std::move(element));
        if (static_cast<int64_t>(group.size()) >= size->second) {
          HR_RETURN_IF_ERROR(Emit(key));
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
    Status Emit(int64_t key) {
      current_key_ = key;
      ++counter_;
      Status s = Open();
      // Else the same group would fail again at every call.
      if (!s.ok()) groups_.erase(key);
      return s;
    }
    // The dataset that the function makes of the current group, which stays
    // among the groups until it is read.
    Status Open() {
      const ElementSpec& spec = dataset().input().spec();
      Element args{Tensor::Scalar<int64_t>(current_key_),
                   DatasetTensor(MakeNested<const ElementsDataset>(
                       spec, groups_[current_key_]))};
      Element results;
      HR_RETURN_IF_ERROR((*reduce_)(&args, &results));
      HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetResult(results));
      HR_ASSIGN_OR_RETURN(
          current_,
          dataset->Iterate(inner_, absl::StrCat(prefix(), "[", counter_, "]")));
      return OkStatus();
    }
    std::string Key(StringView key) const { return FullKey(prefix(), key); }
    Status SaveGroups(StateWriter& w);
    Status RestoreGroups(const StateReader& r);

    FunctionRunPtr key_, reduce_, size_;
    std::map<int64_t, std::vector<Element>> groups_;
    std::map<int64_t, int64_t> sizes_;
    PullContext inner_;
    IteratorPtr current_;
    int64_t current_key_ = 0;
    int64_t counter_ = -1;  // the current group's number
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr key_, reduce_, size_;
};

Status GroupDataset::Iterator::SaveGroups(StateWriter& w) {
  if (!groups_.empty()) {
    w.PutInt(prefix(), Key("groups_size"),
             static_cast<int64_t>(groups_.size()));
  }
  int64_t i = 0;
  for (const auto& [key, group] : groups_) {
    const std::string name = absl::StrCat("groups_[", i++, "]");
    w.PutInt(prefix(), Key(name + "->key"), key);
    w.PutInt(prefix(), Key(name + "_size"), static_cast<int64_t>(group.size()));
    for (size_t k = 0; k < group.size(); ++k) {
      const std::string element = absl::StrCat(name, "[", k, "]");
      HR_RETURN_IF_ERROR(w.PutElement(prefix(), Key(element + "_size"),
                                      Key(element), group[k]));
    }
  }
  if (!sizes_.empty()) {
    w.PutInt(prefix(), Key("window_sizes_size"),
             static_cast<int64_t>(sizes_.size()));
  }
  i = 0;
  for (const auto& [key, size] : sizes_) {
    const std::string name = absl::StrCat("window_sizes_[", i++, "]");
    w.PutInt(prefix(), Key(name + "->key"), key);
    w.PutInt(prefix(), Key(name + "->value"), size);
  }
  return OkStatus();
}

Status GroupDataset::Iterator::RestoreGroups(const StateReader& r) {
  groups_.clear();
  sizes_.clear();
  int64_t groups = 0, sizes = 0;
  if (r.Has(prefix(), Key("groups_size"))) {
    HR_ASSIGN_OR_RETURN(groups, r.GetCount(prefix(), Key("groups_size")));
  }
  if (r.Has(prefix(), Key("window_sizes_size"))) {
    HR_ASSIGN_OR_RETURN(sizes, r.GetCount(prefix(), Key("window_sizes_size")));
  }
  for (int64_t i = 0; i < sizes; ++i) {
    const std::string name = absl::StrCat("window_sizes_[", i, "]");
    HR_ASSIGN_OR_RETURN(const int64_t key,
                        r.GetInt(prefix(), Key(name + "->key")));
    HR_ASSIGN_OR_RETURN(sizes_[key], r.GetInt(prefix(), Key(name + "->value")));
    if (sizes_[key] <= 0) return DamagedState(prefix());
  }
  for (int64_t i = 0; i < groups; ++i) {
    const std::string name = absl::StrCat("groups_[", i, "]");
    HR_ASSIGN_OR_RETURN(const int64_t key,
                        r.GetInt(prefix(), Key(name + "->key")));
    HR_ASSIGN_OR_RETURN(const int64_t size,
                        r.GetCount(prefix(), Key(name + "_size")));
    std::vector<Element>& group = groups_[key];
    for (int64_t k = 0; k < size; ++k) {
      const std::string element = absl::StrCat(name, "[", k, "]");
      HR_ASSIGN_OR_RETURN(
          Element e,
          r.GetElement(prefix(), Key(element + "_size"), Key(element)));
      HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().input().spec(), e));
      group.push_back(std::move(e));
    }
  }
  return OkStatus();
}

Status GroupDataset::Iterator::Save(PullContext& c, StateWriter& w) {
  HR_RETURN_IF_ERROR(KeptInputIterator::Save(c, w));
  if (ended_) w.PutMark(prefix(), Key("end_of_input"));
  HR_RETURN_IF_ERROR(SaveGroups(w));
  w.PutInt(prefix(), Key("group_counter"), counter_);
  if (!current_) {
    w.PutMark(prefix(), Key("current_iterator_not_initialized"));
    return OkStatus();
  }
  w.PutInt(prefix(), Key("current_key"), current_key_);
  return current_->Save(inner_, w);
}

Status GroupDataset::Iterator::Restore(PullContext& c, const StateReader& r) {
  HR_RETURN_IF_ERROR(KeptInputIterator::Restore(c, r));
  ended_ = r.Has(prefix(), Key("end_of_input"));
  HR_RETURN_IF_ERROR(RestoreGroups(r));
  HR_ASSIGN_OR_RETURN(counter_, r.GetInt(prefix(), Key("group_counter")));
  if (counter_ < -1 || counter_ > INT64_MAX / 2) return DamagedState(prefix());
  current_.reset();
  if (r.Has(prefix(), Key("current_iterator_not_initialized"))) {
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(current_key_, r.GetInt(prefix(), Key("current_key")));
  // Made anew of the restored group, as functions' datasets are not saved.
  HR_RETURN_IF_ERROR(Open());
  return current_->Restore(inner_, r);
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
    .Attr("Twindow_size_func_other_arguments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Elements gathered by key, and a function of every full group.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeGroup>);

[[maybe_unused]] const bool kExperimentalGroupByWindow =
    RegisterLike("ExperimentalGroupByWindowDataset", "GroupByWindowDataset",
                 WithoutMetadata);

}  // namespace
}  // namespace headrace
