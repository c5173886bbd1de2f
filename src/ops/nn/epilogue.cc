#include "ops/nn/epilogue.h"

#include <cmath>

#include "absl/strings/str_join.h"

namespace headrace {

StatusOr<Epilogue> Epilogue::Make(const ResolvedOp& op) {
  const auto& fused = op.attr<std::vector<std::string>>("fused_ops");
  const bool bias = !fused.empty() && fused[0] == "BiasAdd";
  const bool norm = !fused.empty() && fused[0] == "FusedBatchNorm";
  auto unknown = [&] {
    return Unimplemented("Fusion is not implemented: [",
                         absl::StrJoin(fused, ","), "]");
  };
  if ((!bias && !norm) || fused.size() > 2) return unknown();
  Epilogue e;
  e.normalises_ = norm;
  e.epsilon_ = op.float_attr("epsilon");
  e.alpha_ = op.float_attr("leakyrelu_alpha");
  if (fused.size() == 1) return e;
  const int type = static_cast<int>(DType::kFloat);
  if (fused[1] == "LeakyRelu") {
    e.leaky_ = FindParameterLoop("LeakyRelu", type);
    return e;
  }
  const LoopEntry* loop = FindUnaryLoop(fused[1], type);
  if (loop == nullptr || loop->unary == nullptr) return unknown();
  e.activation_ = loop->unary;
  return e;
}

Status Epilogue::SetArguments(absl::Span<const Tensor* const> args,
                              int64_t channels) {
  // Scale, offset, mean and variance; or the bias.
  const size_t wanted = normalises_ ? 4 : 1;
  if (args.size() != wanted) {
    return InvalidArgument("a fused op wants ", wanted, " arguments, not ",
                           args.size());
  }
  for (const Tensor* t : args) {
    if (t->dtype() != DType::kFloat || t->num_elements() != channels) {
      return InvalidArgument("an argument of a fused op must be float[",
                             channels, "], but is ", t->Describe());
    }
  }
  if (!normalises_) {
    shift_.assign(args[0]->data<float>(), args[0]->data<float>() + channels);
    return OkStatus();
  }
  scale_.resize(channels);
  shift_.resize(channels);
  for (int64_t i = 0; i < channels; ++i) {
    // Both steps of the normalisation become one product and one sum a number.
    scale_[i] = args[0]->data<float>()[i] /
                std::sqrt(args[3]->data<float>()[i] + epsilon_);
    shift_[i] =
        args[1]->data<float>()[i] - args[2]->data<float>()[i] * scale_[i];
  }
  return OkStatus();
}

void Epilogue::Apply(float* rows, int64_t count, int64_t channels) const {
  for (int64_t r = 0; r < count; ++r) {
    float* row = rows + r * channels;
    if (normalises_) {
      for (int64_t c = 0; c < channels; ++c) {
        row[c] = row[c] * scale_[c] + shift_[c];
      }
    } else {
      for (int64_t c = 0; c < channels; ++c) row[c] += shift_[c];
    }
  }
  const int64_t n = count * channels;
  // In place, while the rows are in the cache.
  if (activation_) activation_(rows, rows, n);
  if (leaky_) leaky_(rows, rows, n, alpha_);
}

}  // namespace headrace
