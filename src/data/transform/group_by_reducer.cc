// GroupByReducerDataset: an element for each key, made of all elements of it.
#include <map>

#include "data/dataset_op.h"
#include "op/op_like.h"

namespace headrace {
namespace {

class GroupByReducer : public InputDataset {
 public:
  struct Functions {
    CapturedFunctionPtr key, init, reduce, finalize;
  };
  GroupByReducer(ElementSpec spec, DatasetPtr input, Functions f)
      : InputDataset(std::move(spec), std::move(input)), f_(std::move(f)) {}
  StringView kind() const override { return "GroupByReducer"; }
  int64_t Count() const override { return kUnknownCardinality; }

  class Iterator : public KeptInputIterator<GroupByReducer> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Start(PullContext& c) override {
      const Functions& f = dataset().f_;
      HR_ASSIGN_OR_RETURN(key_, f.key->Begin(c));
      HR_ASSIGN_OR_RETURN(init_, f.init->Begin(c));
      HR_ASSIGN_OR_RETURN(reduce_, f.reduce->Begin(c));
      HR_ASSIGN_OR_RETURN(finalize_, f.finalize->Begin(c));
      return KeptInputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (!ended_) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        Element element;
        bool input_end = false;
        HR_RETURN_IF_ERROR(NextInput(c, &element, &input_end));
        if (!input_end) HR_RETURN_IF_ERROR(Take(std::move(element)));
      }
      // In the order of the keys, as upstream.
      if (states_.empty()) {
        *end = true;
        return OkStatus();
      }
      Element state = std::move(states_.begin()->second);
      states_.erase(states_.begin());
      return (*finalize_)(&state, out);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(KeptInputIterator::Save(c, w));
      if (ended_) w.PutMark(prefix(), Key("end_of_input"));
      w.PutInt(prefix(), Key("states_size"),
               static_cast<int64_t>(states_.size()));
      int64_t i = 0;
      for (const auto& [key, state] : states_) {
        const std::string name = absl::StrCat("states[", i++, "]");
        w.PutInt(prefix(), Key(name + "->key"), key);
        HR_RETURN_IF_ERROR(w.PutElement(prefix(), Key(name + "->state_size"),
                                        Key(name + "->state"), state));
      }
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_RETURN_IF_ERROR(KeptInputIterator::Restore(c, r));
      ended_ = r.Has(prefix(), Key("end_of_input"));
      states_.clear();
      HR_ASSIGN_OR_RETURN(const int64_t n,
                          r.GetCount(prefix(), Key("states_size")));
      for (int64_t i = 0; i < n; ++i) {
        const std::string name = absl::StrCat("states[", i, "]");
        HR_ASSIGN_OR_RETURN(const int64_t key,
                            r.GetInt(prefix(), Key(name + "->key")));
        HR_ASSIGN_OR_RETURN(states_[key],
                            r.GetElement(prefix(), Key(name + "->state_size"),
                                         Key(name + "->state")));
        const auto size = static_cast<int>(states_[key].size());
        if (size != dataset().f_.init->num_results()) {
          return DamagedState(prefix());
        }
      }
      return OkStatus();
    }

   private:
    std::string Key(StringView key) const { return FullKey(prefix(), key); }

    // Reduces an element into the state of its key.
    Status Take(Element element) {
      Element args = element, results;
      HR_RETURN_IF_ERROR((*key_)(&args, &results));
      if (results.size() != 1 || results[0].dtype() != DType::kInt64 ||
          results[0].num_elements() != 1) {
        return InvalidArgument("`key_func` must return a scalar int64.");
      }
      const int64_t key = results[0].scalar<int64_t>();
      auto at = states_.find(key);
      if (at == states_.end()) {
        args = {Tensor::Scalar<int64_t>(key)};
        Element first;
        HR_RETURN_IF_ERROR((*init_)(&args, &first));
        at = states_.emplace(key, std::move(first)).first;
      }
      // The state stays as it was where the function fails.
      args = at->second;
      const size_t width = args.size();
      for (Tensor& t : element) args.push_back(std::move(t));
      results.clear();
      HR_RETURN_IF_ERROR((*reduce_)(&args, &results));
      bool fits = results.size() == width;
      for (size_t i = 0; fits && i < width; ++i) {
        fits = results[i].dtype() == at->second[i].dtype();
      }
      if (!fits) {
        return InvalidArgument(
            "`reduce_func` must return a state as `init_func`"
            " does, of ",
            width, " components");
      }
      at->second = std::move(results);
      return OkStatus();
    }

    FunctionRunPtr key_, init_, reduce_, finalize_;
    std::map<int64_t, Element> states_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const Functions f_;
};

Status MakeGroupByReducer(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  auto make = [&](const std::string& name) {
    return CapturedFunction::Make(c, name, name + "_other_arguments");
  };
  GroupByReducer::Functions f;
  HR_ASSIGN_OR_RETURN(f.key, make("key_func"));
  HR_ASSIGN_OR_RETURN(f.init, make("init_func"));
  HR_ASSIGN_OR_RETURN(f.reduce, make("reduce_func"));
  HR_ASSIGN_OR_RETURN(f.finalize, make("finalize_func"));
  return SetDataset<GroupByReducer>(c, std::move(spec), std::move(input),
                                    std::move(f));
}

HR_OP(GroupByReducerDataset)
    .Input("input_dataset: variant")
    .Input("key_func_other_arguments: Tkey_func_other_arguments")
    .Input("init_func_other_arguments: Tinit_func_other_arguments")
    .Input("reduce_func_other_arguments: Treduce_func_other_arguments")
    .Input("finalize_func_other_arguments: Tfinalize_func_other_arguments")
    .Output("handle: variant")
    .Attr("key_func: func")
    .Attr("init_func: func")
    .Attr("reduce_func: func")
    .Attr("finalize_func: func")
    .Attr("Tkey_func_other_arguments: list(type) >= 0")
    .Attr("Tinit_func_other_arguments: list(type) >= 0")
    .Attr("Treduce_func_other_arguments: list(type) >= 0")
    .Attr("Tfinalize_func_other_arguments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An element for each key, reduced of all elements of it.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeGroupByReducer>);

[[maybe_unused]] const bool kExperimentalGroupByReducer =
    RegisterLike("ExperimentalGroupByReducerDataset", "GroupByReducerDataset");

}  // namespace
}  // namespace headrace
