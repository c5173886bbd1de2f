// Datasets that call functions of elements.
#include "cc/dataset/state.h"

namespace headrace::tf::data {

using internal::AttrsOf;
using internal::Inputs;
using internal::Int64;
using internal::Op;
using internal::Recorded;
using internal::Throw;
using internal::Trace;

namespace {

AttrMap FunctionAttrs(const Recorded& f, const ElementSpec& out,
                      const char* name = "f") {
  return AttrsOf(out,
                 {{name, f.ref()}, {"Targuments", internal::CapturedTypes(f)}});
}

}  // namespace

Dataset Dataset::MapElements(const ElementFunction& function,
                             const MapOptions& options) const {
  ElementSpec out;
  const Recorded f = Trace("Dataset_map", spec(), [&](const Element& e) {
    const Made made = function(e);
    if (made.components.empty()) {
      Throw(ErrorCode::kInvalidArgument, "Map: the function gives no tensors");
    }
    out = internal::SpecOf(made.components, made.names);
    return made.components;
  });
  AttrMap attrs = FunctionAttrs(f, out);
  // As Python sets it: a map gives one element for each.
  attrs.Set("preserve_cardinality", true);
  Tensor made;
  if (options.num_parallel_calls == 0) {
    made = Op("MapDataset", Inputs({variant()}, {&f}), attrs);
  } else {
    attrs.Set("deterministic", options.deterministic ? "true" : "false");
    made = Op("ParallelMapDatasetV2",
              Inputs({variant()}, {&f}, {Int64(options.num_parallel_calls)}),
              attrs);
  }
  // The dataset holds the function, which graphs name by its name alone.
  return State::Make({made, out, {}, {state_, f.function}});
}

Dataset Dataset::Chosen(const char* op,
                        const ElementFunction& predicate) const {
  const Recorded f = Trace("Dataset_predicate", spec(), [&](const Element& e) {
    Element made = predicate(e).components;
    // -1 is an unknown rank, which may turn out to be a scalar.
    const bool fits = made.size() == 1 && made[0].dtype() == DType::kBool &&
                      made[0].shape().rank() <= 0;
    if (!fits) {
      Throw(ErrorCode::kInvalidArgument,
            "Invalid `predicate`. `predicate` must return a `tf.bool` "
            "scalar tensor.");
    }
    return made;
  });
  return State::Make(
      {Op(op, Inputs({variant()}, {&f}), FunctionAttrs(f, spec(), "predicate")),
       spec(),
       state_->inner,
       {state_, f.function}});
}

Dataset Dataset::Inner(const Element& element, size_t i) const {
  if (i >= state_->inner.size() || state_->inner[i].dtypes.empty()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("component ", i, " of the elements is no dataset"));
  }
  return State::Make({element[i], state_->inner[i], {}, {}});
}

Dataset Dataset::Flattened(const DatasetFunction& function,
                           const InterleaveOptions* options) const {
  std::shared_ptr<const State> inner;
  const Recorded f = Trace("Dataset_flat_map", spec(), [&](const Element& e) {
    // The spec of what the function makes is known only once it was traced.
    inner = function(*this, e).state_;
    return Element{inner->variant};
  });
  const ElementSpec& out = inner->spec;
  AttrMap attrs = FunctionAttrs(f, out);
  Tensor made;
  if (options == nullptr) {
    made = Op("FlatMapDataset", Inputs({variant()}, {&f}), attrs);
  } else if (options->num_parallel_calls == 0) {
    made =
        Op("InterleaveDataset",
           Inputs({variant()}, {&f},
                  {Int64(options->cycle_length), Int64(options->block_length)}),
           attrs);
  } else {
    attrs.Set("deterministic", options->deterministic ? "true" : "false");
    made = Op("ParallelInterleaveDatasetV4",
              Inputs({variant()}, {&f},
                     {Int64(options->cycle_length),
                      Int64(options->block_length), Int64(kAutotune),
                      Int64(kAutotune), Int64(options->num_parallel_calls)}),
              attrs);
  }
  // What the inner datasets hold (functions) is held with them.
  return State::Make({made, out, inner->inner, {state_, f.function, inner}});
}

}  // namespace headrace::tf::data
