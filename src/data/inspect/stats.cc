#include "data/inspect/stats.h"

#include "op/registry.h"
#include "op/run_once.h"
#include "tensorflow/core/framework/summary.pb.h"

namespace headrace {

Status StatsAggregator::AddToHistogram(const std::string& name, double value,
                                       int64_t step) {
  std::string bytes;
  {
    MutexLock lock(mutex_);
    HistogramCounts& counts = histograms_[name];
    counts.Add(value);
    if (!writer_.has_buffer()) return OkStatus();
    tensorflow::Summary summary;
    tensorflow::Summary::Value* v = summary.add_value();
    v->set_tag(name);
    counts.FillProto(v->mutable_histo());
    bytes = summary.SerializeAsString();
  }
  return Write(bytes, step);
}

Status StatsAggregator::SetNumber(const std::string& name, double value,
                                  int64_t step) {
  std::string bytes;
  {
    MutexLock lock(mutex_);
    numbers_[name] = value;
    if (!writer_.has_buffer()) return OkStatus();
    tensorflow::Summary summary;
    tensorflow::Summary::Value* v = summary.add_value();
    v->set_tag(name);
    v->set_simple_value(static_cast<float>(value));
    bytes = summary.SerializeAsString();
  }
  return Write(bytes, step);
}

std::string StatsAggregator::Summary() const {
  MutexLock lock(mutex_);
  tensorflow::Summary summary;
  for (const auto& [name, counts] : histograms_) {
    tensorflow::Summary::Value* v = summary.add_value();
    v->set_tag(name);
    counts.FillProto(v->mutable_histo());
  }
  for (const auto& [name, number] : numbers_) {
    tensorflow::Summary::Value* v = summary.add_value();
    v->set_tag(name);
    v->set_simple_value(static_cast<float>(number));
  }
  return summary.SerializeAsString();
}

void StatsAggregator::SetWriter(Tensor writer, const RunServices& services) {
  MutexLock lock(mutex_);
  writer_ = std::move(writer);
  services_.resources = services.resources;
  services_.functions = services.functions;
}

// By the op that writes summaries, which lies in another room.
Status StatsAggregator::Write(const std::string& summary, int64_t step) const {
  Tensor writer, at = Tensor::Scalar<int64_t>(step),
                 bytes = Tensor::Scalar<std::string>(summary);
  RunServices services;
  {
    MutexLock lock(mutex_);
    writer = writer_;
    services = services_;
  }
  HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("WriteRawProtoSummary"));
  HR_ASSIGN_OR_RETURN(
      const ResolvedOpPtr op,
      ResolveOp(*def, {writer.dtype(), at.dtype(), bytes.dtype()}, {}));
  HR_ASSIGN_OR_RETURN(const auto kernel, BindKernel(*op));
  Tensor* const inputs[] = {&writer, &at, &bytes};
  return RunOnce(*op, *kernel, inputs, {}, services);
}

}  // namespace headrace
