#include "ops/sparse/merge.h"

namespace headrace {

std::vector<MergedEntry> MergeEntries(const SparseInput& a,
                                      const SparseInput& b) {
  std::vector<MergedEntry> out;
  out.reserve(a.count + b.count);
  int64_t i = 0, j = 0;
  while (i < a.count || j < b.count) {
    const int order = i == a.count   ? 1
                      : j == b.count ? -1
                                     : CompareRows(a.row(i), b.row(j), a.rank);
    MergedEntry e;
    e.row = order <= 0 ? a.row(i) : b.row(j);
    // Entries at the same place become one.
    if (order <= 0) e.a = i++;
    if (order >= 0) e.b = j++;
    out.push_back(e);
  }
  return out;
}

Status CheckSameDims(const SparseInput& a, const SparseInput& b) {
  if (a.rank != b.rank) {
    return InvalidArgument("Operands do not have the same ranks; got shapes: [",
                           JoinInts(a.dims), "] and [", JoinInts(b.dims), "]");
  }
  for (int d = 0; d < a.rank; ++d) {
    if (a.dims[d] == b.dims[d]) continue;
    return InvalidArgument("Operands' shapes do not match: got ", a.dims[d],
                           " and ", b.dims[d], " for dimension ", d);
  }
  return OkStatus();
}

}  // namespace headrace
