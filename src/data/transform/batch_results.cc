#include "data/transform/batch_results.h"

namespace headrace {

Status PutBatchResults(StateWriter& w, const std::string& prefix,
                       absl::Span<const BatchResult> results) {
  w.PutInt(prefix, "batch_results_size", static_cast<int64_t>(results.size()));
  for (size_t i = 0; i < results.size(); ++i) {
    const BatchResult& b = results[i];
    const std::string name = absl::StrCat("batch_results_", i);
    const std::string full = FullKey(prefix, name);
    if (b.ended) w.PutMark(prefix, name + "_end_of_input");
    // Nothing is under way when a state is saved.
    w.PutInt(prefix, name + "_num_calls", 0);
    w.PutInt(prefix, name + "_num_elements", b.count);
    if (!b.rows.empty()) w.PutMark(prefix, name + "_output_allocated");
    w.PutInt(prefix, full + "_output_size",
             static_cast<int64_t>(b.rows.size()));
    for (size_t k = 0; k < b.rows.size(); ++k) {
      HR_RETURN_IF_ERROR(w.Put(full, absl::StrCat("output_", k), b.rows[k]));
    }
    w.PutStatus(prefix, full + "_status_code", full + "_status_msg", b.status);
  }
  return OkStatus();
}

StatusOr<std::vector<BatchResult>> GetBatchResults(const StateReader& r,
                                                   const std::string& prefix,
                                                   const ElementSpec& spec) {
  HR_ASSIGN_OR_RETURN(const int64_t n,
                      r.GetCount(prefix, "batch_results_size"));
  std::vector<BatchResult> results;
  for (int64_t i = 0; i < n; ++i) {
    const std::string name = absl::StrCat("batch_results_", i);
    const std::string full = FullKey(prefix, name);
    BatchResult b;
    b.ended = r.Has(prefix, name + "_end_of_input");
    HR_ASSIGN_OR_RETURN(b.count, r.GetCount(prefix, name + "_num_elements"));
    HR_RETURN_IF_ERROR(r.GetStatus(prefix, full + "_status_code",
                                   full + "_status_msg", &b.status));
    HR_ASSIGN_OR_RETURN(const int64_t width,
                        r.GetCount(prefix, full + "_output_size"));
    if (b.count > 0 && b.status.ok() &&
        width != static_cast<int64_t>(spec.types.size())) {
      return DamagedState(prefix);
    }
    for (int64_t k = 0; b.count > 0 && b.status.ok() && k < width; ++k) {
      HR_ASSIGN_OR_RETURN(Tensor t, r.Get(full, absl::StrCat("output_", k)));
      if (t.rank() < 1 || t.dim(0) < b.count || t.dtype() != spec.types[k]) {
        return DamagedState(prefix);
      }
      b.rows.push_back(std::move(t));
    }
    results.push_back(std::move(b));
  }
  return results;
}

}  // namespace headrace
