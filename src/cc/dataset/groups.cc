// Datasets with a state, of groups, and of a choice of others.
#include <algorithm>

#include "cc/dataset/state.h"
#include "cc/seeds.h"

namespace headrace::tf::data {

using internal::AttrsOf;
using internal::Bool;
using internal::CapturedTypes;
using internal::Inputs;
using internal::Int64;
using internal::Op;
using internal::Recorded;
using internal::Throw;
using internal::Trace;

namespace {

const ElementSpec& Scalar64() {
  static const auto* const spec =
      new ElementSpec{{DType::kInt64}, {TensorShape{}}};
  return *spec;
}

// The specs of a state and of elements, one behind the other.
ElementSpec Joined(const ElementSpec& state, const ElementSpec& element) {
  ElementSpec both = {state.dtypes, state.shapes};
  both.dtypes.insert(both.dtypes.end(), element.dtypes.begin(),
                     element.dtypes.end());
  both.shapes.insert(both.shapes.end(), element.shapes.begin(),
                     element.shapes.end());
  return both;
}

// A function of (state, element), traced again with wider shapes of the state
// until those that it gives fit. `body` puts the next state into its last
// argument and returns what comes behind it.
struct StateTrace {
  using Body = std::function<Element(const Element& state,
                                     const Element& element, Element* next)>;
  StateTrace(const char* name, const Element& initial,
             const ElementSpec& element, const Body& body)
      : state(internal::SpecOf(initial)) {
    const size_t count = initial.size();
    while (true) {
      ElementSpec next;
      function = Trace(name, Joined(state, element), [&](const Element& in) {
        const Element now(in.begin(), in.begin() + count);
        Element made;
        const Element rest = body(now, {in.begin() + count, in.end()}, &made);
        if (made.size() != count) {
          Throw(ErrorCode::kInvalidArgument,
                absl::StrCat("a state of ", count, " tensors became one of ",
                             made.size()));
        }
        next = internal::SpecOf(made);
        made.insert(made.end(), rest.begin(), rest.end());
        return made;
      });
      const ElementSpec wide = internal::Common(state, next);
      // Ends: each round makes at least one size unknown, or a rank.
      if (wide.shapes == state.shapes) return;
      state = wide;
    }
  }

  ElementSpec state;
  Recorded function;
};

AttrMap StateAttrs(const StateTrace& t, const ElementSpec& out) {
  std::vector<headrace::DType> types;
  for (const DType d : t.state.dtypes) types.push_back(internal::Core(d));
  return AttrsOf(out, {{"f", t.function.ref()},
                       {"Tstate", std::move(types)},
                       {"Targuments", CapturedTypes(t.function)}});
}

std::vector<Tensor> WithState(const Tensor& variant, const Element& initial,
                              const StateTrace& t) {
  std::vector<Tensor> inputs = {variant};
  inputs.insert(inputs.end(), initial.begin(), initial.end());
  return Inputs(std::move(inputs), {&t.function});
}

}  // namespace

Dataset Dataset::Scan(
    const Element& initial,
    const std::function<std::pair<Element, Made>(
        const Element& state, const Element& element)>& function) const {
  ElementSpec out;
  const StateTrace trace(
      "Dataset_scan", initial, spec(),
      [&](const Element& state, const Element& element, Element* next) {
        auto [now, made] = function(state, element);
        *next = std::move(now);
        out = internal::SpecOf(made.components, made.names);
        return made.components;
      });
  AttrMap attrs = StateAttrs(trace, out);
  attrs.Set("preserve_cardinality", true);
  return State::Make(
      {Op("ScanDataset", WithState(variant(), initial, trace), attrs),
       out,
       {},
       {state_, trace.function.function}});
}

Element Dataset::Reduce(
    const Element& initial,
    const std::function<Element(const Element& state, const Element& element)>&
        function) const {
  const StateTrace trace(
      "Dataset_reduce", initial, spec(),
      [&](const Element& state, const Element& element, Element* next) {
        *next = function(state, element);
        return Element();
      });
  return internal::OpAll("ReduceDataset", WithState(variant(), initial, trace),
                         StateAttrs(trace, trace.state));
}

Dataset Dataset::Grouped(
    const ElementFunction& key,
    const std::function<Dataset(const Tensor&, const Dataset&)>& reduce,
    const std::vector<int64_t>& window_sizes) const {
  const Recorded key_of = Trace("group_key", spec(), [&](const Element& e) {
    const Element made = key(e).components;
    const bool fits =
        made.size() == 1 && made[0].shape().rank() <= 0 &&
        (made[0].dtype() == DType::kInt64 || made[0].dtype() == DType::kInt32);
    if (!fits) {
      Throw(ErrorCode::kInvalidArgument,
            "Invalid `key_func`. `key_func` must return a single `tf.int64` "
            "scalar tensor");
    }
    return Element{internal::Cast(made[0], DType::kInt64)};
  });
  const Recorded size_of =
      Trace("group_size", Scalar64(), [&](const Element& e) {
        // One size needs no table.
        if (window_sizes.size() == 1) return Element{Int64(window_sizes[0])};
        const Tensor sizes =
            internal::Constant(headrace::Tensor::Vector<int64_t>(window_sizes));
        return Element{Op("GatherV2", {sizes, e[0], internal::Int(0)})};
      });
  std::shared_ptr<const State> inner;
  const ElementSpec number_and_window = {{DType::kInt64, DType::kVariant},
                                         {TensorShape{}, TensorShape{}}};
  const Recorded made =
      Trace("group_reduce", number_and_window, [&](const Element& e) {
        const Dataset window = State::Make({e[1], spec(), state_->inner, {}});
        inner = reduce(e[0], window).state_;
        return Element{inner->variant};
      });
  const ElementSpec out = inner->spec;
  return State::Make(
      {Op("GroupByWindowDataset",
          Inputs({variant()}, {&key_of, &made, &size_of}),
          AttrsOf(out, {{"key_func", key_of.ref()},
                        {"reduce_func", made.ref()},
                        {"window_size_func", size_of.ref()},
                        {"Tkey_func_other_arguments", CapturedTypes(key_of)},
                        {"Treduce_func_other_arguments", CapturedTypes(made)},
                        {"Twindow_size_func_other_arguments",
                         CapturedTypes(size_of)}})),
       out,
       inner->inner,
       {state_, key_of.function, made.function, size_of.function, inner}});
}

Dataset Dataset::Bucketed(const ElementFunction& length,
                          const std::vector<int64_t>& boundaries,
                          const std::vector<int64_t>& batch_sizes,
                          const BucketOptions& options) const {
  if (batch_sizes.size() != boundaries.size() + 1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("`len(bucket_batch_sizes)` must equal "
                       "`len(bucket_boundaries) + 1` but "
                       "`len(bucket_batch_sizes)=",
                       batch_sizes.size(), "` and `len(bucket_boundaries)=",
                       boundaries.size(), "`."));
  }
  const auto constant = [](const std::vector<int64_t>& values) {
    return internal::Constant(headrace::Tensor::Vector<int64_t>(values));
  };
  const ElementFunction bucket = [&](const Element& e) -> Made {
    const Element made = length(e).components;
    if (made.size() != 1) {
      Throw(ErrorCode::kInvalidArgument, "a length is one integer scalar");
    }
    const Tensor n = internal::Cast(made[0], DType::kInt64);
    // The number of boundaries that are not above the length is the number of
    // its bucket.
    const Tensor below = Op("LessEqual", {constant(boundaries), n});
    return internal::Reduce("Sum", internal::Cast(below, DType::kInt64), {0});
  };
  return Grouped(
      bucket,
      [&](const Tensor& number, const Dataset& window) {
        const Tensor size =
            Op("GatherV2", {constant(batch_sizes), number, internal::Int(0)});
        if (options.no_padding) {
          return window.BatchOf(size, options.drop_remainder);
        }
        return window.PaddedBatchOf(size, options.padded_shapes,
                                    options.padding_values,
                                    options.drop_remainder);
      },
      batch_sizes);
}

Dataset Dataset::Random(std::optional<int64_t> seed,
                        bool rerandomize_each_iteration) {
  const auto [first, second] = internal::OpSeeds(seed);
  // The generator's resource goes with its last handle, and walks draw from it.
  const auto seeds =
      std::make_shared<const std::vector<Tensor>>(internal::OpAll(
          "AnonymousSeedGenerator",
          {Int64(first), Int64(second), Bool(rerandomize_each_iteration)}));
  return State::Make(
      {Op("RandomDatasetV2", {Int64(first), Int64(second), (*seeds)[0]},
          AttrsOf(Scalar64(), {{"rerandomize_each_iteration",
                                rerandomize_each_iteration}})),
       Scalar64(),
       {},
       {seeds}});
}

Dataset Dataset::Choose(const std::vector<Dataset>& datasets,
                        const Dataset& choices, bool stop_on_empty_dataset) {
  if (datasets.empty()) {
    Throw(ErrorCode::kInvalidArgument,
          "Invalid `datasets`. `datasets` should not be empty.");
  }
  const ElementSpec& number = choices.spec();
  if (number.dtypes != Scalar64().dtypes ||
      number.shapes != Scalar64().shapes) {
    Throw(ErrorCode::kInvalidArgument,
          "Invalid `choice_dataset`. Elements of `choice_dataset` must be "
          "scalar `tf.int64` tensors.");
  }
  std::vector<Tensor> inputs = {choices.variant()};
  ElementSpec out = datasets[0].spec();
  std::vector<std::shared_ptr<const void>> held = {choices.state_};
  for (const Dataset& d : datasets) {
    inputs.push_back(d.variant());
    out = internal::Common(out, d.spec());
    held.push_back(d.state_);
  }
  return State::Make(
      {Op("DirectedInterleaveDataset", inputs,
          AttrsOf(out, {{"N", static_cast<int64_t>(datasets.size())},
                        {"stop_on_empty_dataset", stop_on_empty_dataset}})),
       out, datasets[0].state_->inner, std::move(held)});
}

Dataset Dataset::Sample(const std::vector<Dataset>& datasets,
                        const std::vector<float>& weights,
                        std::optional<int64_t> seed,
                        bool stop_on_empty_dataset) {
  const bool fits = !datasets.empty() &&
                    (weights.empty() || weights.size() == datasets.size()) &&
                    std::all_of(weights.begin(), weights.end(),
                                [](float w) { return w >= 0; });
  if (!fits) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Invalid `weights`: ", weights.size(),
                       " weights, none of them negative, for ", datasets.size(),
                       " datasets"));
  }
  std::vector<Dataset> kept;
  std::vector<float> shares;
  for (size_t i = 0; i < datasets.size(); ++i) {
    const float w = weights.empty() ? 1 : weights[i];
    // A weight of 0 has no logarithm that the draw could use, and never comes
    // up.
    if (w == 0) continue;
    kept.push_back(datasets[i]);
    shares.push_back(w);
  }
  if (kept.empty()) return datasets[0];
  // No choice to be made.
  if (kept.size() == 1) return kept[0];
  const Tensor row =
      Tensor::From(shares, TensorShape{1, static_cast<int64_t>(shares.size())});
  // Equal logits of any value draw alike; upstream's are ones.
  const Tensor logits = weights.empty() ? row : Op("Log", {row});
  // Two numbers are a seed of the stateless draw.
  const Dataset choices = Random(seed).Batch(2).Map([logits](const Tensor& s) {
    const Tensor drawn =
        Op("StatelessMultinomial", {logits, internal::Int(1), s},
           {{"output_dtype", headrace::DType::kInt64}});
    return internal::Reshape(drawn, {});
  });
  return Choose(kept, choices, stop_on_empty_dataset);
}

}  // namespace headrace::tf::data
