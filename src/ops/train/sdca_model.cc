#include "ops/train/sdca_model.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace headrace {
namespace {

// Input `group` of the list `name`.
const Tensor& InputOf(const KernelContext& c, StringView name, int group) {
  return c.input(c.op().input_range(name).begin + group);
}

Status CheckExamples(const KernelContext& c, int64_t count) {
  const Tensor& labels = InputOf(c, "example_labels", 0);
  const Tensor& state = InputOf(c, "example_state_data", 0);
  if (labels.num_elements() != count) {
    return InvalidArgument("Expected ", count, " example labels but got ",
                           labels.num_elements());
  }
  // Its dual variable, primal and dual loss, and weight.
  const Shape wanted{count, 4};
  if (state.shape() == wanted) return OkStatus();
  return InvalidArgument("Expected shape ", wanted,
                         " for example_state_data, got ", state.shape());
}

SdcaWeights WeightsOf(KernelContext& c, const Tensor& nominal, int output) {
  SdcaWeights w{nominal.data<float>(), c.out<float>(output),
                nominal.num_elements()};
  std::fill_n(w.delta, w.count, 0.0f);
  return w;
}

}  // namespace

Status SdcaModel::AddValue(int64_t example, const SdcaValue& value) {
  if (example < 0 || example >= static_cast<int64_t>(examples_.size())) {
    return InvalidArgument("Found sparse example indices out of valid range: ",
                           example);
  }
  SdcaExample& e = examples_[example];
  e.values.push_back(value);
  e.squared_norm += static_cast<double>(value.value) * value.value;
  return OkStatus();
}

Status SdcaModel::AddSparse(KernelContext& c, int group) {
  const Tensor& examples = InputOf(c, "sparse_example_indices", group);
  const Tensor& features = InputOf(c, "sparse_feature_indices", group);
  const Tensor& ids = InputOf(c, "sparse_indices", group);
  const Tensor& weights = InputOf(c, "sparse_weights", group);
  const int64_t count = features.num_elements();
  if (examples.num_elements() != count) {
    const auto text = [](const Tensor& t) {
      return absl::StrCat("[", absl::StrJoin(t.span<int64_t>(), " "), "]");
    };
    return InvalidArgument(
        "Found mismatched example_indices and "
        "feature_indices ",
        text(examples), " vs ", text(features));
  }
  const ArgRange with_values = c.op().input_range("sparse_feature_values");
  const float* values = nullptr;  // all 1
  if (group < with_values.size()) {
    const Tensor& t = c.input(with_values.begin + group);
    if (t.num_elements() != count) {
      return InvalidArgument("Expected ", count,
                             " sparse_feature_values but "
                             "got ",
                             t.num_elements());
    }
    values = t.data<float>();
  }
  if (ids.num_elements() != weights.num_elements()) {
    return InvalidArgument("Found ", ids.num_elements(), " sparse_indices but ",
                           weights.num_elements(), " sparse_weights");
  }
  HashMap<int64_t, int64_t> places;
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    places.emplace(ids.data<int64_t>()[i], i);
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = features.data<int64_t>()[i];
    const auto place = places.find(id);
    if (place == places.end()) {
      return InvalidArgument(
          "Found sparse feature indices out of valid range: ", id);
    }
    HR_RETURN_IF_ERROR(
        AddValue(examples.data<int64_t>()[i],
                 {group, place->second, values == nullptr ? 1.0f : values[i]}));
  }
  groups_.push_back(
      WeightsOf(c, weights, c.op().output_range(1).begin + group));
  return OkStatus();
}

Status SdcaModel::AddDense(KernelContext& c, int group, int sparse) {
  const Tensor& features = InputOf(c, "dense_features", group);
  const Tensor& weights = InputOf(c, "dense_weights", group);
  if (features.rank() != 2) {
    return InvalidArgument("Dense features at index ", group,
                           " must be rank 2 but is rank ", features.rank());
  }
  const int64_t rows = features.shape()[0], width = features.shape()[1];
  if (width > weights.num_elements()) {
    return InvalidArgument("More dense features than we have parameters for: ",
                           width);
  }
  if (rows != static_cast<int64_t>(examples_.size())) {
    return InvalidArgument("Dense features at index ", group, " are of ", rows,
                           " examples but there are ", examples_.size());
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < width; ++k) {
      HR_RETURN_IF_ERROR(AddValue(
          i, {sparse + group, k, features.data<float>()[i * width + k]}));
    }
  }
  groups_.push_back(
      WeightsOf(c, weights, c.op().output_range(2).begin + group));
  return OkStatus();
}

Status SdcaModel::CheckOnce() const {
  for (const SdcaExample& e : examples_) {
    std::vector<std::pair<int32_t, int64_t>> seen;
    for (const SdcaValue& v : e.values) seen.emplace_back(v.group, v.weight);
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
      return InvalidArgument("Duplicate index in sparse vector.");
    }
  }
  return OkStatus();
}

StatusOr<SdcaModel> SdcaModel::Make(KernelContext& c) {
  const Tensor& weights = InputOf(c, "example_weights", 0);
  const Tensor& labels = InputOf(c, "example_labels", 0);
  const int sparse = static_cast<int>(c.op().int_attr("num_sparse_features"));
  const int dense = static_cast<int>(c.op().int_attr("num_dense_features"));
  if (sparse + dense == 0) {
    return InvalidArgument("Requires at least one feature to train.");
  }
  HR_RETURN_IF_ERROR(CheckExamples(c, weights.num_elements()));
  SdcaModel m;
  m.examples_.resize(weights.num_elements());
  for (size_t i = 0; i < m.examples_.size(); ++i) {
    m.examples_[i].weight = weights.data<float>()[i];
    m.examples_[i].label = labels.data<float>()[i];
  }
  for (int g = 0; g < sparse; ++g) HR_RETURN_IF_ERROR(m.AddSparse(c, g));
  HR_RETURN_IF_ERROR(m.CheckOnce());
  for (int g = 0; g < dense; ++g) HR_RETURN_IF_ERROR(m.AddDense(c, g, sparse));
  return m;
}

double SdcaModel::Predict(const SdcaExample& e, const SdcaPenalty& p,
                          double partitions) const {
  double sum = 0;
  for (const SdcaValue& v : e.values) {
    const SdcaWeights& w = groups_[v.group];
    sum += v.value *
           p.Shrink(w.nominal[v.weight] + w.delta[v.weight] * partitions);
  }
  return sum;
}

void SdcaModel::Learn(const SdcaExample& e, double step) {
  for (const SdcaValue& v : e.values) {
    groups_[v.group].delta[v.weight] += static_cast<float>(v.value * step);
  }
}

}  // namespace headrace
